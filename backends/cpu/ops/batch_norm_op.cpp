#include "backends/cpu/ops/batch_norm_op.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/parallel.h"
#include "comm/communicator.h"
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
    formats.push_back(make_vector_format(static_cast<std::size_t>(src_.layout.shape.channels)));
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

template <class Number>
void BatchNormOp<Number>::measure_group(Range images, std::size_t group, std::size_t block) {
  const auto width = static_cast<std::size_t>(src_.layout.block);
  double* mean = group_means_.data() + group * lanes() + block * width;
  double* squares = group_squares_.data() + group * lanes() + block * width;
  std::fill_n(mean, width, 0.0);
  std::fill_n(squares, width, 0.0);
  for (std::size_t image = images.begin; image < images.end; ++image) {
    const auto before = static_cast<double>((image - images.begin) * pixels());
    kernels::add_moments(src_.layout.block, plane(src_data_, image, block), pixels(), before, mean,
                         squares);
  }
}

/// Mean and variance of this rank's images from those of the groups.
template <class Number>
void BatchNormOp<Number>::join_groups(std::size_t images) {
  std::ranges::fill(mean_, 0.0);
  std::ranges::fill(variance_, 0.0);
  if (images == 0) return;
  for (std::size_t group = 0; group < kGroups; ++group) {
    const auto part =
        static_cast<double>(data::share(images, static_cast<int>(group), kGroups).size()) /
        static_cast<double>(images);
    for (std::size_t i = 0; i < lanes(); ++i) mean_[i] += part * group_means_[group * lanes() + i];
  }
  const auto all = static_cast<double>(images * pixels());
  for (std::size_t group = 0; group < kGroups; ++group) {
    const auto part =
        static_cast<double>(data::share(images, static_cast<int>(group), kGroups).size()) /
        static_cast<double>(images);
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
void BatchNormOp<Number>::measure(std::size_t images) {
  const std::size_t groups = images == 0 ? 0 : kGroups;
  parallel_for(groups * planes(), [&](std::size_t unit) {
    const std::size_t group = unit / planes();
    measure_group(data::share(images, static_cast<int>(group), kGroups), group, unit % planes());
  });
  join_groups(images);
  count_ = static_cast<double>(images * pixels());
  join_ranks();
}

template <class Number>
void BatchNormOp<Number>::move_statistics() {
  if (count_ == 0) return;
  const auto channels = static_cast<std::size_t>(src_.layout.shape.channels);
  if (!moved_) {  // the first pass of a step goes on from the published ones
    new_mean_.assign(moving_mean_, moving_mean_ + channels);
    new_variance_.assign(moving_variance_, moving_variance_ + channels);
    moved_ = true;
  }
  const double step = 1 - static_cast<double>(layer_.momentum);
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
    inverse_[c] = 1 / std::sqrt(variance + static_cast<double>(layer_.epsilon));
    mean_f_[c] = static_cast<float>(mean);
    scale_[c] = static_cast<float>(gamma_[c] * inverse_[c]);
    shift_[c] = static_cast<float>(beta_[c] - mean * gamma_[c] * inverse_[c]);
  }
}

template <class Number>
void BatchNormOp<Number>::normalize(std::size_t images) {
  const int width = src_.layout.block;
  parallel_for(images * planes(), [&](std::size_t unit) {
    const std::size_t image = unit / planes(), block = unit % planes();
    const std::size_t lane = block * static_cast<std::size_t>(width);
    kernels::normalize(width, relu_, plane(src_data_, image, block), scale_.data() + lane,
                       shift_.data() + lane, pixels(), plane(dst_data_, image, block));
  });
}

template <class Number>
void BatchNormOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const auto images = static_cast<std::size_t>(execution.images);
  learnt_ = learns(execution.pass);
  if (learnt_) {
    measure(images);
    move_statistics();
  }
  prepare_lanes(learnt_);
  normalize(images);
}

template <class Number>
void BatchNormOp<Number>::forward_of_nothing(const Execution& execution) {
  learnt_ = learns(execution.pass);
  if (!learnt_) return;
  measure(0);
  move_statistics();
}

/// Sums over this rank's images of the gradient and of the gradient times the normalised value.
template <class Number>
void BatchNormOp<Number>::sum_slopes(std::size_t images) {
  const int width = src_.layout.block;
  std::ranges::fill(group_means_, 0.0);
  std::ranges::fill(group_squares_, 0.0);
  parallel_for((images == 0 ? 0 : kGroups) * planes(), [&](std::size_t unit) {
    const std::size_t group = unit / planes(), block = unit % planes();
    const std::size_t lane = block * static_cast<std::size_t>(width);
    const Range own = data::share(images, static_cast<int>(group), kGroups);
    const kernels::Normalization known{relu_, scale_.data() + lane, shift_.data() + lane,
                                       mean_f_.data() + lane};
    for (std::size_t image = own.begin; image < own.end; ++image) {
      kernels::add_slopes(width, known, plane(src_data_, image, block),
                          plane(dst_diff_, image, block), pixels(),
                          group_means_.data() + group * lanes() + lane,
                          group_squares_.data() + group * lanes() + lane);
    }
  });
  sums_.assign(2 * lanes(), 0.0);
  for (std::size_t group = 0; group < kGroups; ++group) {
    for (std::size_t i = 0; i < lanes(); ++i) {
      sums_[i] += group_means_[group * lanes() + i];
      sums_[lanes() + i] += group_squares_[group * lanes() + i] * inverse_[i];
    }
  }
}

template <class Number>
void BatchNormOp<Number>::write_parameter_gradients(bool overwrite) {
  for (int c = 0; c < src_.layout.shape.channels; ++c) {
    const auto sum = static_cast<float>(sums_[c]);
    const auto product = static_cast<float>(sums_[lanes() + static_cast<std::size_t>(c)]);
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
  parallel_for(images * planes(), [&](std::size_t unit) {
    const std::size_t image = unit / planes(), block = unit % planes();
    const std::size_t lane = block * static_cast<std::size_t>(width);
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
  const auto images = static_cast<std::size_t>(execution.images);
  if (!frozen_) {
    sum_slopes(images);
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
