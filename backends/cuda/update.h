#pragma once

#include <cstdint>

#include "backends/cuda/kernels/updates.h"
#include "backends/cuda/memory.h"
#include "compute/update.h"

namespace cputrain::cuda {

/// An update in one launch. What does not change lies on the device from the beginning; a step's
/// figures are read there, too, so that the update may be a part of a graph.
class DeviceUpdate final : public compute::Update {
 public:
  /// `number`: no other update of the backend has or had it. Borrows the stream and the memory.
  /// Error(internal) where its slices lie in several arenas.
  DeviceUpdate(std::uint64_t number, int device, ComputeStream&, DeviceMemory&,
               const optim::UpdatePlan&);

  void apply(const optim::UpdateStep&) override;

  // As a part of a pass, among whose facts are those of the step. Facts of single segments
  // are not among them.

  std::uint64_t number() const { return number_; }
  UpdateFacts facts_of(const optim::UpdateStep& step) const {
    return update_facts(step, plan_.weight_decay);
  }
  /// `facts` are on the device. New weights are written to their copy as well.
  void enqueue(const UpdateFacts* facts, bool by_segment = false) const;
  /// The copy of the arena that it updates; null where it updates nothing.
  const WeightCopy* copy() const { return copy_; }

 private:
  std::uint64_t number_;
  int device_;
  ComputeStream& stream_;
  optim::UpdatePlan plan_;
  const WeightCopy* copy_;
  std::uint32_t blocks_;
  int width_;
  DeviceBlock segments_, segment_of_block_;
  DeviceBlock facts_;  ///< where no pass has them; by segment, if need be
};

}  // namespace cputrain::cuda
