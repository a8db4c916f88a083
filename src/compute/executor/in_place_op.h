#pragma once

#include <utility>

#include "compute/executor/op.h"

namespace cputrain::compute {

/// An operator that changes an activation, and its gradient, in place. `Base`: a backend's Op,
/// whose constructor takes the arguments behind the activation.
template <class Base>
class InPlaceOp : public Base {
 public:
  template <class... Arguments>
  InPlaceOp(const Planning& planning, int op, const Activation& activation, Arguments&&... of_base)
      : Base(std::forward<Arguments>(of_base)...), activation_(activation) {
    planning.memory.use(activation.value, planning.forward_time(op));
    if (activation.wants_diff) planning.memory.use(activation.diff, planning.backward_time(op));
  }

  void bind(const Bindings& bindings) override {
    value_ = bindings.value(activation_);
    diff_ = bindings.diff(activation_);
  }

 protected:
  Activation activation_;
  float *value_ = nullptr, *diff_ = nullptr;
};

}  // namespace cputrain::compute
