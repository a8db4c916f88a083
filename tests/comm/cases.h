#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

/// What every communicator must do, whatever carries the data: run on one process, on threads and
/// on MPI ranks, on one node and on several. Expected values are formulas of rank, size and
/// position, in whole numbers, so that any order of additions gives the same bits.
namespace cputrain::comm {

struct CommCase {
  std::string name;
  std::function<void(Communicator&)> body;
};

/// Cases about single calls (collective_cases.cpp).
std::vector<CommCase> collective_cases();
/// Every algorithm of allreduce (allreduce_cases.cpp).
std::vector<CommCase> allreduce_cases();

}  // namespace cputrain::comm
