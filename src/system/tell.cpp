#include "system/tell.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/text.h"

namespace cputrain::system {

void tell(std::string_view line) {
  const std::string safe = escaped(line) + "\n";
  std::fwrite(safe.data(), 1, safe.size(), stderr);
}

void never_wait_for_readers() {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat about {};
    if (::fstat(descriptor, &about) != 0) continue;
    if (!S_ISFIFO(about.st_mode) && !S_ISCHR(about.st_mode) && !S_ISSOCK(about.st_mode)) continue;
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
}

}  // namespace cputrain::system
