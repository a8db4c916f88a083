#include "backends/cpu/ops/batch_norm_op.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cpu/kernels/parallel.h"
#include "comm/communicator.h"
#include "core/casts.h"
#include "data/batch_plan.h"

namespace cputrain::cpu {

template <class Number>
BatchNormOp<Number>::BatchNormOp(const Planning& planning, int op, const model::Graph::Node& node,
                                 bool relu, const Source& src, const Activation& dst,
                                 std::size_t first_parameter)
    : Unary(planning, op, src, dst, node.name, relu ? "own, with ReLU" : "own"),
      layer_(std::get<model::BatchNorm>(node.layer)),
      relu_(relu),
      frozen_(node.frozen),
      training_(planning.training()),
      first_parameter_(first_parameter),
      synchronise_(planning.options.synchronise) {
  for (auto* values : {&scale_, &shift_, &mean_f_, &slope_, &offset_}) values->resize(lanes());
  for (auto* values : {&mean_, &variance_, &inverse_}) values->resize(lanes());
  for (auto* values : {&group_means_, &group_squares_}) values->resize(kGroups * lanes());
  sums_.reserve(2 * lanes() + 1);
  if (dst.wants_diff) planning.memory.use(src.value, planning.backward_time(op));
}

template <class Number>
std::vector<std::unique_ptr<compute::ParameterFormat>> BatchNormOp<Number>::formats() const {
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats;
  for (int i = 0; i < 4; ++i) {
    formats.push_back(make_vector_format(to_size(src_.layout.shape.channels)));
  }
  return formats;
}

template <class Number>
void BatchNormOp<Number>::bind(const Bindings& bindings) {
  Unary::bind(bindings);
  gamma_ = bindings.weights(first_parameter_);
  beta_ = bindings.weights(first_parameter_ + 1);
  moving_mean_ = bindings.weights(first_parameter_ + 2);
  moving_variance_ = bindings.weights(first_parameter_ + 3);
  if (!dst_.wants_diff || frozen_) return;
  gamma_sum_ = bindings.gradients(first_parameter_);
  beta_sum_ = bindings.gradients(first_parameter_ + 1);
}

template <class Number>
std::size_t BatchNormOp<Number>::pixels() const {
  const compute::SampleLayout& layout = src_.layout;
  return layout.size() / lanes();
}

template <class Number>
bool BatchNormOp<Number>::learns(const compute::Pass& pass) const {
  return pass.phase == compute::Phase::train && !frozen_;
}

template <class Number>
void BatchNormOp<Number>::sum_over_ranks(std::vector<double>& values) const {
  if (synchronise_) synchronise_->sum(Array::of<double>(values));
}

/// Calls f(image, its number in its group, block of channels, where its lanes begin in the groups'
/// sums) for images of a pass that has `all`. Each lane meets its images in their order, whatever
/// the number of threads, and however a pass is cut into such ranges.
template <class Number>
template <class F>
void BatchNormOp<Number>::sum_in_groups(const Range& images, std::size_t all, const F& f) {
  if (images.begin == 0) {
    std::ranges::fill(group_means_, 0.0);
    std::ranges::fill(group_squares_, 0.0);
  }
  summed_ = images.end;
  // A thread alone goes through memory as it lies; several share few images by their channels.
  const std::size_t parts = std::min(planes(), parts_for_threads());
  parallel_for(kGroups * parts, [&](std::size_t unit) {
    const std::size_t group = unit / parts;
    const Range own = data::share(all, to_int(group), kGroups);
    const Range blocks = data::share(planes(), to_int(unit % parts), to_int(parts));
    const std::size_t end = std::min(own.end, images.end);
    for (std::size_t image = std::max(own.begin, images.begin); image < end; ++image) {
      for (std::size_t block = blocks.begin; block < blocks.end; ++block) {
        f(image, image - own.begin, block, group * lanes() + block * to_size(src_.layout.block));
      }
    }
  });
}

/// Calls f(image, block of channels) from the last to the first: what was written or read last is
/// still in the caches, and what is written last is what the next operator begins with.
template <class Number>
template <class F>
void BatchNormOp<Number>::for_planes_backwards(std::size_t images, const F& f) const {
  const std::size_t units = images * planes();
  parallel_for(units, [&](std::size_t i) {
    const std::size_t unit = units - 1 - i;
    f(unit / planes(), unit % planes());
  });
}

template <class Number>
void BatchNormOp<Number>::measure(const Range& images, std::size_t all) {
  sum_in_groups(images, all,
                [&](std::size_t image, std::size_t of_group, std::size_t block, std::size_t lane) {
                  kernels::add_moments(src_.layout.block, plane(src_data_, image, block), pixels(),
                                       to_double(of_group * pixels()), group_means_.data() + lane,
                                       group_squares_.data() + lane);
                });
}

/// Mean and variance of this rank's images from those of the groups.
template <class Number>
void BatchNormOp<Number>::join_groups(std::size_t images) {
  std::ranges::fill(mean_, 0.0);
  std::ranges::fill(variance_, 0.0);
  if (images == 0) return;
  for (std::size_t group = 0; group < kGroups; ++group) {
    const auto part =
        to_double(data::share(images, to_int(group), kGroups).size()) / to_double(images);
    for (std::size_t i = 0; i < lanes(); ++i) mean_[i] += part * group_means_[group * lanes() + i];
  }
  const auto all = to_double(images * pixels());
  for (std::size_t group = 0; group < kGroups; ++group) {
    const auto part =
        to_double(data::share(images, to_int(group), kGroups).size()) / to_double(images);
    for (std::size_t i = 0; i < lanes(); ++i) {
      const double distance = group_means_[group * lanes() + i] - mean_[i];
      variance_[i] += group_squares_[group * lanes() + i] / all + part * distance * distance;
    }
  }
}

/// The same from those of all ranks, weighted by their images.
template <class Number>
void BatchNormOp<Number>::join_ranks() {
  if (!synchronise_) return;
  const double own = count_;
  sums_.assign(mean_.begin(), mean_.end());
  for (double& sum : sums_) sum *= own;
  sums_.push_back(own);
  sum_over_ranks(sums_);
  count_ = sums_.back();
  std::vector<double>& squares = variance_;
  for (std::size_t i = 0; i < lanes(); ++i) {
    const double mean = count_ > 0 ? sums_[i] / count_ : 0;
    const double distance = mean_[i] - mean;
    squares[i] = own * (squares[i] + distance * distance);
    mean_[i] = mean;
  }
  sum_over_ranks(squares);
  for (double& square : squares) square = count_ > 0 ? square / count_ : 0;
}

template <class Number>
void BatchNormOp<Number>::join_statistics(std::size_t images) {
  join_groups(images);
  count_ = to_double(images * pixels());
  join_ranks();
  move_statistics();
}

template <class Number>
void BatchNormOp<Number>::move_statistics() {
  if (count_ == 0) return;
  const auto channels = to_size(src_.layout.shape.channels);
  if (!moved_) {  // the first pass of a step goes on from the published ones
    new_mean_.assign(moving_mean_, moving_mean_ + channels);
    new_variance_.assign(moving_variance_, moving_variance_ + channels);
    moved_ = true;
  }
  const double step = 1 - to_double(layer_.momentum);
  const double unbiased = count_ > 1 ? count_ / (count_ - 1) : 1;
  for (std::size_t c = 0; c < channels; ++c) {
    new_mean_[c] += static_cast<float>((mean_[c] - new_mean_[c]) * step);
    new_variance_[c] += static_cast<float>((variance_[c] * unbiased - new_variance_[c]) * step);
  }
}

template <class Number>
void BatchNormOp<Number>::publish_statistics() {
  if (!moved_) return;
  std::ranges::copy(new_mean_, moving_mean_);
  std::ranges::copy(new_variance_, moving_variance_);
  moved_ = false;
}

template <class Number>
void BatchNormOp<Number>::prepare_lanes(bool learns) {
  for (int c = 0; c < src_.layout.shape.channels; ++c) {
    const double mean = learns ? mean_[c] : moving_mean_[c];
    const double variance = learns ? variance_[c] : moving_variance_[c];
    inverse_[c] = 1 / std::sqrt(variance + to_double(layer_.epsilon));
    mean_f_[c] = static_cast<float>(mean);
    scale_[c] = static_cast<float>(gamma_[c] * inverse_[c]);
    shift_[c] = static_cast<float>(beta_[c] - mean * gamma_[c] * inverse_[c]);
  }
}

template <class Number>
void BatchNormOp<Number>::normalize(std::size_t images) {
  const int width = src_.layout.block;
  for_planes_backwards(images, [&](std::size_t image, std::size_t block) {
    const std::size_t lane = block * to_size(width);
    kernels::normalize(width, relu_, plane(src_data_, image, block), scale_.data() + lane,
                       shift_.data() + lane, pixels(), plane(dst_data_, image, block));
  });
}

template <class Number>
void BatchNormOp<Number>::value_written(const Execution& execution, const Range& images) {
  if (!learns(execution.pass)) return;
  const TimeSpan span(time_.forward);
  measure(images, to_size(execution.images));
}

template <class Number>
void BatchNormOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const auto images = to_size(execution.images);
  learnt_ = learns(execution.pass);
  if (learnt_) {
    if (summed_ == 0) measure({0, images}, images);
    join_statistics(images);
  }
  summed_ = 0;
  prepare_lanes(learnt_);
  normalize(images);
}

template <class Number>
void BatchNormOp<Number>::forward_of_nothing(const Execution& execution) {
  learnt_ = learns(execution.pass);
  if (learnt_) join_statistics(0);
}

/// Adds these images' gradients, and their products with the distances from the mean.
template <class Number>
void BatchNormOp<Number>::sum_slopes(const Range& images, std::size_t all) {
  const int width = src_.layout.block;
  sum_in_groups(images, all,
                [&](std::size_t image, std::size_t, std::size_t block, std::size_t lane) {
                  const std::size_t own = block * to_size(width);
                  const kernels::Normalization known{relu_, scale_.data() + own,
                                                     shift_.data() + own, mean_f_.data() + own};
                  kernels::add_slopes(width, known, plane(src_data_, image, block),
                                      plane(dst_diff_, image, block), pixels(),
                                      group_means_.data() + lane, group_squares_.data() + lane);
                });
}

/// Sums over this rank's images of the gradient and of the gradient times the normalised value.
template <class Number>
void BatchNormOp<Number>::join_slopes() {
  sums_.assign(2 * lanes(), 0.0);
  for (std::size_t group = 0; group < kGroups; ++group) {
    for (std::size_t i = 0; i < lanes(); ++i) {
      sums_[i] += group_means_[group * lanes() + i];
      sums_[lanes() + i] += group_squares_[group * lanes() + i] * inverse_[i];
    }
  }
}

template <class Number>
void BatchNormOp<Number>::gradient_written(const Execution& execution, const Range& images) {
  if (!dst_.wants_diff || frozen_) return;
  const TimeSpan span(time_.backward_data);
  sum_slopes(images, to_size(execution.images));
}

template <class Number>
void BatchNormOp<Number>::write_parameter_gradients(bool overwrite) {
  for (int c = 0; c < src_.layout.shape.channels; ++c) {
    const auto sum = static_cast<float>(sums_[c]);
    const auto product = static_cast<float>(sums_[lanes() + to_size(c)]);
    beta_sum_[c] = overwrite ? sum : beta_sum_[c] + sum;
    gamma_sum_[c] = overwrite ? product : gamma_sum_[c] + product;
  }
}

/// The gradient is centred, and loses its part along the normalised values, since both mean and
/// variance depend on every value; moving statistics do not.
template <class Number>
void BatchNormOp<Number>::write_gradient(std::size_t images) {
  for (std::size_t i = 0; i < lanes(); ++i) {
    const double part = learnt_ ? scale_[i] / count_ : 0;
    slope_[i] = static_cast<float>(-part * sums_[lanes() + i] * inverse_[i]);
    offset_[i] = static_cast<float>(-part * sums_[i]);
  }
  const int width = src_.layout.block;
  for_planes_backwards(images, [&](std::size_t image, std::size_t block) {
    const std::size_t lane = block * to_size(width);
    kernels::normalize_backward(
        width, {relu_, scale_.data() + lane, shift_.data() + lane, mean_f_.data() + lane},
        plane(src_data_, image, block), plane(dst_diff_, image, block), slope_.data() + lane,
        offset_.data() + lane, pixels(), src_.adds, plane(src_diff_, image, block));
  });
}

template <class Number>
void BatchNormOp<Number>::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!dst_.wants_diff) return;
  const auto images = to_size(execution.images);
  if (!frozen_) {
    if (summed_ == 0) sum_slopes({0, images}, images);
    summed_ = 0;  // the next sums are those of a value
    join_slopes();
    write_parameter_gradients(execution.accumulate == compute::Accumulate::overwrite);
    sum_over_ranks(sums_);
  } else {
    sums_.assign(2 * lanes(), 0.0);
  }
  if (src_diff_) write_gradient(images);
}

template <class Number>
void BatchNormOp<Number>::backward_of_nothing(compute::Accumulate) {
  if (!dst_.wants_diff || frozen_) return;
  sums_.assign(2 * lanes(), 0.0);
  sum_over_ranks(sums_);
}

template class BatchNormOp<float>;
template class BatchNormOp<Bf16>;

}  // namespace cputrain::cpu
