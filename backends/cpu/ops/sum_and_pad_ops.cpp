#include "backends/cpu/ops/sum_and_pad_ops.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu {

template <class Number>
AddOp<Number>::AddOp(const Planning& planning, int op, std::string name, std::vector<Source> parts,
                     const Activation& dst)
    : Sum(planning, op, std::move(parts), dst, std::move(name), "own") {}

template <class Number>
void AddOp<Number>::forward(const Execution& execution) {
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

template <class Number>
void AddOp<Number>::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  const std::size_t count = dst_.count(execution.images);
  // An activation may be added twice. Its last part writes the gradient (share_gradient), so parts
  // are taken from the back.
  for (std::size_t i = parts_.size(); i-- > 0;) {
    Number* diff = src_diff_[i];
    if (!diff) continue;
    parallel_ranges(count, [&](std::size_t begin, std::size_t end) {
      if (parts_[i].adds) {
        kernels::add(dst_diff_ + begin, diff + begin, end - begin);
      } else {
        std::copy(dst_diff_ + begin, dst_diff_ + end, diff + begin);
      }
    });
  }
}

template <class Number>
PadOp<Number>::PadOp(const Planning& planning, int op, const model::Graph::Node& node,
                     const Source& src, const Activation& dst)
    : Unary(planning, op, src, dst, node.name, "own"), pad_(std::get<model::ZeroPad>(node.layer)) {}

/// Calls f(first number of a source row, first of the row in dst, numbers in it) for every row of
/// every block of channels.
template <class Number>
template <class F>
void PadOp<Number>::for_rows(const Execution& execution, const F& f) const {
  const compute::SampleLayout &from = src_.layout, &to = dst_.layout;
  const auto block = to_size(from.block);
  const auto height = to_size(from.shape.height);
  const std::size_t src_row = to_size(from.shape.width) * block;
  const std::size_t dst_row = to_size(to.shape.width) * block;
  const auto dst_height = to_size(to.shape.height);
  const auto top = to_size(pad_.top), left = to_size(pad_.left);
  const std::size_t planes = to_size(execution.images) * from.blocks();
  parallel_for(planes, [&](std::size_t plane) {
    for (std::size_t y = 0; y < height; ++y) {
      f((plane * height + y) * src_row, (plane * dst_height + y + top) * dst_row + left * block,
        src_row);
    }
  });
}

template <class Number>
void PadOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const std::size_t count = dst_.count(execution.images);
  parallel_ranges(count, [&](std::size_t begin, std::size_t end) {
    std::fill(dst_data_ + begin, dst_data_ + end, Number{});
  });
  for_rows(execution, [&](std::size_t from, std::size_t to, std::size_t numbers) {
    std::copy_n(src_data_ + from, numbers, dst_data_ + to);
  });
}

template <class Number>
void PadOp<Number>::backward(const Execution& execution) {
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

template class AddOp<float>;
template class AddOp<Bf16>;
template class PadOp<float>;
template class PadOp<Bf16>;

}  // namespace cputrain::cpu
