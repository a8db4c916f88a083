// Loaded before libc: sysconf() knows of no third-level cache. The memory's limit is then measured in the smallest arrays
// and not in four times the cache of a whole socket, which takes seconds to touch.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

long sysconf(int name) {
  long (*own)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
  return name == _SC_LEVEL3_CACHE_SIZE ? 0 : own(name);
}
