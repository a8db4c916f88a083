#include "backends/cpu/ops/concat_op.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu {

template <class Number>
ConcatOp<Number>::ConcatOp(const Planning& planning, int op, std::string name,
                           std::vector<Source> parts, const Activation& dst)
    : Parts(planning, op, std::move(parts), dst, std::move(name), "copies"),
      block_(to_size(dst.layout.block)) {
  int first = 0;
  for (const Source& part : parts_) {
    compute::SampleLayout layout = part.layout;
    layout.block = dst.layout.block;  // another one is that of a vector, which lies the same
    runs_.push_back(runs_of(layout, first));
    first += layout.shape.channels;
  }
}

/// `first`: the part's first channel in the whole.
template <class Number>
auto ConcatOp<Number>::runs_of(const compute::SampleLayout& part, int first) const
    -> std::vector<Run> {
  const std::size_t pixels = part.size() / (part.blocks() * block_);
  const auto channels = to_size(part.shape.channels);
  const auto at = [&](std::size_t channel) {
    return channel / block_ * pixels * block_ + channel % block_;
  };
  const auto begin = to_size(first);
  if (begin % block_ == 0 && channels % block_ == 0) {
    return {{0, at(begin), channels * pixels, 1}};
  }
  std::vector<Run> runs;
  for (std::size_t c = 0; c < channels;) {  // up to the end of a block of either
    const std::size_t in_both =
        std::min({block_ - c % block_, block_ - (begin + c) % block_, channels - c});
    runs.push_back({at(c), at(begin + c), in_both, pixels});
    c += in_both;
  }
  return runs;
}

template <class Number>
template <class F>
void ConcatOp<Number>::for_rows(std::size_t i, int images, const F& f) const {
  const std::vector<Run>& runs = runs_[i];
  const std::size_t part_size = parts_[i].layout.size(), size = dst_.layout.size();
  parallel_for(to_size(images) * runs.size(), [&](std::size_t task) {
    const std::size_t image = task / runs.size();
    const Run& run = runs[task % runs.size()];
    for (std::size_t row = 0; row < run.rows; ++row) {
      f(image * size + run.of_whole + row * block_, image * part_size + run.of_part + row * block_,
        run.count);
    }
  });
}

/// Channels that only fill the last block are zero.
template <class Number>
void ConcatOp<Number>::clear_filling(int images) {
  if (!dst_.layout.padded()) return;
  const std::size_t size = dst_.layout.size(), last = size - size / dst_.layout.blocks();
  parallel_for(to_size(images), [&](std::size_t image) {
    std::fill(dst_data_ + image * size + last, dst_data_ + (image + 1) * size, Number{});
  });
}

template <class Number>
void ConcatOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  clear_filling(execution.images);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for_rows(i, execution.images, [&](std::size_t to, std::size_t from, std::size_t numbers) {
      std::copy_n(src_data_[i] + from, numbers, dst_data_ + to);
    });
  }
}

template <class Number>
void ConcatOp<Number>::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  // A map may be two of the parts. The last one writes the gradient, the others add.
  for (std::size_t i = parts_.size(); i-- > 0;) {
    Number* diff = src_diff_[i];
    if (!diff) continue;
    const Source& src = parts_[i];
    if (!src.adds && src.layout.padded()) {
      std::fill_n(diff, src.count(execution.images), Number{});
    }
    for_rows(i, execution.images, [&](std::size_t from, std::size_t to, std::size_t numbers) {
      if (src.adds) {
        kernels::add(dst_diff_ + from, diff + to, numbers);
      } else {
        std::copy_n(dst_diff_ + from, numbers, diff + to);
      }
    });
  }
}

template class ConcatOp<float>;
template class ConcatOp<Bf16>;

}  // namespace cputrain::cpu
