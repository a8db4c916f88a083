#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/node_map.h"
#include "exchange/exchange.h"

namespace cputrain::bench {

/// One way to sum over ranks, timed.
struct AllreduceFigure {
  std::string name;
  std::vector<double> seconds;  ///< by repeat, the slowest rank's
  std::string reason;           ///< why there are none
};

/// Times every name of --allreduce on arrays of `bytes`: a sum of float32 over all ranks, which all
/// can read afterwards. For `shm` and `hierarchical` the arrays lie in shared memory and the result
/// is one copy per node. Collective.
class AllreduceBench {
 public:
  AllreduceBench(comm::Communicator&, std::size_t bytes, comm::SumArrays sum);

  /// One that is checked, then `repeat` of each. Throws Error(internal) where a sum is wrong.
  std::vector<AllreduceFigure> run(int repeat);
  /// What `auto` would take.
  std::string automatic_choice();

  int ranks() const { return communicator_.size(); }
  int nodes() const { return map_.nodes(); }
  std::size_t bytes() const { return elements_ * sizeof(float); }

 private:
  comm::Communicator& communicator_;
  std::size_t elements_;
  comm::SumArrays sum_;
  comm::NodeMap map_;
};

}  // namespace cputrain::bench
