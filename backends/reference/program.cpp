#include "backends/reference/program.h"

#include <algorithm>
#include <cassert>

#include "comm/communicator.h"
#include "core/casts.h"
#include "system/clock.h"

namespace cputrain::reference {

template <class T>
ReferenceProgram<T>::ReferenceProgram(const model::Graph& graph,
                                      const compute::CompileOptions& options,
                                      const compute::ArenaSource& arenas, Factors factors)
    : graph_(graph),
      synchronise_(options.synchronise),
      every_rank_passes_(options.synchronise || options.node),
      parameters_(compute::lay_out(graph, dtype_of<T>()), {}, compute::host_memory()),
      arenas_(arenas(layout())),
      factors_(factors) {
  const auto nodes = graph_.nodes();
  const int images =
      options.micro_batches.empty()
          ? 0
          : *std::max_element(options.micro_batches.begin(), options.micro_batches.end());
  values_.resize(nodes.size());
  int parameter = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Values& values = values_[i];
    const auto count = to_size(images) * nodes[i].dst.size();
    values.learns = !nodes[i].parameters.empty() && nodes[i].parameters.front().learnt;
    values.wants_diff = values.learns;
    for (const int src : nodes[i].src) values.wants_diff |= values_[src].wants_diff;
    values.dst.resize(count);
    if (options.phase == compute::Phase::train && values.wants_diff) values.diff.resize(count);
    if (!nodes[i].parameters.empty()) {
      values.parameter = parameter;
      parameter += to_int(nodes[i].parameters.size());
    }
    if (std::holds_alternative<model::BatchNorm>(nodes[i].layer)) {
      values.mean.resize(to_size(nodes[i].dst.channels));
      values.inverse_deviation.resize(values.mean.size());
    }
    const double work = i > 0 ? model::macs(nodes[i].layer, graph_.src_shape(to_int(i))) : 0;
    times_.push_back({.name = nodes[i].name, .algorithm = "plain loops", .macs = work});
  }
  share_layers(options.node, images);
}

template <class T>
void ReferenceProgram<T>::share_layers(comm::Communicator* node, int images) {
  own_gradients_ = {{0, layout().gradient_size}};
  if (!node) {
    assert(compute::sharded_parameters(layout()).empty() &&
           "sharded layers without ranks to share them");
    return;
  }
  const comm::NodeMemory& memory = node->node_memory();
  own_gradients_ = compute::used_gradients(layout(), memory.local_rank(), memory.local_size());
  for (Values& values : values_) {
    if (values.parameter < 0) continue;
    const compute::Parameter& kernel = layout().parameters[values.parameter];
    if (kernel.row == 0) continue;
    values.sharded = std::make_unique<ShardedDense<T>>(*node, kernel, to_size(images));
  }
}

template <class T>
void ReferenceProgram<T>::load_images(const compute::MicroBatch& batch, const model::Input& input) {
  const std::size_t elements = graph_.image().size();
  T* dst = values_[0].dst.data();
  for (const std::uint8_t* image : batch.images) {
    for (std::size_t i = 0; i < elements; ++i) {
      *dst++ = static_cast<T>(image[i]) * static_cast<T>(input.scale.of[i % 3]) +
               static_cast<T>(input.offset.of[i % 3]);
    }
  }
}

template <class T>
T* ReferenceProgram<T>::weights(int parameter) const {
  return arenas_.weights.as<T>().data() + layout().parameters[parameter].range.begin;
}

/// Null where the node learns nothing or the program was compiled for evaluation only.
template <class T>
T* ReferenceProgram<T>::gradients(int node, int parameter) const {
  if (!values_[node].learns || values_[node].diff.empty()) return nullptr;
  return arenas_.gradients.as<T>().data() + layout().parameters[parameter].range.begin;
}

template <class T>
LayerArgs<T> ReferenceProgram<T>::args(int index) {
  const auto& node = graph_.nodes()[index];
  Values& own = values_[index];
  Values& src = values_[node.src.front()];
  LayerArgs<T> a{to_int(labels_.size()),
                 graph_.src_shape(index),
                 node.dst,
                 src.dst.data(),
                 own.dst.data(),
                 nullptr,
                 nullptr,
                 own.diff.data(),
                 src.wants_diff ? src.diff.data() : nullptr,
                 nullptr,
                 nullptr};
  if (own.parameter < 0) return a;
  a.weights = weights(own.parameter);
  a.diff_weights = gradients(index, own.parameter);
  if (!has_bias(index)) return a;
  a.bias = weights(own.parameter + 1);
  a.diff_bias = gradients(index, own.parameter + 1);
  return a;
}

template <class T>
LayerArgs<T> ReferenceProgram<T>::args(int index, const model::Convolution& layer) {
  const LayerArgs<T> a = args(index);
  return factors_ == Factors::bf16 ? narrow_.round(layer, a) : a;
}

template <class T>
BatchNormArgs<T> ReferenceProgram<T>::batch_norm_args(int index) {
  const LayerArgs<T> a = args(index);
  Values& own = values_[index];
  const auto sum = [this](std::span<double> values) {
    if (synchronise_) synchronise_->sum(Array::of<double>(values));
  };
  const bool learns = pass_.phase == compute::Phase::train && !graph_.nodes()[index].frozen;
  if (learns) begin_moving(index);
  return {a.images,
          a.src_shape,
          a.src,
          a.dst,
          a.weights,
          a.bias,
          learns ? own.moving_mean.data() : weights(own.parameter + 2),
          learns ? own.moving_variance.data() : weights(own.parameter + 3),
          learns,
          sum,
          own.mean,
          own.inverse_deviation,
          own.count,
          a.diff_dst,
          a.diff_src,
          a.diff_weights,
          a.diff_bias};
}

template <class T>
DropoutDraw ReferenceProgram<T>::dropout(int node, float rate) const {
  return {rate, pass_.seed, pass_.step, static_cast<std::uint32_t>(graph_.nodes()[node].origin),
          samples_};
}

/// The first pass of a step goes on from the published statistics.
template <class T>
void ReferenceProgram<T>::begin_moving(int index) {
  Values& own = values_[index];
  if (!own.moving_mean.empty()) return;
  own.moving_mean.assign(weights(own.parameter + 2), weights(own.parameter + 2) + own.mean.size());
  own.moving_variance.assign(weights(own.parameter + 3),
                             weights(own.parameter + 3) + own.mean.size());
}

template <class T>
void ReferenceProgram<T>::publish_statistics() {
  for (Values& own : values_) {
    if (own.moving_mean.empty()) continue;
    std::ranges::copy(own.moving_mean, weights(own.parameter + 2));
    std::ranges::copy(own.moving_variance, weights(own.parameter + 3));
    own.moving_mean.clear();
    own.moving_variance.clear();
  }
}

template <class T>
void ReferenceProgram<T>::add(int index) {
  const std::size_t count = labels_.size() * graph_.nodes()[index].dst.size();
  T* dst = values_[index].dst.data();
  std::fill_n(dst, count, T{0});
  for (const int src : graph_.nodes()[index].src) {
    for (std::size_t i = 0; i < count; ++i) dst[i] += values_[src].dst[i];
  }
}

/// Calls f(part, position of a pixel in it, position in the whole, channels of the part).
template <class T>
template <class F>
void ReferenceProgram<T>::for_part_pixels(int index, const F& f) const {
  const auto& node = graph_.nodes()[index];
  const auto all = to_size(node.dst.channels);
  const std::size_t pixels = labels_.size() * node.dst.size() / all;
  std::size_t first = 0;
  for (const int src : node.src) {
    const auto channels = to_size(graph_.nodes()[src].dst.channels);
    for (std::size_t p = 0; p < pixels; ++p) f(src, p * channels, p * all + first, channels);
    first += channels;
  }
}

template <class T>
void ReferenceProgram<T>::concatenate(int index) {
  for_part_pixels(index, [&](int src, std::size_t from, std::size_t to, std::size_t channels) {
    std::copy_n(values_[src].dst.data() + from, channels, values_[index].dst.data() + to);
  });
}

/// Each part's gradient lies in that of the whole.
template <class T>
void ReferenceProgram<T>::take_apart(int index) {
  for_part_pixels(index, [&](int src, std::size_t to, std::size_t from, std::size_t channels) {
    if (!values_[src].wants_diff) return;
    for (std::size_t c = 0; c < channels; ++c) {
      values_[src].diff[to + c] += values_[index].diff[from + c];
    }
  });
}

template <class T>
void ReferenceProgram<T>::forward_node(int index) {
  const LayerArgs<T> a = args(index);
  const auto loss = [&](const auto& layer) {
    const double smoothing = pass_.phase == compute::Phase::train ? layer.smoothing : 0;
    tally_ +=
        cross_entropy(layer, a.src_shape.channels, {labels_, mixed_, smoothing}, a.src, a.dst);
    probabilities_.assign(a.dst, a.dst + labels_.size() * a.src_shape.size());
  };
  std::visit(Overloaded{
                 [](const model::Input&) { assert(!"the input has no source"); },
                 [&](const model::Dropout& l) {
                   if (pass_.phase == compute::Phase::train && l.rate > 0) {
                     apply_dropout(dropout(index, l.rate), a.src_shape.size(), a.src, a.dst, false);
                   } else {
                     reference::forward(model::Flatten{}, a);  // the identity
                   }
                 },
                 [&](const model::SigmoidCrossEntropy& l) { loss(l); },
                 [&](const model::SoftmaxCrossEntropy& l) { loss(l); },
                 [&](const model::BatchNorm& l) { reference::forward(l, batch_norm_args(index)); },
                 [&](const model::Add&) { add(index); },
                 [&](const model::Concat&) { concatenate(index); },
                 [&](const model::Dense& l) {
                   if (values_[index].sharded) return values_[index].sharded->forward(a);
                   reference::forward(l, a);
                 },
                 [&](const model::Convolution& l) { reference::forward(l, args(index, l)); },
                 [&](const auto& l) { reference::forward(l, a); },
             },
             graph_.nodes()[index].layer);
}

template <class T>
void ReferenceProgram<T>::forward(const compute::MicroBatch& batch, const compute::Pass& pass) {
  pass_ = pass;
  probabilities_.clear();
  labels_.assign(batch.labels.begin(), batch.labels.end());
  mixed_.assign(batch.mixed.begin(), batch.mixed.end());
  samples_.assign(batch.samples.begin(), batch.samples.end());
  if (batch.size() == 0 && !every_rank_passes_) return;
  assert(batch.size() * graph_.image().size() <= values_[0].dst.size());
  load_images(batch, graph_.input());
  for (int i = 1; i < to_int(values_.size()); ++i) {
    const system::Stopwatch watch;
    forward_node(i);
    times_[i].forward += watch.seconds();
  }
}

template <class T>
void ReferenceProgram<T>::backward_node(int index, T loss_scale) {
  const LayerArgs<T> a = args(index);
  const auto loss = [&](const auto& l) {
    if (a.diff_src) {
      cross_entropy_gradient(a.src_shape.channels, {labels_, mixed_, l.smoothing}, a.dst,
                             loss_scale, a.diff_src);
    }
  };
  const auto spread = [&] {  // the gradient of a sum goes to all of its parts
    for (const int src : graph_.nodes()[index].src) {
      auto& diff_src = values_[src].diff;
      if (!values_[src].wants_diff) continue;
      for (std::size_t i = 0; i < diff_src.size(); ++i) diff_src[i] += a.diff_dst[i];
    }
  };
  std::visit(Overloaded{
                 [](const model::Input&) {},
                 [&](const model::Dropout& l) {
                   if (!a.diff_src) return;
                   apply_dropout(dropout(index, l.rate), a.src_shape.size(), a.diff_dst, a.diff_src,
                                 true);
                 },
                 [&](const model::SigmoidCrossEntropy& l) { loss(l); },
                 [&](const model::SoftmaxCrossEntropy& l) { loss(l); },
                 [&](const model::BatchNorm& l) { reference::backward(l, batch_norm_args(index)); },
                 [&](const model::Add&) { spread(); },
                 [&](const model::Concat&) { take_apart(index); },
                 [&](const model::Dense& l) {
                   const bool sends_back = values_[graph_.nodes()[index].src.front()].wants_diff;
                   if (values_[index].sharded) {
                     return values_[index].sharded->backward(a, sends_back);
                   }
                   reference::backward(l, a);
                 },
                 [&](const model::Convolution& l) { reference::backward(l, args(index, l)); },
                 [&](const auto& l) { reference::backward(l, a); },
             },
             graph_.nodes()[index].layer);
}

template <class T>
void ReferenceProgram<T>::backward(const compute::Backward& call) {
  if (call.accumulate == compute::Accumulate::overwrite) {
    for (const Range& own : own_gradients_) {
      std::ranges::fill(arenas_.gradients.slice(own.begin, own.end).template as<T>(), T{0});
    }
  }
  for (auto& values : values_) std::ranges::fill(values.diff, T{0});
  for (int i = to_int(values_.size()) - 1; i > 0; --i) {
    if (!values_[i].wants_diff) continue;
    const system::Stopwatch watch;
    backward_node(i, static_cast<T>(call.loss_scale));
    times_[i].backward_weights += watch.seconds();  // both directions run in one loop
    if (!values_[i].learns) continue;
    call.ready(layout().parameters[values_[i].parameter].range.end, nullptr);
  }
  call.apply_update();
  call.ready(layout().gradient_size, nullptr);
}

template <class T>
std::size_t ReferenceProgram<T>::workspace_bytes() const {
  std::size_t elements = 0;
  for (const auto& values : values_) elements += values.dst.size() + values.diff.size();
  return elements * sizeof(T);
}

template <class T>
double ReferenceProgram<T>::waited() const {
  double seconds = 0;
  for (const auto& values : values_) seconds += values.sharded ? values.sharded->waited() : 0;
  return seconds;
}

template class ReferenceProgram<float>;
template class ReferenceProgram<double>;

}  // namespace cputrain::reference
