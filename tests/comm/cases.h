#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

/// What every communicator must do, whatever carries the data: run on one process, on threads and
/// on MPI ranks, on one node and on several. Expected values are formulas of rank, size and
/// position, in whole numbers, so that any order of additions gives the same bits.
namespace cputrain {

struct CommCase {
  std::string name;
  std::function<void(Communicator&)> body;
};

/// Cases about single calls (collective_cases.cpp).
std::vector<CommCase> collective_cases();
/// Every algorithm of allreduce (allreduce_cases.cpp).
std::vector<CommCase> allreduce_cases();
/// Every way to exchange gradients (exchange_cases.cpp).
std::vector<CommCase> exchange_cases();
/// Sums of leaves in a fixed order (ordered_exchange_cases.cpp).
std::vector<CommCase> ordered_exchange_cases();
/// Parameters whose rows the ranks of a node share (sharded_exchange_cases.cpp).
std::vector<CommCase> sharded_exchange_cases();
/// Sums that send fewer bytes (compression_cases.cpp).
std::vector<CommCase> compression_cases();
/// Arenas that do not lie in the host's memory (memory_cases.cpp).
std::vector<CommCase> memory_cases();
/// All of them.
std::vector<CommCase> all_cases();

}  // namespace cputrain
