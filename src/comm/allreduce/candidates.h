#pragma once

#include <memory>
#include <string>

#include "comm/allreduce/sum_arrays.h"
#include "comm/channel.h"
#include "comm/communicator.h"
#include "comm/node_arrays.h"

/// Ways to sum one array over all ranks, side by side: what `auto` and the benchmark time.
namespace cputrain::comm {

/// One way to sum, with its memory.
class Candidate {
 public:
  virtual ~Candidate() = default;
  virtual Array input() const = 0;
  virtual Array result() const = 0;
  virtual void run() = 0;
};

/// In place, by the algorithm of a channel.
std::unique_ptr<Candidate> between_ranks(const Array& numbers, Channel);

/// Arrays of float32 of all ranks of a node and the one copy of their sum, where all nodes have
/// room for them. Collective.
struct SharedArrays {
  std::unique_ptr<NodeArrays> arrays;
  std::unique_ptr<system::SharedBlock> block;
  std::string failure;  ///< why there are none

  SharedArrays(Communicator&, std::size_t elements);
  Array copy() const;
};

/// Each rank sums its slice over the node's arrays into the one copy, and over nodes.
std::unique_ptr<Candidate> within_node(Communicator&, const NodeMap&, const SharedArrays&,
                                       const SumArrays&, Channel between_nodes);

/// The seconds of one run, the slowest rank's; and the median of `repeat`, after one that warms up.
/// Collective.
double time_one(Communicator&, Candidate&);
double median_time(Communicator&, Candidate&, int repeat);

}  // namespace cputrain::comm
