#include "exchange/node_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cputrain::exchange {
namespace {

std::size_t arena_bytes(const compute::ParameterLayout& layout) {
  return layout.arena_size * size_of(layout.dtype);
}

}  // namespace

std::unique_ptr<system::Pages> NodeWeights::make_replica(const compute::ParameterLayout& layout) {
  if (std::ranges::none_of(layout.parameters, &compute::Parameter::averaged)) return nullptr;
  return std::make_unique<system::Pages>(arena_bytes(layout));
}

NodeWeights::NodeWeights(comm::NodeMemory& memory, const compute::ParameterLayout& layout,
                         std::unique_ptr<system::Pages> replica)
    : size_(layout.arena_size),
      learnt_(layout.gradient_size),
      dtype_(layout.dtype),
      shared_(memory.allocate(arena_bytes(layout))),
      own_(std::move(replica)) {}

void NodeWeights::copy(const Array& dst, const Array& src, Range range) const {
  if (one_copy() || range.size() == 0) return;
  const Array to = dst.slice(range.begin, range.end);
  std::memcpy(to.data, src.slice(range.begin, range.end).data, to.bytes().size());
}

}  // namespace cputrain::exchange
