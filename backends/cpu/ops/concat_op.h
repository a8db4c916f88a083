#pragma once

#include "backends/cpu/kernels/bf16.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cpu {

/// Maps one behind the other by their channels: copies of whole blocks of channels where a part
/// begins with a block, and of some channels of each pixel elsewhere.
template <class Number>
class ConcatOp final : public compute::SumOp<Op, Number> {
 public:
  ConcatOp(const Planning&, int op, std::string name, std::vector<Source>, const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using Parts = compute::SumOp<Op, Number>;
  using Parts::dst_, Parts::dst_data_, Parts::dst_diff_, Parts::parts_, Parts::src_data_,
      Parts::src_diff_, Parts::time_;

  /// Numbers of one image that lie in a part as they do in the whole: `count` in a row, `rows`
  /// times, a block's pixel apart.
  struct Run {
    std::size_t of_part, of_whole, count, rows;
  };

  std::vector<Run> runs_of(const compute::SampleLayout& part, int first) const;
  void clear_filling(int images);
  /// Calls f(whole, part, numbers) for every row of the runs of part `i`, on all threads.
  template <class F>
  void for_rows(std::size_t i, int images, const F&) const;

  std::size_t block_;                   ///< channels of one
  std::vector<std::vector<Run>> runs_;  ///< by part
};

}  // namespace cputrain::cpu
