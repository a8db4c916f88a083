#include "backends/cpu/short_waits.h"

#include <omp.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/casts.h"

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

/// Where OpenMP binds threads (OMP_PROC_BIND and others), it has bound this one to its first place
/// by now, and the program that is started again would take that place for all there is.
void leave_first_place() {
  if (omp_get_proc_bind() == omp_proc_bind_false) return;
  std::vector<int> cpus;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(to_size(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    cpus.insert(cpus.end(), ids.begin(), ids.end());
  }
  if (cpus.empty()) return;
  const auto count = to_size(*std::ranges::max_element(cpus)) + 1;
  cpu_set_t* const mask = CPU_ALLOC(count);
  if (!mask) return;
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, mask);
  for (const int cpu : cpus) CPU_SET_S(to_size(cpu), bytes, mask);
  ::sched_setaffinity(0, bytes, mask);
  CPU_FREE(mask);
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
  leave_first_place();
  ::execv(file, argv);
  ::unsetenv(kVariable);
}

}  // namespace cputrain::cpu
