#include "system/placement/binder.h"

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

}  // namespace

Binder read_binder(const std::string& openmp,
                   const std::function<const char*(const char*)>& variable) {
  if (!openmp.empty()) return {Binder::Kind::openmp, openmp};
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
