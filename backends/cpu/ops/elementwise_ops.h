#pragma once

#include "backends/cpu/kernels/bf16.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that work number by number, most of them in place.
namespace cputrain::cpu {

template <class Number>
class RectifierOp final : public compute::InPlaceOp<Op, Number> {
 public:
  RectifierOp(const Planning&, int op, const model::Graph::Node&, const model::Rectifier&,
              const Activation&);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using InPlace = compute::InPlaceOp<Op, Number>;
  using InPlace::activation_, InPlace::value_, InPlace::diff_, InPlace::time_;

  model::Rectifier rectifier_;
};

/// Its gradient depends on what it reads, so that stays.
template <class Number>
class SiluOp final : public compute::UnaryOp<Op, Number> {
 public:
  SiluOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
         const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using Unary = compute::UnaryOp<Op, Number>;
  using Unary::dst_, Unary::src_, Unary::dst_data_, Unary::src_data_, Unary::dst_diff_,
      Unary::src_diff_, Unary::time_;
};

/// Forward passes of Phase::train draw which elements of each sample stay; backward reuses that.
template <class Number>
class DropoutOp final : public compute::InPlaceOp<Op, Number> {
 public:
  DropoutOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using InPlace = compute::InPlaceOp<Op, Number>;
  using InPlace::activation_, InPlace::value_, InPlace::diff_, InPlace::time_;

  void draw(const Execution&, std::size_t image);

  float rate_, scale_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  compute::MemoryPlan::Block kept_block_{};
  std::uint8_t* kept_ = nullptr;  ///< 0 or 1, where the activation's numbers lie
};

}  // namespace cputrain::cpu
