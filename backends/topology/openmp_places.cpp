#include "backends/topology/openmp_places.h"

#include <dlfcn.h>

#include <set>

namespace cputrain::topology {

std::vector<int> openmp_cpus() {
  // Looked up at run time, because builds without oneDNN have no OpenMP runtime at all.
  const auto bind = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_proc_bind"));
  const auto places = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_num_places"));
  const auto count = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "omp_get_place_num_procs"));
  const auto get =
      reinterpret_cast<void (*)(int, int*)>(dlsym(RTLD_DEFAULT, "omp_get_place_proc_ids"));
  if (!bind || !places || !count || !get || bind() == 0) return {};
  std::set<int> cpus;
  for (int place = 0; place < places(); ++place) {
    std::vector<int> ids(count(place));
    if (!ids.empty()) get(place, ids.data());
    cpus.insert(ids.begin(), ids.end());
  }
  return {cpus.begin(), cpus.end()};
}

}  // namespace cputrain::topology
