#pragma once

#include <functional>
#include <string>

namespace cputrain::placement {

/// What keeps a rank to some of a machine's hardware threads, and what to try where that is wrong.
struct Binder {
  enum class Kind {
    outside,   ///< taskset, a container, a batch system, a launcher that does not say
    openmp,    ///< the OpenMP runtime, by places that a variable lists, or by the first one alone
    open_mpi,  ///< Open MPI's mpirun
    srun
  };
  Kind kind = Kind::outside;
  std::string variables = "-";  ///< that say so, "OMP_PROC_BIND,OMP_PLACES"; "-" where none does
  /// By which OpenMP binds threads within what the rank was given, or to less; "-" where it does
  /// not.
  std::string openmp = "-";

  bool operator==(const Binder&) const = default;
  bool openmp_binds() const { return openmp != "-"; }
  /// The same as if OpenMP alone kept the rank to them.
  Binder by_openmp() const { return {Kind::openmp, openmp, openmp}; }

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
