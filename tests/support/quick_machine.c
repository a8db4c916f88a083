// Loaded before libc, it makes a machine on which tests wait for less:
// - sysconf() knows of no third-level cache. The memory's limit is then measured in the smallest arrays and not in four
//   times the cache of a whole socket, which takes seconds to touch.
// - fsync() and fdatasync() of an open file wait for no disk. What a killed process has written is in the kernel's cache
//   all the same.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

static long (*own_sysconf)(int);

// Not at the first call: that may be in a child which must not wait for the loader's lock.
__attribute__((constructor)) static void find_own(void) { own_sysconf = (long (*)(int))dlsym(RTLD_NEXT, "sysconf"); }

long sysconf(int name) {
  if (own_sysconf == NULL) find_own();
  return name == _SC_LEVEL3_CACHE_SIZE ? 0 : own_sysconf(name);
}

int fsync(int fd) { return fcntl(fd, F_GETFD) < 0 ? -1 : 0; }

int fdatasync(int fd) { return fsync(fd); }
