# The libraries that are tested are optimised as ever; of tests' own code little is worth waiting for.
function(cputrain_compile_as_test target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1> -Wno-stringop-overflow)
endfunction()

# cputrain_add_test(name
#   SOURCES file...          one GoogleTest program
#   LABELS unit|data|...     for ctest -L
#   [LIBRARIES target...]    besides core, backends and datasets
#   [RANKS n...]             run under ${CPUTRAIN_MPIRUN} once for each n, instead of directly
#   [PARTS n]                as n tests, so that its cases share the cores
#   [TIMEOUT seconds]        default 120
#   [ENVIRONMENT VAR=value...])
function(cputrain_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;PARTS" "SOURCES;LABELS;LIBRARIES;RANKS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE cputrain_cli cputrain_backends cputrain_datasets
                        cputrain_options GTest::gtest ${arg_LIBRARIES})
  cputrain_compile_as_test(test_${name})
  if(NOT arg_RANKS)
    target_link_libraries(test_${name} PRIVATE GTest::gtest_main)
    if(arg_PARTS)
      foreach(part RANGE 1 ${arg_PARTS})
        math(EXPR index "${part} - 1")
        add_test(NAME ${name}_${part}_of_${arg_PARTS} COMMAND test_${name})
        set_tests_properties(${name}_${part}_of_${arg_PARTS} PROPERTIES LABELS "${arg_LABELS}"
          TIMEOUT ${arg_TIMEOUT}
          ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index};${arg_ENVIRONMENT}")
      endforeach()
      return()
    endif()
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                         ENVIRONMENT "${arg_ENVIRONMENT}")
    return()
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    add_test(NAME ${name}_np${ranks}
      COMMAND ${CPUTRAIN_MPIRUN} -np ${ranks} $<TARGET_FILE:test_${name}>)
    set_tests_properties(${name}_np${ranks} PROPERTIES LABELS "${arg_LABELS}"
                         TIMEOUT ${arg_TIMEOUT} PROCESSORS ${ranks}
                         ENVIRONMENT "OMP_NUM_THREADS=1;${arg_ENVIRONMENT}")
  endforeach()
endfunction()
