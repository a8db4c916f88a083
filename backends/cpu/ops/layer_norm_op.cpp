#include "backends/cpu/ops/layer_norm_op.h"

#include <algorithm>

#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"
#include "data/batch_plan.h"

namespace cputrain::cpu {
namespace {

/// Gradients of gamma and beta are summed in so many groups of images at most, each by one thread
/// for a block of channels.
constexpr std::size_t kSlopeGroups = 8;

/// A flat vector, of one channel a block, is one pixel in blocks that vectors fit.
kernels::PixelNorm norm_of(const model::LayerNorm& layer, const compute::SampleLayout& layout) {
  const Shape& shape = layout.shape;
  const std::size_t pixels = to_size(shape.height) * to_size(shape.width);
  const bool flat = layout.block == 1 && pixels == 1;
  return {.block = flat ? 16 : layout.block,
          .flat = flat,
          .pixels = pixels,
          .channels = to_size(shape.channels),
          .epsilon = layer.epsilon,
          .gamma = nullptr,
          .beta = nullptr,
          .ones = nullptr,
          .mean = nullptr,
          .inverse = nullptr};
}

}  // namespace

template <class Number>
LayerNormOp<Number>::LayerNormOp(const Planning& planning, int op, const model::Graph::Node& node,
                                 const Source& src, const Activation& dst,
                                 std::size_t first_parameter)
    : Unary(planning, op, src, dst, node.name, "own"),
      layer_(std::get<model::LayerNorm>(node.layer)),
      first_parameter_(first_parameter),
      norm_(norm_of(layer_, src.layout)) {
  const std::size_t lanes = norm_.blocks() * to_size(norm_.block);
  beta_.resize(lanes);
  ones_.resize(lanes);
  std::fill_n(ones_.begin(), norm_.channels, 1.0f);
  gamma_ = ones_;
  const std::size_t numbers = 2 * norm_.pixels * to_size(planning.largest());
  statistics_block_ = planning.memory.add(numbers * sizeof(float), planning.forward_time(op));
  if (!dst.wants_diff) return;
  group_slopes_.resize(kSlopeGroups * 2 * lanes);
  planning.memory.use(statistics_block_, planning.backward_time(op));
  planning.memory.use(src.value, planning.backward_time(op));
}

template <class Number>
std::vector<std::unique_ptr<compute::ParameterFormat>> LayerNormOp<Number>::formats() const {
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats;
  for (const bool has : {layer_.scale, layer_.offset}) {
    if (has) formats.push_back(make_vector_format(norm_.channels));
  }
  return formats;
}

template <class Number>
void LayerNormOp<Number>::bind(const Bindings& bindings) {
  Unary::bind(bindings);
  statistics_ = bindings.at(statistics_block_);
  const std::size_t beta = first_parameter_ + (layer_.scale ? 1 : 0);
  if (layer_.scale) gamma_data_ = bindings.weights(first_parameter_);
  if (layer_.offset) beta_data_ = bindings.weights(beta);
  if (!dst_.wants_diff) return;
  if (layer_.scale) gamma_sum_ = bindings.gradients(first_parameter_);
  if (layer_.offset) beta_sum_ = bindings.gradients(beta);
}

template <class Number>
kernels::PixelNorm LayerNormOp<Number>::of_image(std::size_t image) const {
  kernels::PixelNorm norm = norm_;
  norm.gamma = gamma_.data();
  norm.beta = beta_.data();
  norm.ones = ones_.data();
  norm.mean = statistics_ + 2 * image * norm.pixels;
  norm.inverse = norm.mean + norm.pixels;
  return norm;
}

/// Calls f(image, where it lies, a range of its pixels) for all of them.
template <class Number>
template <class F>
void LayerNormOp<Number>::for_pixels(std::size_t images, const F& f) const {
  constexpr std::size_t kPixels = 16 * kernels::kPixelsAtOnce;
  const std::size_t parts = (norm_.pixels + kPixels - 1) / kPixels;
  parallel_for(images * parts, [&](std::size_t unit) {
    const std::size_t image = unit / parts, first = unit % parts * kPixels;
    f(of_image(image), image * src_.layout.size(),
      Range{first, std::min(first + kPixels, norm_.pixels)});
  });
}

template <class Number>
void LayerNormOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  if (gamma_data_) std::copy_n(gamma_data_, norm_.channels, gamma_.begin());
  if (beta_data_) std::copy_n(beta_data_, norm_.channels, beta_.begin());
  for_pixels(to_size(execution.images),
             [&](const kernels::PixelNorm& norm, std::size_t place, const Range& pixels) {
               kernels::normalize_pixels(norm, pixels, src_data_ + place, dst_data_ + place);
             });
}

/// A lane meets the images of its group in their order, whatever the number of threads.
template <class Number>
void LayerNormOp<Number>::sum_slopes(std::size_t images) {
  std::ranges::fill(group_slopes_, 0.0);
  const std::size_t lanes = gamma_.size(), parts = std::min(norm_.blocks(), parts_for_threads());
  parallel_for(kSlopeGroups * parts, [&](std::size_t unit) {
    const std::size_t group = unit / parts;
    const Range own = data::share(images, to_int(group), kSlopeGroups);
    const Range blocks = data::share(norm_.blocks(), to_int(unit % parts), to_int(parts));
    double* const sums = group_slopes_.data() + group * 2 * lanes;
    for (std::size_t image = own.begin; image < own.end; ++image) {
      const std::size_t place = image * src_.layout.size();
      kernels::add_pixel_slopes(of_image(image), blocks, src_data_ + place, dst_diff_ + place, sums,
                                sums + lanes);
    }
  });
}

template <class Number>
void LayerNormOp<Number>::write_parameter_gradients(bool overwrite) {
  const std::size_t lanes = gamma_.size();
  const auto write = [&](float* gradient, std::size_t row) {
    for (std::size_t c = 0; gradient && c < norm_.channels; ++c) {
      double sum = 0;
      for (std::size_t group = 0; group < kSlopeGroups; ++group) {
        sum += group_slopes_[(2 * group + row) * lanes + c];
      }
      gradient[c] = (overwrite ? 0 : gradient[c]) + static_cast<float>(sum);
    }
  };
  write(beta_sum_, 0);
  write(gamma_sum_, 1);
}

template <class Number>
void LayerNormOp<Number>::backward(const Execution& execution) {
  if (!dst_.wants_diff) return;
  const auto images = to_size(execution.images);
  if (gamma_sum_ || beta_sum_) {
    const TimeSpan span(time_.backward_weights);
    sum_slopes(images);
    write_parameter_gradients(!execution.adds());
  }
  if (!src_diff_) return;
  const TimeSpan span(time_.backward_data);
  for_pixels(images, [&](const kernels::PixelNorm& norm, std::size_t place, const Range& pixels) {
    kernels::normalize_pixels_backward(norm, pixels, src_data_ + place, dst_diff_ + place,
                                       src_diff_ + place, src_.adds);
  });
}

template class LayerNormOp<float>;
template class LayerNormOp<Bf16>;

}  // namespace cputrain::cpu
