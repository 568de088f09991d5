# SPDX-License-Identifier: Apache-2.0
# The extension module sterna._core.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
find_package(nanobind CONFIG REQUIRED)
file(GLOB python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/*.cc)
nanobind_add_module(_core NB_STATIC NOSTRIP ${python_sources})
target_include_directories(_core PRIVATE ${PROJECT_SOURCE_DIR}/python)
target_link_libraries(_core PRIVATE sterna_flags sterna_execute)
if(TARGET sterna_timing)
  target_link_libraries(_core PRIVATE sterna_timing)
endif()
# nanobind asks for small code; calls and views are the hot path of recording.
target_compile_options(_core PRIVATE $<$<CONFIG:Release>:-O2>)
# CPython's own tables leave trailing members out, and its macros convert freely.
target_compile_options(_core PRIVATE -Wno-missing-field-initializers -Wno-conversion -Wno-shadow -Wno-cast-function-type)
