#pragma once

#include <functional>
#include <string>

namespace cputrain::placement {

/// What keeps a rank to some of a machine's hardware threads, and what to try where that is wrong.
struct Binder {
  enum class Kind {
    outside,   ///< taskset, a container, a batch system, a launcher that does not say
    openmp,    ///< the OpenMP runtime, which has bound this process' threads
    open_mpi,  ///< Open MPI's mpirun
    srun
  };
  Kind kind = Kind::outside;
  std::string variables = "-";  ///< that say so, "OMP_PROC_BIND,OMP_PLACES"; "-" where none does

  bool operator==(const Binder&) const = default;

  /// "OMP_PROC_BIND and OMP_PLACES say so", in brackets behind what is wrong.
  std::string reason() const;
  /// "a start without OMP_PROC_BIND and OMP_PLACES", behind "try". `slots`: for mpirun's --map-by,
  /// which gives as many cores.
  std::string remedy(const std::string& slots = "") const;
};

/// From the environment. `openmp`: the variables by which the OpenMP runtime binds threads; empty
/// where it does not.
Binder read_binder(const std::string& openmp,
                   const std::function<const char*(const char*)>& variable);

}  // namespace cputrain::placement
