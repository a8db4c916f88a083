#include "loop/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "comm/node.h"
#include "optim/update_math.h"

namespace cputrain::loop {

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

  /// Adds the norms of what the arrays hold now.
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
  std::vector<std::span<double>> sums_;  ///< by part, its blocks'
};

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, compute::Backend& backend,
                     const exchange::GradientExchange& exchange,
                     const compute::ParameterLayout& layout)
    : options_(options), backend_(backend), exchange_(exchange), step_{.rule = options.rule} {
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
  for (const Range range : exchange.owned()) owned_.push_back(own(range, layout));
  for (const compute::Parameter& p : layout.parameters) {
    if (!averages() || !p.averaged) continue;
    statistics_.push_back(
        {p.range, compute::OwnedArray(backend.memory(), p.range.size(), layout.dtype)});
  }
}

Optimizer::Owned Optimizer::own(Range range, const compute::ParameterLayout& layout) {
  Owned owned{.range = range, .segments = segments_of(range, layout)};
  for (int i = 0; i < optim::state_arrays(options_.rule); ++i) {
    owned.state.emplace_back(backend_.memory(), range.size(), layout.dtype);
  }
  if (averages()) owned.average = {backend_.memory(), range.size(), layout.dtype};
  place(owned);
  if (std::ranges::any_of(owned.segments, [](const Segment& s) { return s.rate != 1; })) {
    for (const Segment& segment : owned.segments) owned.trust.push_back(segment.rate);
  }
  owned.update = backend_.make_update(plan_of(owned));
  return owned;
}

/// Where segments lie in the arenas and in the state.
void Optimizer::place(Owned& owned) {
  const compute::Arenas arenas = exchange_.arenas();
  for (Segment& segment : owned.segments) {
    const Range r = segment.range;
    segment.slice.weights = arenas.weights.slice(r.begin, r.end);
    segment.slice.gradients = arenas.gradients.slice(r.begin, r.end);
    for (std::size_t i = 0; i < owned.state.size(); ++i) {
      segment.slice.state[i] =
          owned.state[i].array().slice(r.begin - owned.range.begin, r.end - owned.range.begin);
    }
  }
}

/// Measures complete the gradients that they look at; else the update does.
optim::UpdatePlan Optimizer::plan_of(const Owned& owned) const {
  optim::UpdatePlan plan{.rule = options_.rule};
  if (!optim::is_layer_wise(options_.rule)) plan.weight_decay = options_.weight_decay;
  if (measures_.empty() && options_.clip_value) plan.limit = *options_.clip_value;
  for (const Segment& segment : owned.segments) {
    optim::UpdateSlice slice = segment.slice;
    if (measures_.empty()) slice.added_weights = 2.0 * static_cast<double>(segment.l2);
    if (std::holds_alternative<optim::Lars>(options_.rule)) slice.added_weights = decay_of(segment);
    plan.slices.push_back(slice);
  }
  return plan;
}

double Optimizer::decay_of(const Segment& segment) const {
  return segment.slice.decays ? options_.weight_decay : 0;
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
    Segment segment{.range = part, .l2 = parameter.l2, .rate = parameter.rate, .layer = {}};
    segment.slice.decays = parameter.decays && options_.weight_decay > 0;
    if (optim::is_layer_wise(options_.rule) && parameter.decays) segment.layer = p;
    if (!segments.empty()) {
      Segment& before = segments.back();
      assert(before.range.end <= part.begin);
      const bool alike = before.slice.decays == segment.slice.decays && before.l2 == segment.l2 &&
                         before.rate == segment.rate;
      if (alike && !before.layer && !segment.layer) {
        before.range.end = part.end;  // the gap between parameters is padding and stays zero
        continue;
      }
    }
    segments.push_back(segment);
  }
  return segments;
}

void Optimizer::begin_step(std::uint64_t updates, double learning_rate) {
  const double before = last_rate();
  const bool corrects = options_.momentum_correction && before > 0 && learning_rate > 0;
  step_ = {.rule = corrects ? optim::with_momentum_times(options_.rule, learning_rate / before)
                            : options_.rule,
           .learning_rate = learning_rate,
           .step = updates};
  gradient_norm_.reset();
}

/// From the gradient of the loss to that of the loss with penalties, each element within limits.
void Optimizer::complete_gradient(const Segment& segment) {
  if (segment.l2 > 0) {
    backend_.change_gradients(optim::AddWeights{2.0 * static_cast<double>(segment.l2)},
                              segment.slice);
  }
  if (options_.clip_value) {
    backend_.change_gradients(optim::ClipValues{*options_.clip_value}, segment.slice);
  }
}

void Optimizer::clip_by_norm(const Segment& segment) {
  if (!options_.clip_norm) return;
  if (!gradient_norm_) {
    gradient_norm_ =
        std::sqrt(std::accumulate(gradient_norms_.begin(), gradient_norms_.end(), 0.0));
  }
  const double norm = *gradient_norm_;
  if (norm > *options_.clip_norm) {
    backend_.change_gradients(optim::ScaleGradients{*options_.clip_norm / norm}, segment.slice);
  }
}

std::span<double> Optimizer::measure_gradient() {
  std::ranges::fill(gradient_norms_, 0.0);
  AddedNorms norms;
  for (const Owned& owned : owned_) {
    for (const Segment& segment : owned.segments) {
      complete_gradient(segment);
      norms.ask(segment.slice.gradients, segment.range.begin, 0, gradient_norms_);
    }
  }
  norms.add(backend_);
  return gradient_norms_;
}

std::span<double> Optimizer::measure_layers() {
  std::ranges::fill(layer_norms_, 0.0);
  AddedNorms norms;
  for (const Owned& owned : owned_) {
    for (const Segment& segment : owned.segments) {
      if (!options_.clip_norm) complete_gradient(segment);
      clip_by_norm(segment);
      const optim::UpdateSlice& slice = segment.slice;
      if (const auto* lamb = std::get_if<optim::Lamb>(&step_.rule)) {
        backend_.change_gradients(optim::LambDirection{*lamb, decay_of(segment), step_.step},
                                  slice);
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

/// By the layer's norms: 1 where one is zero, and a ratio would say nothing.
double Optimizer::trust(const Segment& segment) {
  if (!segment.layer) return 1;
  const auto norm = [](std::span<const double> blocks) {
    return std::sqrt(std::accumulate(blocks.begin(), blocks.end(), 0.0));
  };
  const auto [weight_blocks, gradient_blocks] = norms_of(layers_[*segment.layer]);
  const double weights = norm(weight_blocks), gradients = norm(gradient_blocks);
  if (weights == 0 || gradients == 0) return 1;
  const auto* lars = std::get_if<optim::Lars>(&options_.rule);
  if (!lars) return weights / gradients;
  return lars->trust * weights / (gradients + options_.weight_decay * weights);
}

Optimizer::Owned& Optimizer::find_owned(Range range) {
  const auto owned = std::ranges::find(owned_, range, &Owned::range);
  assert(owned != owned_.end());
  return *owned;
}

void Optimizer::update(Range range) {
  Owned* const owned = &find_owned(range);
  optim::UpdateStep step = step_;
  if (optim::is_layer_wise(step.rule)) {
    owned->trust.clear();
    for (const Segment& segment : owned->segments) {
      owned->trust.push_back(segment.rate * trust(segment));
    }
  } else {
    for (const Segment& segment : owned->segments) clip_by_norm(segment);
  }
  step.trust = owned->trust;
  owned->update->apply(step);
}

std::optional<compute::StepUpdate> Optimizer::whole_update() {
  if (!measures_.empty() || owned_.size() != 1 || !owned_[0].trust.empty()) return {};
  return compute::StepUpdate{owned_[0].update.get(), step_};
}

void Optimizer::begin_averages() {
  for (const Owned& owned : owned_) {
    if (averages()) move_average(owned.range, owned.average.array(), 0);
  }
  for (const auto& [range, average] : statistics_) move_average(range, average.array(), 0);
}

void Optimizer::average(Range range) {
  if (averages()) move_average(range, find_owned(range).average.array(), options_.ema);
}

void Optimizer::average_statistics(std::size_t updates) {
  const double decay = std::pow(options_.ema, static_cast<double>(updates));
  for (const auto& [range, average] : statistics_) move_average(range, average.array(), decay);
}

void Optimizer::swap_averages(exchange::GradientExchange& exchange) {
  exchange.change_weights([&](Range own) { swap(own, find_owned(own).average.array()); });
  for (const auto& [range, average] : statistics_) swap(range, average.array());
}

void Optimizer::move_average(Range range, const Array& average, double decay) {
  if (range.size() == 0) return;
  const Array weights = exchange_.arenas().weights.slice(range.begin, range.end);
  if (decay == 0) {  // exactly
    return backend_.memory().copy(weights.data, average.data, weights.bytes().size());
  }
  backend_.change_gradients(optim::MoveAverage{decay}, {.weights = weights, .gradients = average});
}

void Optimizer::swap(Range range, const Array& average) {
  const Array weights = exchange_.arenas().weights.slice(range.begin, range.end);
  const std::size_t most = std::min(weights.size, compute::piece_elements(weights.dtype));
  if (most == 0) return;
  compute::Memory& memory = backend_.memory();
  const compute::OwnedArray between(memory, most, weights.dtype);
  for (std::size_t begin = 0; begin < weights.size; begin += most) {
    const std::size_t end = std::min(weights.size, begin + most);
    const Array here = weights.slice(begin, end), there = average.slice(begin, end);
    const std::size_t bytes = here.bytes().size();
    memory.copy(here.data, between.array().data, bytes);
    memory.copy(there.data, here.data, bytes);
    memory.copy(between.array().data, there.data, bytes);
  }
}

std::vector<compute::ArenaPart> Optimizer::all_averages() const {
  std::vector<compute::ArenaPart> parts = averaged_statistics();
  for (const Owned& owned : owned_) {
    if (owned.range.size() > 0) parts.push_back({owned.range, owned.average.array()});
  }
  return parts;
}

std::vector<compute::ArenaPart> Optimizer::averaged_statistics() const {
  std::vector<compute::ArenaPart> parts;
  for (const auto& [range, average] : statistics_) parts.push_back({range, average.array()});
  return parts;
}

std::vector<compute::ArenaPart> Optimizer::state(std::size_t slot) const {
  std::vector<compute::ArenaPart> parts;
  for (const Owned& owned : owned_) {
    const bool of_rule = slot < owned.state.size();
    parts.push_back({owned.range, of_rule ? owned.state[slot].array() : owned.average.array()});
  }
  return parts;
}

optim::StateNames state_names(const OptimizerOptions& options) {
  optim::StateNames names = optim::state_names(options.rule);
  if (options.ema > 0) names.push_back(kAverageName);
  return names;
}

std::size_t state_bytes(const OptimizerOptions& options, std::span<const Range> owned,
                        DType dtype) {
  std::size_t elements = 0;
  for (const Range& range : owned) elements += range.size();
  return elements * size_of(dtype) * state_names(options).size();
}

}  // namespace cputrain::loop
