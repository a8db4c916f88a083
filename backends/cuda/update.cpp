#include "backends/cuda/update.h"

#include <algorithm>
#include <span>

#include "core/error.h"

namespace cputrain::cuda {
namespace {

template <class T>
DeviceBlock on_device(compute::Memory& memory, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  DeviceBlock block(bytes.size(), "table of an update");
  if (!bytes.empty()) memory.write(bytes, block.data());
  return block;
}

/// The copy of the arena that all slices lie in.
const WeightCopy* copy_of(WeightCopies& copies, const optim::UpdatePlan& plan) {
  if (plan.slices.empty()) return nullptr;
  const auto copy_of_slice = [&](const optim::UpdateSlice& slice) {
    return copies.find(slice.weights.data);
  };
  const WeightCopy* const copy = copy_of_slice(plan.slices.front());
  if (std::ranges::count(plan.slices, copy, copy_of_slice) != std::ssize(plan.slices)) {
    fail(ExitCode::internal, "an update of weights of several arenas");
  }
  return copy;
}

}  // namespace

DeviceUpdate::DeviceUpdate(std::uint64_t number, int device, ComputeStream& stream,
                           DeviceMemory& memory, const optim::UpdatePlan& plan)
    : number_(number),
      device_(device),
      stream_(stream),
      plan_(plan),
      copy_(copy_of(memory.weight_copies(), plan)) {
  const UpdateTable table = make_table(plan);
  blocks_ = static_cast<std::uint32_t>(table.segment_of_block.size());
  width_ = table.width;
  segments_ = on_device(memory, table.segments);
  segment_of_block_ = on_device(memory, table.segment_of_block);
  facts_ = DeviceBlock(std::max<std::size_t>(1, table.segments.size()) * sizeof(UpdateFacts),
                       "facts of an update");
}

void DeviceUpdate::enqueue(const UpdateFacts* facts, bool by_segment) const {
  update(stream_.get(), plan_.rule,
         {.segments = segments_.as<UpdateSegment>(),
          .segment_of_block = segment_of_block_.as<std::uint32_t>(),
          .blocks = blocks_,
          .width = width_,
          .limit = static_cast<float>(plan_.limit),
          .facts = facts,
          .by_segment = by_segment,
          .copied = copy_ ? copy_->target() : CopiedWeights{}});
}

void DeviceUpdate::apply(const optim::UpdateStep& step) {
  use_device(device_);
  auto* const facts = facts_.as<UpdateFacts>();
  const bool by_segment = !step.trust.empty();
  if (by_segment) {
    write_segment_facts(stream_.get(), step, plan_.weight_decay, facts);
  } else {
    write_facts(stream_.get(), facts_of(step), facts);
  }
  enqueue(facts, by_segment);
  stream_.finish_call();
}

}  // namespace cputrain::cuda
