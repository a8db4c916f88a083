#include "backends/cpu/dense_step.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

namespace cputrain {

DenseStep::DenseStep(const Planning& planning, int step, const Graph::Node& node, const Source& src,
                     const Map& dst, std::size_t first_parameter, bool zeros_are_dead)
    : src_(src),
      dst_(dst),
      first_parameter_(first_parameter),
      in_(src.map.layout.size()),
      out_(dst.layout.size()),
      bias_(std::get<Dense>(node.layer).bias),
      learns_(planning.training() && !node.frozen),
      zeros_are_dead_(zeros_are_dead),
      may_skip_(alive_rows::may_pay(in_, out_)) {
  planning.use_forward(step, src, dst);
  planning.use_backward(step, src, dst);
  if (learns_) planning.memory.use(src.map.value, planning.backward_time(step));
  time_.name = node.name;
  time_.algorithm = may_skip_ ? "own where zeros make it pay, else sgemm" : "sgemm";
  time_.macs = static_cast<double>(src.map.layout.shape.size()) * static_cast<double>(out_);
  if (may_skip_) plan_skipping(planning, step);
}

void DenseStep::plan_skipping(const Planning& planning, int step) {
  MemoryPlan& memory = planning.memory;
  const auto most = static_cast<std::size_t>(planning.largest());
  const int forward = planning.forward_time(step);
  masks_block_ = memory.add(alive_rows::mask_count({most, in_, out_}) * sizeof(*masks_), forward);
  sums_block_ =
      memory.add(alive_rows::forward_scratch({std::min(most, alive_rows::kMostImages), in_, out_}) *
                     sizeof(float),
                 forward);
  if (dst_.wants_diff) memory.use(masks_block_, planning.backward_time(step));
}

std::vector<std::unique_ptr<ParameterFormat>> DenseStep::formats() const {
  std::vector<std::unique_ptr<ParameterFormat>> formats;
  formats.push_back(make_rows_format(src_.map.layout, out_));
  if (bias_) formats.push_back(make_vector_format(out_));
  return formats;
}

void DenseStep::bind(const Bindings& bindings) {
  src_data_ = bindings.at(src_.map.value);
  dst_data_ = bindings.at(dst_.value);
  weights_ = bindings.weights(first_parameter_);
  if (bias_) bias_data_ = bindings.weights(first_parameter_ + 1);
  if (may_skip_) {
    masks_ = bindings.at<std::uint64_t>(masks_block_);
    sums_ = bindings.at(sums_block_);
  }
  if (!dst_.wants_diff) return;
  dst_diff_ = bindings.at(dst_.diff);
  if (src_.map.wants_diff) src_diff_ = bindings.at(src_.map.diff);
  if (!learns_) return;
  weights_sum_ = bindings.gradients(first_parameter_);
  if (bias_) bias_sum_ = bindings.gradients(first_parameter_ + 1);
}

template <class F>
void DenseStep::for_groups(std::size_t images, const F& f) const {
  for (std::size_t first = 0; first < images; first += alive_rows::kMostImages) {
    const std::size_t count = std::min(alive_rows::kMostImages, images - first);
    f(first, alive_rows::Sizes{count, in_, out_}, masks_ + first * alive_rows::blocks(in_));
  }
}

void DenseStep::look_for_zeros(std::size_t images) {
  alive_ = 0;
  for_groups(images, [&](std::size_t first, const alive_rows::Sizes& sizes, std::uint64_t* masks) {
    alive_ += alive_rows::find_alive(instruction_set_, sizes, src_data_ + first * in_, masks);
  });
}

void DenseStep::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const auto images = static_cast<std::size_t>(execution.images);
  if (bias_) {
    for (std::size_t n = 0; n < images; ++n) std::copy_n(bias_data_, out_, dst_data_ + n * out_);
  }
  if (may_skip_) look_for_zeros(images);
  if (!may_skip_ || !alive_rows::forward_pays(images, in_, alive_)) {
    return multiply({false, false, images, out_, in_}, src_data_, weights_, bias_ ? 1.0f : 0.0f,
                    dst_data_);
  }
  if (!bias_) std::fill_n(dst_data_, images * out_, 0.0f);
  for_groups(images,
             [&](std::size_t first, const alive_rows::Sizes& sizes, const std::uint64_t* masks) {
               alive_rows::forward(instruction_set_, sizes, masks, src_data_ + first * in_,
                                   weights_, sums_, dst_data_ + first * out_);
             });
}

void DenseStep::add_bias_gradient(std::size_t images, bool overwrite) {
  if (overwrite) std::fill_n(bias_sum_, out_, 0.0f);
  for (std::size_t n = 0; n < images; ++n) kernels::add(dst_diff_ + n * out_, bias_sum_, out_);
}

void DenseStep::write_weights_gradient(std::size_t images, bool overwrite) {
  if (!may_skip_ || !alive_rows::backward_pays(images, in_, alive_)) {
    return multiply({true, false, in_, out_, images}, src_data_, dst_diff_, overwrite ? 0.0f : 1.0f,
                    weights_sum_);
  }
  for_groups(images, [&](std::size_t first, const alive_rows::Sizes& sizes,
                         const std::uint64_t* masks) {
    alive_rows::backward_weights(instruction_set_, sizes, masks, src_data_ + first * in_,
                                 dst_diff_ + first * out_, !overwrite || first > 0, weights_sum_);
  });
}

void DenseStep::write_source_gradient(std::size_t images) {
  if (!may_skip_ || !zeros_are_dead_ || !alive_rows::backward_pays(images, in_, alive_)) {
    return multiply({false, true, images, in_, out_}, dst_diff_, weights_, src_.adds ? 1.0f : 0.0f,
                    src_diff_);
  }
  for_groups(
      images, [&](std::size_t first, const alive_rows::Sizes& sizes, const std::uint64_t* masks) {
        alive_rows::backward_data(instruction_set_, sizes, masks, weights_,
                                  dst_diff_ + first * out_, src_.adds, src_diff_ + first * in_);
      });
}

void DenseStep::backward(const Execution& execution) {
  const auto images = static_cast<std::size_t>(execution.images);
  if (learns_) {
    const TimeSpan span(time_.backward_weights);
    const bool overwrite = execution.accumulate == Accumulate::overwrite;
    write_weights_gradient(images, overwrite);
    if (bias_) add_bias_gradient(images, overwrite);
  }
  if (!src_diff_) return;
  const TimeSpan span(time_.backward_data);
  write_source_gradient(images);
}

}  // namespace cputrain
