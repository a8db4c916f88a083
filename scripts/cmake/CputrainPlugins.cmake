# Plugins: shared objects that a program loads when they are asked for.
find_package_or_fail(fmt libfmt-dev)  # a shared library, of which plugins have no copy either

# Modules of src that they use. A program that takes plugins has the whole of them, what it does not call itself
# included, and exports them: so there is one copy of everything in the process.
set(CPUTRAIN_PLUGIN_MODULES core system model optim comm compute)

function(cputrain_takes_plugins program)
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON)
  foreach(module IN LISTS CPUTRAIN_PLUGIN_MODULES)
    set_target_properties(${program} PROPERTIES LINK_LIBRARY_OVERRIDE_cputrain_${module} WHOLE_ARCHIVE)
  endforeach()
endfunction()

# contracts.h: what a program and its plugins must be made from alike, as a text. Targets that include it link
# cputrain_contracts and call cputrain_reads_contracts.
set(headers backends/cuda/plugin/plugin_api.h)
foreach(module IN LISTS CPUTRAIN_PLUGIN_MODULES)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/${module}/*.h)
  list(APPEND headers ${found})
endforeach()
set(folder ${PROJECT_BINARY_DIR}/contracts)
set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
set(options "${CMAKE_CXX_FLAGS} ${CPUTRAIN_SANITIZE}")
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
add_custom_command(OUTPUT ${folder}/contracts.h VERBATIM COMMENT "What plugins and programs have in common"
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} "-DHEADERS=${headers}" "-DVERSION=${PROJECT_VERSION}"
          "-DCOMPILER=${compiler}" "-DOPTIONS=${options}" -DOUTPUT=${folder}/contracts.h
          -P ${PROJECT_SOURCE_DIR}/scripts/cmake/WriteContracts.cmake
  DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/scripts/cmake/WriteContracts.cmake)
add_custom_target(cputrain_contracts_file DEPENDS ${folder}/contracts.h)
add_library(cputrain_contracts INTERFACE)
target_include_directories(cputrain_contracts INTERFACE ${folder})

function(cputrain_reads_contracts)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE cputrain_contracts)
    add_dependencies(${target} cputrain_contracts_file)
  endforeach()
endfunction()
