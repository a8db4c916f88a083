#pragma once

#include <mpi.h>

#include <exception>
#include <string>

#include "core/array.h"
#include "core/error.h"

namespace cputrain::mpi {

/// Every MPI call of ours goes through here: check(MPI_Barrier(comm), "MPI_Barrier"). The error
/// handlers of all our handles are MPI_ERRORS_RETURN, so failures arrive as codes.
inline void check(
    int code, const char* call,
    const char* remedy =
        "look above for MPI's own message, and check the network and the other ranks") {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(ExitCode::internal, std::string(call) + " failed: " + std::string(text, length) +
                               " (the ranks cannot go on without it); " + remedy);
}

inline MPI_Datatype mpi_type(DType type) { return type == DType::f32 ? MPI_FLOAT : MPI_DOUBLE; }

/// Whether MPI can still be asked to clean up: an exception on its way to main means that the other
/// ranks will not take part, and after MPI_Finalize there is nothing to do.
inline bool may_clean_up() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return !finalized && std::uncaught_exceptions() == 0;
}

}  // namespace cputrain::mpi
