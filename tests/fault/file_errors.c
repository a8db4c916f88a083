/* Loaded before a program (LD_PRELOAD), it answers calls as file systems do that lack them, or whose disk fails:
     FILE_ERRORS=CALL:ERRNO:N    the Nth call of that kind fails, `N+`: and all after it; ERRNO 0 counts them alone
     FILE_ERRORS_IN=FOLDER       of files in there, an absolute path
     FILE_ERRORS_MET=FILE        gets a byte for each call that met it
   CALL `nlink` is none: all files have st_nlink 0 then. No fsync waits for a disk: nothing here loses power. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) (*(__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_within(const char* path) {
  const char* folder = getenv("FILE_ERRORS_IN");
  char whole[2 * PATH_MAX];
  if (path == NULL || folder == NULL) return 0;
  if (path[0] == '/') {
    snprintf(whole, sizeof whole, "%s", path);
  } else {
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) == NULL) return 0;
    snprintf(whole, sizeof whole, "%s/%s", here, path);
  }
  return strncmp(whole, folder, strlen(folder)) == 0;
}

static int is_open_within(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = '\0';
  return is_within(path);
}

static int is_folder(const char* path) {
  struct stat about;
  return syscall(SYS_newfstatat, AT_FDCWD, path, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode);
}

/* Whether this call is to fail; errno says how. */
static int fails(const char* call, int within) {
  static int calls = 0;
  const char* asked = getenv("FILE_ERRORS");
  const size_t size = strlen(call);
  int error = 0, first = 1;
  char more = '\0';
  if (!within || asked == NULL || strncmp(asked, call, size) != 0 || asked[size] != ':') return 0;
  if (sscanf(asked + size + 1, "%d:%d%c", &error, &first, &more) < 2) return 0;
  const int n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (n != first && !(more == '+' && n > first)) return 0;
  const int met = (int)syscall(SYS_openat, AT_FDCWD, getenv("FILE_ERRORS_MET"), O_WRONLY | O_CREAT | O_APPEND, 0644);
  syscall(SYS_write, met, "x", 1);
  syscall(SYS_close, met);
  errno = error;
  return error != 0;
}

int fsync(int fd) {
  struct stat about;
  const int folder = syscall(SYS_fstat, fd, &about) == 0 && S_ISDIR(about.st_mode);
  return fails(folder ? "fsync_folder" : "fsync", is_open_within(fd)) || REAL(fcntl)(fd, F_GETFD) < 0 ? -1 : 0;
}

static int locks(int command) { return command == F_OFD_SETLK || command == F_OFD_GETLK || command == F_OFD_SETLKW; }

int fcntl(int fd, int command, ...) {
  va_list words;
  va_start(words, command);
  void* word = va_arg(words, void*);
  va_end(words);
  return locks(command) && fails("lock", is_open_within(fd)) ? -1 : REAL(fcntl)(fd, command, word);
}

int fcntl64(int fd, int command, ...) {
  va_list words;
  va_start(words, command);
  void* word = va_arg(words, void*);
  va_end(words);
  return locks(command) && fails("lock", is_open_within(fd)) ? -1 : REAL(fcntl64)(fd, command, word);
}

int rename(const char* from, const char* to) {
  return fails(is_folder(from) ? "rename_folder" : "rename", is_within(to)) ? -1 : REAL(rename)(from, to);
}

int renameat2(int from, const char* old, int to, const char* new, unsigned how) {
  return fails("exchange", is_within(new)) ? -1 : REAL(renameat2)(from, old, to, new, how);
}

int link(const char* from, const char* to) { return fails("link", is_within(to)) ? -1 : REAL(link)(from, to); }

int unlink(const char* path) { return fails("unlink", is_within(path)) ? -1 : REAL(unlink)(path); }

int remove(const char* path) { return fails("unlink", is_within(path)) ? -1 : REAL(remove)(path); }

int unlinkat(int folder, const char* path, int how) {
  const int within = folder == AT_FDCWD || path[0] == '/' ? is_within(path) : is_open_within(folder);
  return fails("unlink", within) ? -1 : REAL(unlinkat)(folder, path, how);
}

int rmdir(const char* path) { return fails("unlink", is_within(path)) ? -1 : REAL(rmdir)(path); }

int mkdir(const char* path, mode_t mode) { return fails("mkdir", is_within(path)) ? -1 : REAL(mkdir)(path, mode); }

int ftruncate(int fd, off_t size) { return fails("truncate", is_open_within(fd)) ? -1 : REAL(ftruncate)(fd, size); }

int fchmod(int fd, mode_t mode) { return fails("chmod", is_open_within(fd)) ? -1 : REAL(fchmod)(fd, mode); }

ssize_t write(int fd, const void* bytes, size_t size) {
  return fails("write", is_open_within(fd)) ? -1 : REAL(write)(fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return fails("write", is_open_within(fd)) ? -1 : REAL(pwrite)(fd, bytes, size, offset);
}

ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  return fails("read", is_open_within(fd)) ? -1 : REAL(pread)(fd, bytes, size, offset);
}

/* Closed it is in any case, as by the kernel. */
int close(int fd) {
  const int failed = fails("close", is_open_within(fd)), error = errno;
  const int result = REAL(close)(fd);
  if (failed) errno = error;
  return failed ? -1 : result;
}

static const char* kind_of_open(int flags) {
  return flags & O_CREAT ? "create" : flags & O_DIRECTORY ? "open_folder" : "open";
}

int open(const char* path, int flags, ...) {
  va_list words;
  va_start(words, flags);
  const mode_t mode = va_arg(words, mode_t);
  va_end(words);
  return fails(kind_of_open(flags), is_within(path)) ? -1 : REAL(open)(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list words;
  va_start(words, flags);
  const mode_t mode = va_arg(words, mode_t);
  va_end(words);
  return fails(kind_of_open(flags), is_within(path)) ? -1 : REAL(open64)(path, flags, mode);
}

int fstat(int fd, struct stat* about) {
  const int result = REAL(fstat)(fd, about);
  if (result == 0 && S_ISREG(about->st_mode) && fails("nlink", is_open_within(fd))) about->st_nlink = 0;
  return result;
}
