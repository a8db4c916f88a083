#include "comm/node_weights.h"

#include <algorithm>
#include <cstring>

namespace cputrain {
namespace {

bool ranks_differ(const ParameterLayout& layout) {
  return std::ranges::any_of(layout.parameters, &Parameter::averaged);
}

}  // namespace

NodeWeights::NodeWeights(NodeMemory& memory, const ParameterLayout& layout)
    : size_(layout.arena_size),
      learnt_(layout.gradient_size),
      dtype_(layout.dtype),
      shared_(memory.allocate(layout.arena_size * size_of(layout.dtype))),
      own_(ranks_differ(layout) ? layout.arena_size * size_of(layout.dtype) : 0) {}

void NodeWeights::copy(const Array& dst, const Array& src, Range range) const {
  if (one_copy() || range.size() == 0) return;
  const Array to = dst.slice(range.begin, range.end);
  std::memcpy(to.data, src.slice(range.begin, range.end).data, to.bytes().size());
}

}  // namespace cputrain
