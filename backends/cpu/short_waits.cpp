#include "backends/cpu/short_waits.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace cputrain::cpu {
namespace {

/// Turns of libgomp's loop, each a load and a pause instruction: 15 to 50 ns, so 30 to 100 us.
/// `tests/bench/busy_machine.py` compares others.
constexpr const char* kSpins = "2000";

bool same_file(const char* a, const char* b) {
  struct stat first {
  }, second{};
  if (::stat(a, &first) != 0 || ::stat(b, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// This program's file; nullptr where it cannot be started as it was: by the dynamic loader as a
/// command of its own (the kernel then loaded no interpreter), or within valgrind, which would be
/// left.
const char* own_file() {
  constexpr const char* kLink = "/proc/self/exe";
  const char* preloaded = std::getenv("LD_PRELOAD");
  if (preloaded && std::strstr(preloaded, "vgpreload")) return nullptr;
  if (::getauxval(AT_BASE) == 0) return nullptr;
  // By the name it was started with, by which the system lists it, if that is still this file.
  const auto* name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  const bool has_link = ::access(kLink, X_OK) == 0;
  if (name && (!has_link || same_file(name, kLink))) return name;
  return has_link ? kLink : nullptr;
}

}  // namespace

void wait_shortly(char** argv) {
  constexpr const char* kVariable = "GOMP_SPINCOUNT";
  const char* spins = std::getenv(kVariable);
  // Started again: libgomp has read it, and what is left in the environment is a person's choice.
  if (spins && std::strcmp(spins, kSpins) == 0) ::unsetenv(kVariable);
  if (spins || std::getenv("OMP_WAIT_POLICY")) return;
  const char* file = own_file();
  if (!file) return;
  ::setenv(kVariable, kSpins, 1);
  ::execv(file, argv);
  ::unsetenv(kVariable);
}

}  // namespace cputrain::cpu
