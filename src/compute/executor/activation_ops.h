#pragma once

#include <utility>
#include <vector>

#include "compute/executor/op.h"

/// What operators share whatever they compute: where they read and write. `Base`: a backend's Op,
/// whose constructor takes the arguments behind the activations. `Element`: the activations', or
/// void.
namespace cputrain::compute {

/// An operator that reads one activation and writes another, and their gradients the other way.
template <class Base, class Element = float>
class UnaryOp : public Base {
 public:
  template <class... Arguments>
  UnaryOp(const Planning& planning, int op, const Source& src, const Activation& dst,
          Arguments&&... of_base)
      : Base(std::forward<Arguments>(of_base)...), src_(src), dst_(dst) {
    planning.use_forward(op, src, dst);
    planning.use_backward(op, src, dst);
  }

  void bind(const Bindings& bindings) override {
    src_data_ = bindings.value<Element>(src_);
    dst_data_ = bindings.value<Element>(dst_);
    src_diff_ = bindings.diff<Element>(src_);
    dst_diff_ = bindings.diff<Element>(dst_);
  }

 protected:
  Source src_;
  Activation dst_;
  Element *src_data_ = nullptr, *dst_data_ = nullptr, *src_diff_ = nullptr, *dst_diff_ = nullptr;
};

/// An operator that changes an activation, and its gradient, in place.
template <class Base, class Element = float>
class InPlaceOp : public Base {
 public:
  template <class... Arguments>
  InPlaceOp(const Planning& planning, int op, const Activation& activation, Arguments&&... of_base)
      : Base(std::forward<Arguments>(of_base)...), activation_(activation) {
    planning.memory.use(activation.value, planning.forward_time(op));
    if (activation.wants_diff) planning.memory.use(activation.diff, planning.backward_time(op));
  }

  void bind(const Bindings& bindings) override {
    value_ = bindings.value<Element>(activation_);
    diff_ = bindings.diff<Element>(activation_);
  }

 protected:
  Activation activation_;
  Element *value_ = nullptr, *diff_ = nullptr;
};

/// An operator that adds activations up. A part whose gradient shares its memory with the sum's has
/// it already.
template <class Base, class Element = float>
class SumOp : public Base {
 public:
  template <class... Arguments>
  SumOp(const Planning& planning, int op, std::vector<Source> parts, const Activation& dst,
        Arguments&&... of_base)
      : Base(std::forward<Arguments>(of_base)...), parts_(std::move(parts)), dst_(dst) {
    for (const Source& part : parts_) {
      planning.use_forward(op, part, dst);
      planning.use_backward(op, part, dst);
    }
  }

  void bind(const Bindings& bindings) override {
    dst_data_ = bindings.value<Element>(dst_);
    dst_diff_ = bindings.diff<Element>(dst_);
    for (const Source& part : parts_) {
      src_data_.push_back(bindings.value<Element>(part));
      src_diff_.push_back(part.shares_diff ? nullptr : bindings.diff<Element>(part));
    }
  }

 protected:
  std::vector<Source> parts_;
  Activation dst_;
  std::vector<Element*> src_data_;
  std::vector<Element*> src_diff_;  ///< null where there is nothing to write
  Element *dst_data_ = nullptr, *dst_diff_ = nullptr;
};

}  // namespace cputrain::compute
