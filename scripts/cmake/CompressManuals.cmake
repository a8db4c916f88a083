# Run by cpack between installing and packing: what Debian's packages have compressed. -n leaves the time out.
find_program(GZIP gzip REQUIRED)
file(GLOB_RECURSE files ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*)
list(FILTER files INCLUDE REGEX "/man/man1/[^/]*[.]1$|/doc/[^/]*/changelog$")
foreach(file IN LISTS files)
  execute_process(COMMAND ${GZIP} -9 -n -f ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
