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
  bool turned_a, turned_b;  ///< the matrix lies depth by depth
  bool short_columns;       ///< B begins again, too
  std::function<void(Stream, const LoopArguments&)> launch;
};
std::vector<EmulatedLoop> right_loops();
/// Whose descriptors, stages or forms are wrong in one place.
std::vector<EmulatedLoop> wrong_loops();

}  // namespace cputrain::cuda::probes
