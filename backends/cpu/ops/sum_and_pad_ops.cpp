#include "backends/cpu/ops/sum_and_pad_ops.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"

namespace cputrain::cpu {

AddOp::AddOp(const Planning& planning, int op, std::string name,
             std::vector<compute::SumPart> parts, const Activation& dst)
    : SumOp(planning, op, std::move(parts), dst, std::move(name), "own") {}

void AddOp::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const std::size_t count = dst_.count(execution.images);
  parallel_ranges(count, [&](std::size_t begin, std::size_t end) {
    if (src_data_.size() == 1) {
      std::copy(src_data_[0] + begin, src_data_[0] + end, dst_data_ + begin);
      return;
    }
    kernels::sum(src_data_[0] + begin, src_data_[1] + begin, dst_data_ + begin, end - begin);
    for (std::size_t i = 2; i < src_data_.size(); ++i) {
      kernels::add(src_data_[i] + begin, dst_data_ + begin, end - begin);
    }
  });
}

void AddOp::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  const std::size_t count = dst_.count(execution.images);
  // An activation may be added twice. Its last part writes the gradient (share_gradient), so parts
  // are taken from the back.
  for (std::size_t i = parts_.size(); i-- > 0;) {
    float* diff = src_diff_[i];
    if (!diff) continue;
    parallel_ranges(count, [&](std::size_t begin, std::size_t end) {
      if (parts_[i].src.adds) {
        kernels::add(dst_diff_ + begin, diff + begin, end - begin);
      } else {
        std::copy(dst_diff_ + begin, dst_diff_ + end, diff + begin);
      }
    });
  }
}

PadOp::PadOp(const Planning& planning, int op, const model::Graph::Node& node, const Source& src,
             const Activation& dst)
    : UnaryOp(planning, op, src, dst, node.name, "own"),
      pad_(std::get<model::ZeroPad>(node.layer)) {}

/// Calls f(first number of a source row, first of the row in dst, numbers in it) for every row of
/// every block of channels.
template <class F>
void PadOp::for_rows(const Execution& execution, const F& f) const {
  const compute::SampleLayout &from = src_.layout, &to = dst_.layout;
  const auto block = static_cast<std::size_t>(from.block);
  const auto height = static_cast<std::size_t>(from.shape.height);
  const std::size_t src_row = static_cast<std::size_t>(from.shape.width) * block;
  const std::size_t dst_row = static_cast<std::size_t>(to.shape.width) * block;
  const auto dst_height = static_cast<std::size_t>(to.shape.height);
  const auto top = static_cast<std::size_t>(pad_.top), left = static_cast<std::size_t>(pad_.left);
  const std::size_t planes = static_cast<std::size_t>(execution.images) * from.blocks();
  parallel_for(planes, [&](std::size_t plane) {
    for (std::size_t y = 0; y < height; ++y) {
      f((plane * height + y) * src_row, (plane * dst_height + y + top) * dst_row + left * block,
        src_row);
    }
  });
}

void PadOp::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const std::size_t count = dst_.count(execution.images);
  parallel_ranges(count, [&](std::size_t begin, std::size_t end) {
    std::fill(dst_data_ + begin, dst_data_ + end, 0.0f);
  });
  for_rows(execution, [&](std::size_t from, std::size_t to, std::size_t numbers) {
    std::copy_n(src_data_ + from, numbers, dst_data_ + to);
  });
}

void PadOp::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!src_diff_) return;
  for_rows(execution, [&](std::size_t from, std::size_t to, std::size_t numbers) {
    if (src_.adds) {
      kernels::add(dst_diff_ + to, src_diff_ + from, numbers);
    } else {
      std::copy_n(dst_diff_ + to, numbers, src_diff_ + from);
    }
  });
}

}  // namespace cputrain::cpu
