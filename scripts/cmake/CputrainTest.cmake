# Assertions have the file's name from the project's root on, so that ccache finds them in another checkout, too.
function(cputrain_name_files_from_root target)
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
endfunction()

# The libraries that are tested are optimised as ever. Tests' own code is not, which saves the compiler a quarter of its
# time, except where COMPUTES says that it computes much: that is -O1, and without the precompiled header, which is -O0.
function(cputrain_compile_as_test target)
  cputrain_name_files_from_root(${target})
  set(optimised -O0)
  if(ARGN STREQUAL COMPUTES)
    set(optimised $<$<NOT:$<CONFIG:Debug>>:-O1>)
  else()
    cputrain_reuse_headers(${target} cputrain_headers_of_tests)
  endif()
  # GCC 13 and 14 take a reference into a container for one to the temporary key that found it.
  target_compile_options(${target} PRIVATE ${optimised}
                         "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-dangling-reference>")
endfunction()

# GoogleTest and what most tests include are parsed once, which is a third of the compiler's work for them. One
# precompiled header serves all targets of cputrain_compile_as_test; one with options of its own has the property
# DISABLE_PRECOMPILE_HEADERS.
function(cputrain_precompile_headers_of_tests)
  cputrain_precompile_headers(cputrain_headers_of_tests <gtest/gtest.h> <algorithm> <array> <atomic> <chrono>
    <cmath> <filesystem> <fstream> <functional> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span>
    <string> <thread> <unordered_map> <vector> <fmt/format.h> <nlohmann/json.hpp>)
  if(TARGET cputrain_headers_of_tests)
    target_link_libraries(cputrain_headers_of_tests PRIVATE cputrain_modules cputrain_backends cputrain_datasets
                          cputrain_test_data cputrain_options GTest::gtest)
    cputrain_compile_as_test(cputrain_headers_of_tests)
  endif()
endfunction()

# A folder of tests and its tests have one name: what tests/backends/cpu registers is called backends_cpu or
# backends_cpu_..., and has the labels `backends` and `cpu`, the folders of its path, and those that are given.
function(cputrain_label_test name)
  file(RELATIVE_PATH folders ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" ";" folders ${folders})
  list(JOIN folders _ prefix)
  if(NOT name MATCHES "^${prefix}(_|$)")
    message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR} has a test ${name}: its name must begin with ${prefix}")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${folders};${ARGN}")
endfunction()

# libgomp's threads wait by spinning, each on a core that another test could have. (The program sees to that
# itself, and its tests from outside leave it to it.)
set(CPUTRAIN_TESTS_SHARE_CORES OMP_WAIT_POLICY=passive)

# cputrain_add_library_of_tests(name SOURCES file... [LIBRARIES target...]): what several tests share
function(cputrain_add_library_of_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_library(cputrain_${name} STATIC ${arg_SOURCES})
  target_link_libraries(cputrain_${name} PUBLIC cputrain_modules cputrain_backends cputrain_test_data
                        cputrain_options ${arg_LIBRARIES})
  cputrain_name_files_from_root(cputrain_${name})
  cputrain_compile_together(cputrain_${name})
endfunction()

# cputrain_add_test(name       which begins with the folder's
#   SOURCES file...            one GoogleTest program
#   [LIBRARIES target...]      besides core, backends and datasets
#   [RANKS n...]               run under ${CPUTRAIN_MPIRUN} once for each n, instead of directly
#   [PARTS n]                  as n tests, so that its cases share the cores
#   [TIMEOUT seconds]          default 900, since a shared machine may stand still for minutes
#   [COST seconds]             of long ones, which begin first: a core is not left idle at the end
#   [LABELS label...]          besides the folder's
#   [COMPUTES]                 so much that its code is worth optimising
#   [ENVIRONMENT VAR=value...])
function(cputrain_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPUTES" "COST;TIMEOUT;PARTS" "SOURCES;LABELS;LIBRARIES;RANKS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  list(PREPEND arg_ENVIRONMENT ${CPUTRAIN_TESTS_SHARE_CORES})
  add_executable(test_${name} ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE cputrain_modules cputrain_backends cputrain_datasets
                        cputrain_test_data cputrain_options GTest::gtest ${arg_LIBRARIES})
  set(computes)
  if(arg_COMPUTES)
    set(computes COMPUTES)
  endif()
  cputrain_compile_as_test(test_${name} ${computes})
  cputrain_compile_together(test_${name})
  if(NOT arg_RANKS)
    target_link_libraries(test_${name} PRIVATE GTest::gtest_main)
    if(arg_PARTS)
      foreach(part RANGE 1 ${arg_PARTS})
        math(EXPR index "${part} - 1")
        add_test(NAME ${name}_${part}_of_${arg_PARTS} COMMAND test_${name})
        set_tests_properties(${name}_${part}_of_${arg_PARTS} PROPERTIES TIMEOUT ${arg_TIMEOUT} COST ${arg_COST}
          ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index};${arg_ENVIRONMENT}")
        cputrain_label_test(${name}_${part}_of_${arg_PARTS} ${arg_LABELS})
      endforeach()
      return()
    endif()
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} COST ${arg_COST} ENVIRONMENT "${arg_ENVIRONMENT}")
    cputrain_label_test(${name} ${arg_LABELS})
    return()
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    add_test(NAME ${name}_np${ranks}
      COMMAND ${CPUTRAIN_MPIRUN} -np ${ranks} $<TARGET_FILE:test_${name}>)
    set_tests_properties(${name}_np${ranks} PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${ranks} COST ${ranks}000
                         ENVIRONMENT "OMP_NUM_THREADS=1;${arg_ENVIRONMENT}")
    cputrain_label_test(${name}_np${ranks} ${arg_LABELS})
  endforeach()
endfunction()

# cputrain_add_variant(name OF test FILTER pattern ENVIRONMENT VAR=value... [LABELS label...]): some cases of a program
# of tests once more, under other circumstances
function(cputrain_add_variant name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OF;FILTER" "ENVIRONMENT;LABELS")
  list(PREPEND arg_ENVIRONMENT ${CPUTRAIN_TESTS_SHARE_CORES})
  add_test(NAME ${name} COMMAND test_${arg_OF} --gtest_filter=${arg_FILTER})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT "${arg_ENVIRONMENT}")
  cputrain_label_test(${name} ${arg_LABELS})
endfunction()

# cputrain_add_python_tests(
#   [PROCESSORS n]   that each keeps busy, waiting taken off; default 1. Those with several begin first
#   [COST seconds]   of long ones, which begin first, too
#   [PROGRAM target] that they start; default cputrain
#   [ENVIRONMENT VAR=value...]
#   SUITES what...)  what_test.py, the test FOLDER_what; a suite written `what:variant` is FOLDER_what_variant. FOLDER
#                    is the path below tests, with _ between its folders
# They start the program itself, so they have the label `program`. Helpers lie in tests/cli. They say why they skip
# something (-v).
function(cputrain_add_python_tests)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "COST;PROCESSORS;PROGRAM" "SUITES;ENVIRONMENT")
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  if(NOT arg_PROGRAM)
    set(arg_PROGRAM cputrain)
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" folder ${folder})
  foreach(suite IN LISTS arg_SUITES)
    string(REGEX REPLACE ":.*" "" file ${suite})
    string(REPLACE ":" "_" name ${folder}_${suite})
    add_test(NAME ${name} COMMAND ${CPUTRAIN_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/${file}_test.py -v)
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 PROCESSORS ${arg_PROCESSORS}
      ENVIRONMENT "CPUTRAIN=$<TARGET_FILE:${arg_PROGRAM}>;CPUTRAIN_MPIRUN=${CPUTRAIN_MPIRUN_WORDS};CPUTRAIN_SIMULATES=$<BOOL:${CPUTRAIN_SMPI}>;${arg_ENVIRONMENT}"
      ENVIRONMENT_MODIFICATION "PYTHONPATH=path_list_prepend:${PROJECT_SOURCE_DIR}/tests/cli")
    if(arg_PROCESSORS GREATER 1)
      set_tests_properties(${name} PROPERTIES COST ${arg_PROCESSORS}000)
    elseif(arg_COST)
      set_tests_properties(${name} PROPERTIES COST ${arg_COST})
    endif()
    cputrain_label_test(${name} program)
  endforeach()
endfunction()
