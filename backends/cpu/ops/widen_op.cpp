#include "backends/cpu/ops/widen_op.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"

namespace cputrain::cpu {

WidenOp::WidenOp(const Planning& planning, int op, std::string name, const Source& src,
                 const Activation& dst)
    : Op(std::move(name), "own"), src_(src), dst_(dst) {
  planning.use_forward(op, src, dst);
  planning.use_backward(op, src, dst);
}

void WidenOp::bind(const Bindings& bindings) {
  src_data_ = bindings.value<Bf16>(src_);
  src_diff_ = bindings.diff<Bf16>(src_);
  dst_data_ = bindings.value(dst_);
  dst_diff_ = bindings.diff(dst_);
}

void WidenOp::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  parallel_ranges(dst_.count(execution.images), [&](std::size_t begin, std::size_t end) {
    kernels::convert(src_data_ + begin, dst_data_ + begin, end - begin);
  });
}

void WidenOp::backward(const Execution& execution) {
  if (!src_diff_) return;
  const TimeSpan span(time_.backward_data);
  parallel_ranges(dst_.count(execution.images), [&](std::size_t begin, std::size_t end) {
    if (src_.adds) {
      kernels::add(dst_diff_ + begin, src_diff_ + begin, end - begin);
    } else {
      kernels::convert(dst_diff_ + begin, src_diff_ + begin, end - begin);
    }
  });
}

}  // namespace cputrain::cpu
