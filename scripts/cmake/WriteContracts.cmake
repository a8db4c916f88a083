# cmake -DSOURCE=ROOT -DHEADERS=a.h;b.h -DVERSION=V -DCOMPILER=TEXT -DOPTIONS=TEXT -DOUTPUT=FILE -P
# WriteContracts.cmake: a header with one macro, a text that differs wherever a plugin and a program could lay out their
# objects differently. Where nothing changed, OUTPUT keeps its time.
cmake_minimum_required(VERSION 3.25)
set(all "${OPTIONS}")
foreach(header IN LISTS HEADERS)
  file(SHA256 ${SOURCE}/${header} hash)
  string(APPEND all " ${header} ${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
set(text "cputrain ${VERSION}, ${COMPILER}, headers ${hash}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define CPUTRAIN_CONTRACTS \"@text@\"\n" @ONLY)
