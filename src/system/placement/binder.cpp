#include "system/placement/binder.h"

#include <strings.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace cputrain::placement {
namespace {

/// "quiet,mask_cpu:0x3", "verbose,cores": srun's words for a binding, but for "none".
bool srun_binds(const char* value) {
  if (!value) return false;
  const std::vector<std::string> words = split(value, ',');
  const auto is_one_of = [](std::string_view word, std::initializer_list<std::string_view> list) {
    return std::ranges::find(list, word) != list.end();
  };
  const auto refuses = [&](const std::string& w) { return is_one_of(w, {"none", "no", "n"}); };
  const auto binds = [&](const std::string& w) {
    return !w.empty() && !is_one_of(w, {"quiet", "q", "verbose", "v"});
  };
  return std::ranges::none_of(words, refuses) && std::ranges::any_of(words, binds);
}

using Variable = std::function<const char*(const char*)>;

/// Whether OpenMP may leave out hardware threads that the process was given. "true", "close" and
/// places such as "cores" have them all.
bool openmp_leaves_out(const Variable& variable) {
  const auto has = [&](const char* name, const char* marks) {
    const char* value = variable(name);
    return value && std::string_view(value).find_first_of(marks) != std::string_view::npos;
  };
  const char* bind = variable("OMP_PROC_BIND");
  const auto is_bound_by = [&](std::string_view word) {
    return bind && ::strncasecmp(bind, word.data(), word.size()) == 0;
  };
  return is_bound_by("master") || is_bound_by("primary") || has("OMP_PLACES", "{(") ||
         has("GOMP_CPU_AFFINITY", "0123456789") || has("KMP_AFFINITY", "[");
}

Binder read_binder_outside(const Variable& variable) {
  if (variable("OMPI_COMM_WORLD_SIZE")) {
    // mpirun's own flag is in the first one, too. The second is of version 5.
    for (const char* name :
         {"OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"}) {
      const char* policy = variable(name);
      if (!policy) continue;
      if (std::string_view(policy).starts_with("none")) return {};
      return {Binder::Kind::open_mpi, name};
    }
    return {Binder::Kind::open_mpi};
  }
  if (srun_binds(variable("SLURM_CPU_BIND"))) return {Binder::Kind::srun, "SLURM_CPU_BIND"};
  return {};
}

}  // namespace

Binder read_binder(const std::string& openmp, const Variable& variable) {
  Binder binder = read_binder_outside(variable);
  if (openmp.empty()) return binder;
  binder.openmp = openmp;
  return openmp_leaves_out(variable) ? binder.by_openmp() : binder;
}

std::string Binder::reason() const {
  if (kind == Kind::outside) return "taskset, a container, a batch system or a launcher says so";
  if (kind == Kind::open_mpi && variables == "-") {
    return "Open MPI binds like this where there are one or two ranks";
  }
  const std::string names = join(split(variables, ','), " and ");
  if (kind == Kind::open_mpi) return "--bind-to of mpirun or " + names + " says so";
  return names + (variables.find(',') == variables.npos ? " says so" : " say so");
}

std::string Binder::remedy(const std::string& slots) const {
  switch (kind) {
    case Kind::openmp:
      return "a start without " + join(split(variables, ','), " and ");
    case Kind::open_mpi:
      return "mpirun --bind-to none" + (slots.empty() ? slots : ", or --map-by " + slots);
    case Kind::srun:
      return "srun --cpu-bind=none, or more CPUs per task";
    case Kind::outside:
      break;
  }
  return "a start that gives more cores";
}

}  // namespace cputrain::placement
