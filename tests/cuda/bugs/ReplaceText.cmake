# cmake -DFROM=FILE -DTO=FILE "-DTEXT=WORDS" "-DBY=WORDS" -P ReplaceText.cmake: a copy of a file in which a text, which
# must be there once, stands for another.
file(READ ${FROM} content)
string(FIND "${content}" "${TEXT}" first)
string(FIND "${content}" "${TEXT}" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
  message(FATAL_ERROR "${FROM} does not have this text once (a bug is planted there for tests): ${TEXT}\n"
                      "Say in tests/cuda/bugs/CMakeLists.txt how the code reads now.")
endif()
string(REPLACE "${TEXT}" "${BY}" content "${content}")
file(WRITE ${TO} "${content}")
