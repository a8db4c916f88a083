# cmake -DSOURCE=ROOT -DTEMPLATE=FILE -DOUTPUT=FILE -P WriteCommit.cmake: the template with CPUTRAIN_COMMIT, the
# commit of the sources in ROOT, `-dirty` behind it where files differ from it, results/ excepted, of which nothing is
# compiled; `unknown` where ROOT is no checkout of its own (a tarball, perhaps inside another project's). Where nothing
# changed, OUTPUT keeps its time. A checkout whose commit cannot be asked for (git refuses those of other users) gets a
# line.
set(CPUTRAIN_COMMIT unknown)
set(refusal "git is not installed")
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${SOURCE}/.git)
  set(ENV{GIT_OPTIONAL_LOCKS} 0)  # a build must not stand in the way of somebody's commit
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short HEAD
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_VARIABLE refusal ERROR_STRIP_TRAILING_WHITESPACE)
  if(commit MATCHES "^[0-9a-f]+$")
    execute_process(COMMAND ${GIT_EXECUTABLE} diff --quiet HEAD -- . ":(exclude)results"
      WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE changed OUTPUT_QUIET ERROR_QUIET)
    if(changed)
      string(APPEND commit -dirty)
    endif()
    set(CPUTRAIN_COMMIT ${commit})
  endif()
endif()
if(CPUTRAIN_COMMIT STREQUAL unknown AND EXISTS ${SOURCE}/.git)
  message("the commit of the sources is unknown, and --version says so: ${refusal}")
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
