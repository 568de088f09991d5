# SPDX-License-Identifier: Apache-2.0
# What goes into the wheel. scikit-build-core sets SKBUILD and the folders; a plain `cmake --install` gets the same layout
# under the prefix, with the command in bin/.
if(NOT DEFINED SKBUILD_SCRIPTS_DIR)
  set(SKBUILD_SCRIPTS_DIR bin)
endif()
if(NOT DEFINED SKBUILD_PLATLIB_DIR)
  set(SKBUILD_PLATLIB_DIR lib/python)
endif()

# The extension module lies inside the package, the command among the scripts, whatever the targets are built into.
if(TARGET _core)
  install(TARGETS _core LIBRARY DESTINATION ${SKBUILD_PLATLIB_DIR}/sterna)
endif()
foreach(command sterna_command sterna_cli_main sterna)
  if(TARGET ${command})
    get_target_property(kind ${command} TYPE)
    if(kind STREQUAL "EXECUTABLE")
      install(TARGETS ${command} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR})
    endif()
  endif()
endforeach()

# The finder for the import names is one module at the top level, since it must not import the package.
install(FILES python/_sterna_hook.py python/sterna_compat.pth DESTINATION ${SKBUILD_PLATLIB_DIR})

# Data: chip and system descriptions travel with the package.
if(EXISTS ${PROJECT_SOURCE_DIR}/hardware)
  install(DIRECTORY hardware DESTINATION ${SKBUILD_PLATLIB_DIR}/sterna FILES_MATCHING PATTERN "*.toml")
endif()

# Each package folder inside a front end is one import name: frontends/nki/nki is served as `nki`.
file(GLOB names RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/frontends/*/*/__init__.py)
foreach(init ${names})
  get_filename_component(package ${init} DIRECTORY)
  get_filename_component(name ${package} NAME)
  if(NOT name STREQUAL "tests")
    install(DIRECTORY ${package} DESTINATION ${SKBUILD_PLATLIB_DIR}/sterna/_names
            FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
  endif()
endforeach()
