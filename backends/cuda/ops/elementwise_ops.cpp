#include "backends/cuda/ops/elementwise_ops.h"

#include <algorithm>

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

bool takes_zeros(const model::Convolution& layer, const model::ZeroPad& zeros) {
  const int most = std::max({zeros.top, zeros.bottom, zeros.left, zeros.right});
  return layer.padding == model::Padding::valid && most < layer.kernel;
}

std::optional<PixelPairs> PixelPairs::of(compute::GraphWalk walk) {
  const Shape& image = walk.node().dst;
  const auto* const zeros = walk.only_next_is<model::ZeroPad>();
  if (zeros) walk.advance();
  const auto* const layer = walk.only_next_is<model::Convolution>();
  if (image.channels != kColours || !layer || layer->stride != 2 || layer->groups != 1 ||
      (zeros && !takes_zeros(*layer, *zeros))) {
    return {};
  }
  const auto pad = model::pad_amount(layer->padding, image.width, layer->kernel, layer->stride);
  return PixelPairs{image, zeros ? zeros->left : pad.before};
}

InputOp::InputOp(const Planning& planning, const model::Graph::Node& node,
                 const std::optional<PixelPairs>& pairs, const Activation& dst)
    : DeviceOp(planning, node.name, pairs ? "bytes to pairs of numbers" : "bytes to numbers"),
      load_(images_of(planning, node)),
      dst_(dst) {
  if (pairs) {
    load_.pixels = kPixelsOfPair;
    load_.left = pairs->shift();
  }
  planning.memory.use(dst.value, planning.forward_time(0));
}

void InputOp::bind(const Bindings& bindings) { dst_data_ = bindings.value<void>(dst_); }

void InputOp::forward(const Execution& execution) {
  ImageLoad load = load_;
  load.images = execution.images;
  timed(forward_time_, [&] { load_images(stream(), numbers(), load, dst_data_); });
}

RectifierOp::RectifierOp(const Planning& planning, int op, const model::Graph::Node& node,
                         const Pointwise& rectifier, const Activation& activation)
    : InPlaceOp(planning, op, activation, planning, node.name, "in place"), rectifier_(rectifier) {
  if (activation.wants_diff) planning.memory.use(activation.value, planning.backward_time(op));
}

void RectifierOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    activate(stream(), numbers(), rectifier_, activation_.count(execution.images), value_, value_);
  });
}

/// Operators behind this one may have changed it in place, but never a number's sign; and where it
/// is capped not even its value (TrackedActivation::numbers_matter).
void RectifierOp::backward(const Execution& execution) {
  if (!diff_) return;
  timed(data_time_, [&] {
    activate_backward(stream(), numbers(), rectifier_, activation_.count(execution.images), value_,
                      diff_, diff_, false);
  });
}

SiluOp::SiluOp(const Planning& planning, int op, const model::Graph::Node& node, const Source& src,
               const Activation& dst)
    : UnaryOp(planning, op, src, dst, planning, node.name, "number by number") {
  if (src.wants_diff) planning.memory.use(src.value, planning.backward_time(op));
}

void SiluOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    activate(stream(), numbers(), model::Silu{}, dst_.count(execution.images), src_data_,
             dst_data_);
  });
}

void SiluOp::backward(const Execution& execution) {
  if (!src_diff_) return;
  timed(data_time_, [&] {
    activate_backward(stream(), numbers(), model::Silu{}, dst_.count(execution.images), src_data_,
                      dst_diff_, src_diff_, src_.adds);
  });
}

DropoutOp::DropoutOp(const Planning& planning, int op, const model::Graph::Node& node,
                     const Activation& activation)
    : InPlaceOp(planning, op, activation, planning, node.name, "drawn by counter, in place"),
      rate_(std::get<model::Dropout>(node.layer).rate),
      layer_(static_cast<std::uint32_t>(node.origin)),
      facts_(planning.facts) {}

void DropoutOp::forward(const Execution& execution) {
  if (execution.pass.phase != compute::Phase::train || rate_ == 0) return;
  timed(forward_time_, [&] { apply(execution, value_); });
}

void DropoutOp::backward(const Execution& execution) {
  if (!diff_ || rate_ == 0) return;
  timed(data_time_, [&] { apply(execution, diff_); });
}

void DropoutOp::apply(const Execution& execution, void* values) const {
  dropout(stream(), numbers(),
          {.rate = rate_,
           .layer = layer_,
           .images = execution.images,
           .positions = activation_.layout.shape.height * activation_.layout.shape.width,
           .channels = activation_.layout.shape.channels},
          facts_, values);
}

AddOp::AddOp(const Planning& planning, int op, std::string name, std::vector<Source> parts,
             const Activation& dst)
    : SumOp(planning, op, std::move(parts), dst, planning, std::move(name), "in order") {}

/// The first call takes as many as it can; each further one adds its own to what is there.
void AddOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    for (std::size_t done = 0; done < src_data_.size();) {
      MapList maps{};
      if (done > 0) maps.of[maps.count++] = dst_data_;
      while (done < src_data_.size() && maps.count < kMostMaps) {
        maps.of[maps.count++] = src_data_[done++];
      }
      add_maps(stream(), numbers(), dst_.count(execution.images), maps, dst_data_);
    }
  });
}

void AddOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  timed(data_time_, [&] {
    // Where one activation is added twice, the last part writes first.
    for (std::size_t i = parts_.size(); i-- > 0;) {
      if (!src_diff_[i]) continue;
      pass_on(stream(), numbers(), dst_.count(execution.images), dst_diff_, src_diff_[i],
              parts_[i].adds);
    }
  });
}

void pass_on(Stream stream, Numbers numbers, std::size_t count, const void* diff, void* of_part,
             bool add) {
  const MapList both{{of_part, diff}, 2}, alone{{diff}, 1};
  add_maps(stream, numbers, count, add ? both : alone, of_part);
}

ConcatOp::ConcatOp(const Planning& planning, int op, std::string name, std::vector<Source> parts,
                   const Activation& dst)
    : SumOp(planning, op, std::move(parts), dst, planning, std::move(name), "copies") {
  int first = 0;
  for (const Source& part : parts_) {
    firsts_.push_back(first);
    first += part.layout.shape.channels;
  }
}

ConcatPart ConcatOp::part(std::size_t i, int images) const {
  const Shape& whole = dst_.layout.shape;
  return {.positions = images * whole.height * whole.width,
          .channels = parts_[i].layout.shape.channels,
          .first = firsts_[i],
          .whole = whole.channels};
}

void ConcatOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      concat_forward(stream(), numbers(), part(i, execution.images), src_data_[i], dst_data_);
    }
  });
}

void ConcatOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  timed(data_time_, [&] {
    // Where one activation is two parts, the last one writes first.
    for (std::size_t i = parts_.size(); i-- > 0;) {
      if (!src_diff_[i]) continue;
      concat_backward(stream(), numbers(), part(i, execution.images), dst_diff_, src_diff_[i],
                      parts_[i].adds);
    }
  });
}

}  // namespace cputrain::cuda
