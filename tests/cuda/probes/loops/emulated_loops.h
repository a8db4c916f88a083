#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"

/// The probes' loops on the emulated device: compiled once plain and once checked.
namespace cputrain::cuda::probes {

struct LoopArguments {
  const void *a, *b;
  int blocks;
  bool own_rows;
  int steps;
  float* tiles;
};

struct EmulatedLoop {
  std::string name;
  Numbers numbers;
  int rows, columns;
  bool transposed_a, transposed_b;  ///< the matrix lies depth by depth
  bool short_columns;               ///< B begins again, too
  int instructions;  ///< of the depth, after which both begin again; 0: at their ends
  std::function<void(Stream, const LoopArguments&)> launch;
};
std::vector<EmulatedLoop> right_loops();
/// That leave something out, and yet have sums.
std::vector<EmulatedLoop> partial_loops();
/// Without sums.
std::vector<EmulatedLoop> loops_of_loads();
/// Whose descriptors, stages or forms are wrong in one place.
std::vector<EmulatedLoop> wrong_loops();

}  // namespace cputrain::cuda::probes
