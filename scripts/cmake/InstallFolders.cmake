# Run by an install before its files, with `folders` below its prefix: makes those that are not there, so that all users
# can enter them. Left to itself, CMake would make them with the umask of who installs, whatever
# CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS says. Folders that are there stay as they are.
foreach(folder IN LISTS folders)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
  set(folder $ENV{DESTDIR}${folder})
  cmake_path(ABSOLUTE_PATH folder)  # `--prefix here` and DESTDIR=here begin where the install is started
  set(missing)
  while(NOT EXISTS ${folder})
    list(PREPEND missing ${folder})
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
  foreach(made IN LISTS missing)
    file(MAKE_DIRECTORY ${made})
    file(CHMOD ${made} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
         WORLD_READ WORLD_EXECUTE)
  endforeach()
endforeach()
