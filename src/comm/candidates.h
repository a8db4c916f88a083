#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/allreduce.h"
#include "comm/allreduce_choice.h"
#include "comm/communicator.h"
#include "comm/node.h"

/// Ways to sum one array over all ranks, side by side: what `auto` and the benchmark time.
namespace cputrain::comm {

/// One way to sum, with its memory: run() sums the ranks' `input` into `result`.
struct Candidate {
  Array input, result;
  std::function<void()> run;
};

/// In place, by the algorithm of a channel.
Candidate between_ranks(const Array& numbers, Channel);

/// Arrays of float32 of all ranks of a node and the one copy of their sum, where all nodes have
/// room for them. Collective.
struct SharedArrays {
  std::unique_ptr<NodeArrays> arrays;
  std::unique_ptr<system::SharedBlock> block;
  std::string failure;  ///< why there are none

  SharedArrays(Communicator&, std::size_t elements);
  Array copy() const;
};

/// Each rank sums its slice over the node's arrays into the one copy, and over nodes. Borrows all
/// but the channel.
Candidate within_node(Communicator&, const NodeMap&, const SharedArrays&, const SumArrays&,
                      Channel between_nodes);

/// The seconds of one run, the slowest rank's; and the median of `repeat`, after one that warms up.
/// Collective.
double time_one(Communicator&, const Candidate&);
double median_time(Communicator&, const Candidate&, int repeat);

}  // namespace cputrain::comm
