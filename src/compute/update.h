#pragma once

#include <functional>
#include <memory>

#include "optim/update_rule.h"

namespace cputrain::compute {

class Backend;

/// An update rule at work on arrays of its backend, step by step.
class Update {
 public:
  virtual ~Update() = default;
  /// New weights and state, of the gradients that are there behind all calls before.
  virtual void apply(const optim::UpdateStep&) = 0;
};

/// An update with the figures of a step.
struct StepUpdate {
  Update* update;
  optim::UpdateStep step;

  void apply() const { update->apply(step); }
};

/// Applies a rule to one slice; the rate of the step is that of the slice.
using UpdateOfSlice =
    std::function<void(const optim::UpdateStep&, double weight_decay, const optim::UpdateSlice&)>;

/// The update of a backend that computes in its calls: slice by slice, each behind what its
/// gradients need. The backend is borrowed.
std::unique_ptr<Update> make_update_by_slices(Backend&, const optim::UpdatePlan&, UpdateOfSlice);

}  // namespace cputrain::compute
