# cmake -DROOT=FOLDER -DPROGRAM=FILE -P RootLink.cmake: FOLDER/cputrain leads to FILE. A program inside of FOLDER is
# named from there, so that the link moves with the folder. Where the link cannot be made (sources that cannot be
# written), a line says so: the program is built all the same.
set(link ${ROOT}/cputrain)
cmake_path(IS_PREFIX ROOT ${PROGRAM} NORMALIZE inside)
if(inside)
  cmake_path(RELATIVE_PATH PROGRAM BASE_DIRECTORY ${ROOT})
endif()
if(IS_SYMLINK ${link})
  file(READ_SYMLINK ${link} target)
  if(target STREQUAL PROGRAM)
    return()
  endif()
endif()
file(CREATE_LINK ${PROGRAM} ${link} RESULT result SYMBOLIC)
if(NOT result STREQUAL 0)
  string(STRIP "${result}" result)
  message("${link} could not be made (${result}); the program is ${PROGRAM}, and -DCPUTRAIN_ROOT_LINK=OFF leaves the link out")
endif()
