#pragma once

#include <string>
#include <vector>

#include "comm/allreduce/sum_arrays.h"
#include "comm/communicator.h"
#include "comm/node_arrays.h"

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

/// What one way to compress gradients costs and saves.
struct CompressionFigure {
  std::string name;  ///< "topk:0.01"
  double ratio;      ///< times fewer bytes that a rank sends
  /// A sum without sending; and a plain ring's, which has to add as well. By repeat, the slowest
  /// rank's.
  std::vector<double> seconds, plain_seconds;
};

/// Times each of compressions() on a gradient of `bytes` in float32: a matrix with 512 columns, as
/// the largest layer of the paper's network has it, and a rest. Collective.
std::vector<CompressionFigure> bench_compression(comm::Communicator&, std::size_t bytes,
                                                 int repeat);

/// The bandwidth of a rank's link, in Gbit/s, below which it pays to compress: where the bytes that
/// are not sent would have taken as long as compressing takes,
///     2 (P - 1) / P * (1 - 1 / ratio) * bytes / seconds,
/// with P ranks and the seconds that it takes longer than a plain sum, for as long as nothing hides
/// either. 0 where no byte is saved, infinite where bytes are and no time is lost.
double breakeven_gbit_s(int ranks, double ratio, double bytes, double seconds);

}  // namespace cputrain::bench
