# SPDX-License-Identifier: Apache-2.0
# The `sterna` command: sterna/cli/*.cc. Tests of the commands need no command-line library.
# Set STERNA_CLI_LAYERS before including this to link other layers than these.
file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sterna/cli/*.cc)
set(cli_tests ${cli_sources})
list(FILTER cli_sources EXCLUDE REGEX "_test\\.cc$|/main\\.cc$")
list(FILTER cli_tests INCLUDE REGEX "_test\\.cc$")
if(NOT DEFINED STERNA_CLI_LAYERS)
  set(STERNA_CLI_LAYERS hardware execute)
endif()

add_library(sterna_cli STATIC ${cli_sources})
target_link_libraries(sterna_cli PUBLIC sterna_flags sterna_base)
foreach(layer ${STERNA_CLI_LAYERS})
  target_link_libraries(sterna_cli PUBLIC sterna_${layer})
endforeach()

add_executable(sterna ${PROJECT_SOURCE_DIR}/sterna/cli/main.cc)
target_link_libraries(sterna PRIVATE sterna_cli)
# Half of the command's start-up was finding and binding the shared C++ library.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT STERNA_SANITIZE)
  target_link_options(sterna PRIVATE -static-libstdc++ -static-libgcc)
endif()
target_compile_definitions(sterna PRIVATE STERNA_VERSION="${PROJECT_VERSION}")

if(STERNA_TESTS AND cli_tests)
  add_executable(cli_test ${cli_tests})
  target_link_libraries(cli_test PRIVATE sterna_cli GTest::gtest_main)
  add_test(NAME cli COMMAND cli_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()
