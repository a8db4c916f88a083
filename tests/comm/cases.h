#pragma once

#include <span>

#include "comm/communicator.h"

/// What every communicator must do, whatever carries the data: run on one process, on threads and
/// on MPI ranks. Expected values are formulas of rank, size and position, in whole numbers, so that
/// any order of additions gives the same bits.
namespace cputrain {

struct CommCase {
  const char* name;
  void (*body)(Communicator&);
};

/// Cases about single calls (collective_cases.cpp).
std::span<const CommCase> collective_cases();
/// Cases about the gradient exchange (exchange_cases.cpp).
std::span<const CommCase> exchange_cases();

}  // namespace cputrain
