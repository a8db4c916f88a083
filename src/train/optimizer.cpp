#include "train/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "comm/node_arrays.h"
#include "optim/update_math.h"

namespace cputrain::train {

static_assert(comm::kSliceGrid % optim::kNormBlock == 0, "a block of a norm would have two owners");

namespace {

/// Norms of parts of the arena that are asked for together, so that a device is waited for once.
class AddedNorms {
 public:
  /// Those of the blocks of `array`, which begins at `position` of the arena, are to be added to
  /// `norms`, whose first is that of block `first`.
  void ask(const Array& array, std::size_t position, std::size_t first, std::span<double> norms) {
    parts_.push_back({{position, position + array.size}, array});
    sums_.push_back(norms.subspan(position / optim::kNormBlock - first));
  }

  /// Of what the arrays hold now.
  void add(compute::Backend& backend) const {
    const std::vector<double> blocks = backend.block_norms(parts_).wait();
    auto block = blocks.begin();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::size_t count = compute::norm_blocks({&parts_[i], 1});
      for (std::size_t k = 0; k < count; ++k) sums_[i][k] += *block++;
    }
  }

 private:
  std::vector<compute::ArenaPart> parts_;
  std::vector<std::span<double>> sums_;  ///< of each part's blocks
};

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, compute::Backend& backend,
                     const exchange::GradientExchange& exchange,
                     const compute::ParameterLayout& layout)
    : options_(options),
      backend_(backend),
      exchange_(exchange),
      dtype_(layout.dtype),
      rule_(options.rule) {
  if (options.clip_norm) {
    gradient_norms_.resize(optim::norm_blocks(0, layout.gradient_size));
    measures_.push_back([this] { return measure_gradient(); });
  }
  if (optim::is_layer_wise(options.rule)) {
    std::size_t blocks = 0;
    for (const compute::Parameter& p : layout.parameters) {
      const std::size_t own =
          p.learnt && p.decays ? optim::norm_blocks(p.range.begin, p.range.size()) : 0;
      layers_.push_back({p.range.begin / optim::kNormBlock, {blocks, blocks + own}});
      blocks += own;
    }
    layer_norms_.resize(2 * blocks);
    measures_.push_back([this] { return measure_layers(); });
  }
  for (const Range range : exchange.owned()) {
    Owned owned{range, segments_of(range, layout), {}};
    for (int i = 0; i < optim::state_arrays(options.rule); ++i) {
      owned.state.emplace_back(backend.memory(), range.size(), dtype_);
    }
    owned_.push_back(std::move(owned));
  }
}

std::vector<Optimizer::Segment> Optimizer::segments_of(Range range,
                                                       const compute::ParameterLayout& layout) {
  std::vector<Segment> segments;
  // Backwards through the parameters is forwards through the arena.
  for (std::size_t p = layout.parameters.size(); p-- > 0;) {
    const compute::Parameter& parameter = layout.parameters[p];
    const Range part{std::max(range.begin, parameter.range.begin),
                     std::min(range.end, parameter.range.end)};
    if (part.begin >= part.end) continue;
    Segment segment{part, parameter.decays && options_.weight_decay > 0, parameter.l2, {}};
    if (optim::is_layer_wise(options_.rule) && parameter.decays) segment.layer = p;
    if (!segments.empty()) {
      Segment& before = segments.back();
      assert(before.range.end <= part.begin);
      const bool alike = before.decays == segment.decays && before.l2 == segment.l2;
      if (alike && !before.layer && !segment.layer) {
        before.range.end = part.end;  // the gap between parameters is padding and stays zero
        continue;
      }
    }
    segments.push_back(segment);
  }
  return segments;
}

void Optimizer::begin_step(std::uint64_t step, double learning_rate) {
  const bool corrects = options_.momentum_correction && learning_rate_ > 0 && learning_rate > 0;
  rule_ = corrects ? optim::with_momentum_times(options_.rule, learning_rate / learning_rate_)
                   : options_.rule;
  step_ = step;
  gradient_norm_.reset();
  learning_rate_ = learning_rate;
}

optim::UpdateSlice Optimizer::slice_of(Owned& owned, const Segment& segment) {
  const Range r = segment.range;
  const compute::Arenas arenas = exchange_.arenas();
  optim::UpdateSlice slice{.weights = arenas.weights.slice(r.begin, r.end),
                           .gradients = arenas.gradients.slice(r.begin, r.end),
                           .state = {},
                           .learning_rate = learning_rate_,
                           .weight_decay = segment.decays ? options_.weight_decay : 0,
                           .step = step_};
  for (std::size_t i = 0; i < owned.state.size(); ++i) {
    slice.state[i] =
        owned.state[i].array().slice(r.begin - owned.range.begin, r.end - owned.range.begin);
  }
  return slice;
}

/// From the gradient of the loss to that of the loss with penalties, each element within limits.
void Optimizer::complete_gradient(Owned& owned, const Segment& segment) {
  if (segment.l2 > 0) {
    backend_.change_gradients(optim::AddWeights{2.0 * static_cast<double>(segment.l2)},
                              slice_of(owned, segment));
  }
  if (options_.clip_value) {
    backend_.change_gradients(optim::ClipValues{*options_.clip_value}, slice_of(owned, segment));
  }
}

void Optimizer::clip_by_norm(Owned& owned, const Segment& segment) {
  if (!options_.clip_norm) return;
  if (!gradient_norm_) {
    gradient_norm_ =
        std::sqrt(std::accumulate(gradient_norms_.begin(), gradient_norms_.end(), 0.0));
  }
  const double norm = *gradient_norm_;
  if (norm > *options_.clip_norm) {
    backend_.change_gradients(optim::ScaleGradients{*options_.clip_norm / norm},
                              slice_of(owned, segment));
  }
}

std::span<double> Optimizer::measure_gradient() {
  std::ranges::fill(gradient_norms_, 0.0);
  AddedNorms norms;
  for (Owned& owned : owned_) {
    for (const Segment& segment : owned.segments) {
      complete_gradient(owned, segment);
      norms.ask(slice_of(owned, segment).gradients, segment.range.begin, 0, gradient_norms_);
    }
  }
  norms.add(backend_);
  return gradient_norms_;
}

std::span<double> Optimizer::measure_layers() {
  std::ranges::fill(layer_norms_, 0.0);
  AddedNorms norms;
  for (Owned& owned : owned_) {
    for (const Segment& segment : owned.segments) {
      if (!options_.clip_norm) complete_gradient(owned, segment);
      clip_by_norm(owned, segment);
      const optim::UpdateSlice slice = slice_of(owned, segment);
      if (const auto* lamb = std::get_if<optim::Lamb>(&rule_)) {
        backend_.change_gradients(optim::LambDirection{*lamb, slice.weight_decay}, slice);
      }
      if (!segment.layer) continue;
      const LayerBlocks& layer = layers_[*segment.layer];
      const auto [weights, gradients] = norms_of(layer);
      norms.ask(slice.weights, segment.range.begin, layer.first, weights);
      norms.ask(slice.gradients, segment.range.begin, layer.first, gradients);
    }
  }
  norms.add(backend_);
  return layer_norms_;
}

/// The norms, squared, of the blocks of a layer's weights and of its gradients.
std::pair<std::span<double>, std::span<double>> Optimizer::norms_of(const LayerBlocks& layer) {
  const std::span all(layer_norms_);
  const std::size_t half = all.size() / 2;
  return {all.subspan(layer.slots.begin, layer.slots.size()),
          all.subspan(half + layer.slots.begin, layer.slots.size())};
}

/// What a layer's rate is multiplied by: 1 where a norm is zero, and a ratio would say nothing.
double Optimizer::trust(const Segment& segment) {
  if (!segment.layer) return 1;
  const auto norm = [](std::span<const double> blocks) {
    return std::sqrt(std::accumulate(blocks.begin(), blocks.end(), 0.0));
  };
  const auto [weight_blocks, gradient_blocks] = norms_of(layers_[*segment.layer]);
  const double weights = norm(weight_blocks), gradients = norm(gradient_blocks);
  if (weights == 0 || gradients == 0) return 1;
  const auto* lars = std::get_if<optim::Lars>(&rule_);
  if (!lars) return weights / gradients;
  return lars->trust * weights / (gradients + options_.weight_decay * weights);
}

void Optimizer::update(Range range) {
  const auto owned = std::ranges::find(owned_, range, &Owned::range);
  assert(owned != owned_.end());
  const bool layer_wise = optim::is_layer_wise(rule_);
  for (const Segment& segment : owned->segments) {
    if (measures_.empty()) complete_gradient(*owned, segment);
    if (!layer_wise) clip_by_norm(*owned, segment);
    optim::UpdateSlice slice = slice_of(*owned, segment);
    if (layer_wise) {
      if (std::holds_alternative<optim::Lars>(rule_) && slice.weight_decay > 0) {
        backend_.change_gradients(optim::AddWeights{slice.weight_decay}, slice);
      }
      slice.learning_rate *= trust(segment);
      slice.weight_decay = 0;
    }
    backend_.update(rule_, slice);
  }
}

std::vector<compute::ArenaPart> Optimizer::state(std::size_t slot) const {
  std::vector<compute::ArenaPart> parts;
  for (const Owned& owned : owned_) parts.push_back({owned.range, owned.state[slot].array()});
  return parts;
}

std::size_t state_bytes(const optim::UpdateRule& rule, std::span<const Range> owned, DType dtype) {
  std::size_t elements = 0;
  for (const Range& range : owned) elements += range.size();
  return elements * size_of(dtype) * static_cast<std::size_t>(optim::state_arrays(rule));
}

}  // namespace cputrain::train
