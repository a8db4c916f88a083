# Compile options of all our targets, in one interface target.
add_library(cputrain_options INTERFACE)
target_include_directories(cputrain_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_compile_options(cputrain_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wmissing-declarations
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # GCC 12 reports std::string concatenation falsely (its bug 105651)
if(CPUTRAIN_WERROR)
  target_compile_options(cputrain_options INTERFACE -Werror)
endif()
if(CPUTRAIN_SANITIZE)
  target_compile_options(cputrain_options INTERFACE
    -fsanitize=${CPUTRAIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(cputrain_options INTERFACE -fsanitize=${CPUTRAIN_SANITIZE})
endif()

# The target's files are compiled sixteen at a time, as one: most time goes into headers. Constants, types and functions
# of one signature then need names that are unique in the target, also in unnamed namespaces.
function(cputrain_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${CPUTRAIN_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# cputrain_precompile_headers(target header...)  an object library with these headers of libraries, which others reuse:
# to parse them takes the compiler longer than most files of ours. Only where files are compiled together: one by one,
# each shows that it includes what it uses.
function(cputrain_precompile_headers target)
  if(CPUTRAIN_UNITY)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp CONTENT "")
    add_library(${target} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# cputrain_reuse_headers(target from)  GCC takes them only if all that changes code is the same: optimisation, PIC.
function(cputrain_reuse_headers target from)
  if(TARGET ${from} AND NOT target STREQUAL from)
    target_precompile_headers(${target} REUSE_FROM ${from})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # for ccache
  endif()
endfunction()

# Objects of modules are linked into cputrain-smpi, too, a shared object. Calls inside a file stay as direct as before.
function(cputrain_compile_for_shared_objects target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
endfunction()

# The target only reads, plans and prints: to optimise it further takes twice as long.
function(cputrain_compile_texts target)
  # At -O1 GCC 12 reports std::string concatenation falsely.
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>
                                           $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  cputrain_compile_for_shared_objects(${target})
  cputrain_reuse_headers(${target} cputrain_headers_of_texts)
endfunction()

# cputrain_add_module(name
#   SOURCES file...    of the folder src/name
#   [LINKS module...]  folders of src whose headers it includes
#   [TEXTS])           cputrain_compile_texts()
function(cputrain_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TEXTS" "" "SOURCES;LINKS")
  list(TRANSFORM arg_LINKS PREPEND cputrain_)
  add_library(cputrain_${name} STATIC ${arg_SOURCES})
  target_link_libraries(cputrain_${name} PUBLIC ${arg_LINKS} cputrain_options fmt::fmt
                        nlohmann_json::nlohmann_json)
  cputrain_compile_together(cputrain_${name})
  if(arg_TEXTS)
    cputrain_compile_texts(cputrain_${name})
  else()
    cputrain_compile_for_shared_objects(cputrain_${name})
  endif()
endfunction()

# Older Debian packages ship no CMake files: find_package_or_fail(TBB "libtbb-dev") names the remedy.
macro(find_package_or_fail package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found (it is needed with these options); "
                        "install ${debian} or run scripts/build, which does")
  endif()
endmacro()

# cputrain_load_late(target NAME library debian): the target's code loads this library with its first use, and is not
# linked with it. CPUTRAIN_NAME_FILES is what a LateLibrary (src/system) is made of. Packages recommend the library.
function(cputrain_load_late target name library debian)
  # "SONAME  libhdf5.so.103" of objdump, "(SONAME)  Library soname: [libhdf5.so.103]" of readelf.
  if(CMAKE_OBJDUMP)
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE parts ERROR_QUIET)
  else()
    execute_process(COMMAND ${CMAKE_READELF} -d ${library} OUTPUT_VARIABLE parts ERROR_QUIET)
  endif()
  string(REGEX MATCH "SONAME.? +[^\n]*(lib[^] \n]+)" found "${parts}")
  if(NOT found)
    message(FATAL_ERROR "${library} does not say what it is called when it is loaded (it is no shared library?); "
                        "install ${debian}, or turn off the option that wants it")
  endif()
  target_compile_definitions(${target} PRIVATE
                             CPUTRAIN_${name}_FILES="${CMAKE_MATCH_1}","${library}","${debian}")
  set_property(GLOBAL APPEND PROPERTY CPUTRAIN_LATE_LIBRARIES ${library})
endfunction()
