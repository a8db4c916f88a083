# Compile options of all our targets, in one interface target.
add_library(cputrain_options INTERFACE)
target_include_directories(cputrain_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_compile_options(cputrain_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wno-restrict)  # GCC 12 reports std::string concatenation falsely (its bug 105651)
if(CPUTRAIN_WERROR)
  target_compile_options(cputrain_options INTERFACE -Werror)
endif()
if(CPUTRAIN_SANITIZE)
  target_compile_options(cputrain_options INTERFACE
    -fsanitize=${CPUTRAIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(cputrain_options INTERFACE -fsanitize=${CPUTRAIN_SANITIZE})
endif()

# Older Debian packages ship no CMake files: find_package_or_fail(TBB "libtbb-dev") names the remedy.
macro(find_package_or_fail package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found (it is needed with these options); "
                        "install ${debian} or run scripts/build, which does")
  endif()
endmacro()
