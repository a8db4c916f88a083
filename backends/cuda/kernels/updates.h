#pragma once

#include "backends/cuda/device/device.h"
#include "optim/update_rule.h"

/// Update rules, what is done to gradients before them, and norms: as optim/update_math.h says, of
/// float arrays on the device, whose slices begin anywhere (4 bytes of alignment). The arithmetic
/// is the host's (optim/update_elements.h), but nvcc fuses products and sums where a host's
/// compiler may not, so the last bits of weights and state can differ.
namespace cputrain::cuda {

/// Decoupled weight decay, then the rule.
void update(Stream, const optim::UpdateRule&, const optim::UpdateSlice&);
void change_gradients(Stream, const optim::GradientOperation&, const optim::UpdateSlice&);

/// dst = src[0] + src[1] + ..., in that order; dst may be one of them. Every call adds at most
/// kMostSummands, dst counting as one where it is added to.
inline constexpr int kMostSummands = 8;
struct Summands {
  const float* src[kMostSummands];
  int count;
};
void sum_arrays(Stream, const Summands&, std::size_t size, float* dst);

/// Sums of x^2 in double of the blocks of optim::kNormBlock elements (of the arena, where the array
/// begins at element `position`) that the array touches; `sums` is on the device and has
/// optim::norm_blocks(position, size) elements.
void block_norms(Stream, const float* values, std::size_t size, std::size_t position, double* sums);

}  // namespace cputrain::cuda
