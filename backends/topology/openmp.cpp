#include "backends/topology/openmp.h"

#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string_view>

namespace cputrain::topology {
namespace {

/// A function of OpenMP, looked up at run time: builds without oneDNN have no such runtime at all.
template <class F>
F* function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

/// The first of these variables that is set.
std::string set_of(std::initializer_list<const char*> variables) {
  for (const char* name : variables) {
    const char* value = std::getenv(name);
    if (value && *value) return name;
  }
  return "OpenMP";
}

}  // namespace

std::vector<int> openmp_cpus() {
  const auto bind = function<int()>("omp_get_proc_bind");
  const auto places = function<int()>("omp_get_num_places");
  const auto count = function<int(int)>("omp_get_place_num_procs");
  const auto get = function<void(int, int*)>("omp_get_place_proc_ids");
  if (!bind || !places || !count || !get || bind() == 0) return {};
  constexpr int kPrimary = 2;  // omp_proc_bind_primary: all threads stay where the first one is
  const int used = std::min(places(), bind() == kPrimary ? 1 : INT_MAX);
  std::set<int> cpus;
  for (int place = 0; place < used; ++place) {
    std::vector<int> ids(count(place));
    if (!ids.empty()) get(place, ids.data());
    cpus.insert(ids.begin(), ids.end());
  }
  return {cpus.begin(), cpus.end()};
}

std::string openmp_binds() {
  if (openmp_cpus().empty()) return "";
  std::string set;
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    const bool known = std::string_view(name) != "KMP_AFFINITY" ||
                       dlsym(RTLD_DEFAULT, "kmp_get_blocktime") != nullptr;  // LLVM's runtime
    const char* value = std::getenv(name);
    if (known && value && *value) (set += set.empty() ? "" : ",") += name;
  }
  return set;
}

TeamLimit openmp_team_limit() {
  const auto limit = function<int()>("omp_get_thread_limit");
  const auto levels = function<int()>("omp_get_max_active_levels");
  if (levels && levels() <= 0) return {1, set_of({"OMP_MAX_ACTIVE_LEVELS"})};
  if (!limit || limit() >= INT_MAX) return {};
  return {limit(), set_of({"OMP_THREAD_LIMIT", "KMP_DEVICE_THREAD_LIMIT", "KMP_ALL_THREADS"})};
}

}  // namespace cputrain::topology
