#include "train/optimizer.h"

#include <algorithm>
#include <cassert>

namespace cputrain {

Optimizer::Optimizer(const OptimizerOptions& options, Backend& backend,
                     const GradientExchange& exchange, const ParameterLayout& layout)
    : options_(options), backend_(backend), dtype_(layout.dtype) {
  for (const Range range : exchange.owned()) {
    Owned owned{range, segments_of(range, layout), {}};
    for (int i = 0; i < state_arrays(options.rule); ++i) {
      owned.state.emplace_back(range.size() * size_of(dtype_));
    }
    owned_.push_back(std::move(owned));
  }
}

std::vector<Optimizer::Segment> Optimizer::segments_of(Range range,
                                                       const ParameterLayout& layout) const {
  if (options_.weight_decay == 0) return {{range, false}};
  std::vector<Segment> segments;
  for (const Parameter& parameter : layout.parameters) {
    const Range part{std::max(range.begin, parameter.range.begin),
                     std::min(range.end, parameter.range.end)};
    if (part.begin < part.end) segments.push_back({part, parameter.decays});
  }
  return segments;  // gaps between parameters are padding and stay zero
}

UpdateSlice Optimizer::slice_of(Owned& owned, const Segment& segment, const Arenas& arenas,
                                std::uint64_t step) {
  const Range r = segment.range;
  UpdateSlice slice{.weights = arenas.weights.slice(r.begin, r.end),
                    .gradients = arenas.gradients.slice(r.begin, r.end),
                    .state = {},
                    .learning_rate = options_.learning_rate,
                    .weight_decay = segment.decays ? options_.weight_decay : 0,
                    .step = step};
  for (std::size_t i = 0; i < owned.state.size(); ++i) {
    const Array whole{owned.state[i].data(), owned.range.size(), dtype_};
    slice.state[i] = whole.slice(r.begin - owned.range.begin, r.end - owned.range.begin);
  }
  return slice;
}

void Optimizer::update(Range range, const Arenas& arenas, std::uint64_t step) {
  const auto owned = std::ranges::find(owned_, range, &Owned::range);
  assert(owned != owned_.end());
  for (const Segment& segment : owned->segments) {
    backend_.update(options_.rule, slice_of(*owned, segment, arenas, step));
  }
}

std::size_t Optimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const Owned& owned : owned_) {
    for (const auto& state : owned.state) bytes += state.size();
  }
  return bytes;
}

}  // namespace cputrain
