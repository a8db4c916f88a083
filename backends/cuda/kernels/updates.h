#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/pass_facts.h"
#include "optim/update_rule.h"

/// Update rules, what is done to gradients before them, and norms, as in optim/update_math.h, for
/// float arrays on the device, whose slices begin anywhere (4 bytes of alignment). The arithmetic
/// is the host's (optim/update_elements.h), but nvcc fuses products and sums where a host's
/// compiler may not, so the last bits of weights and state can differ.
namespace cputrain::cuda {

/// Equally long arrays of a slice. No two overlap.
struct SliceArrays {
  float *weights, *gradients, *state[optim::kMaxStateArrays];
  std::int64_t size;
};

/// A slice of an update, as the kernel reads it.
struct UpdateSegment {
  SliceArrays arrays;
  float added_weights;
  bool decays;
  std::uint32_t first_block;
};

/// What blocks of an update work on. One of each segment may have less to do than others.
struct UpdateTable {
  std::vector<UpdateSegment> segments{};
  std::vector<std::uint32_t> segment_of_block{};
  int width = 4;  ///< numbers that a thread takes at a time: 1 where some array is not aligned
};
UpdateTable make_table(const optim::UpdatePlan&);

/// Where new weights are written a second time, rounded. In exact they are not.
struct CopiedWeights {
  Numbers numbers = Numbers::exact;
  const float* weights = nullptr;  ///< the first that has a copy
  void* copy = nullptr;            ///< the copy of that
};

/// One launch for all slices.
struct UpdateCall {
  const UpdateSegment* segments;          ///< on the device
  const std::uint32_t* segment_of_block;  ///< as well
  std::uint32_t blocks;
  int width;
  float limit;               ///< gradients are clipped to it
  const UpdateFacts* facts;  ///< on the device
  bool by_segment = false;   ///< each segment has facts of its own
  CopiedWeights copied{};
};
/// Gradients plus weights, clipped; decoupled weight decay; then the rule, whose figures are in the
/// facts: only what kind of rule it is counts here. Gradients stay as they are.
void update(Stream, const optim::UpdateRule&, const UpdateCall&);
/// `weight_decay`: that of segments that decay.
UpdateFacts update_facts(const optim::UpdateStep&, double weight_decay);
/// dst = facts of each segment, whose rate is multiplied by its trust.
void write_segment_facts(Stream, const optim::UpdateStep&, double weight_decay, UpdateFacts* dst);

void change_gradients(Stream, const optim::GradientOperation&, const optim::UpdateSlice&);

/// dst = src[0] + src[1] + ..., in that order; dst may be one of them. Every call adds at most
/// kMostSummands, dst counting as one where it is added to.
inline constexpr int kMostSummands = 8;
struct Summands {
  const float* src[kMostSummands];
  int count;
};
void sum_arrays(Stream, const Summands&, std::int64_t size, float* dst);

/// How gradients travel in half the bytes: dst = src, rounded, and as floats again. They may begin
/// anywhere.
void narrow_gradients(Stream, const float* src, std::int64_t size, Bf16* dst);
void widen_gradients(Stream, const Bf16* src, std::int64_t size, float* dst);

/// Sums of x^2 in double of the blocks of optim::kNormBlock elements (of the arena, where the array
/// begins at element `position`) that the array touches; `sums` is on the device and has
/// optim::norm_blocks(position, size) elements.
void block_norms(Stream, const float* values, std::size_t size, std::size_t position, double* sums);

}  // namespace cputrain::cuda
