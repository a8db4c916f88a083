#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace cputrain::bench {

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
