# Run by cpack between installing and packing: what Debian has elsewhere or compressed. -n leaves the time out.
find_program(GZIP gzip REQUIRED)
file(GLOB_RECURSE files ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*)
foreach(file IN LISTS files)
  if(file MATCHES "/man/man1/[^/]*[.]1$|/doc/[^/]*/changelog$")
    execute_process(COMMAND ${GZIP} -9 -n -f ${file} COMMAND_ERROR_IS_FATAL ANY)
  elseif(file MATCHES "^(.*/zsh)/site-functions/([^/]*)$")  # where its zsh looks only below /usr/local
    file(MAKE_DIRECTORY ${CMAKE_MATCH_1}/vendor-completions)
    file(RENAME ${file} ${CMAKE_MATCH_1}/vendor-completions/${CMAKE_MATCH_2})
    file(REMOVE_RECURSE ${CMAKE_MATCH_1}/site-functions)
  endif()
endforeach()
