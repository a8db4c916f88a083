#pragma once

namespace cputrain {

/// Where the seconds of a step or an epoch went on this rank. The parts add up to the time they
/// explain; `other` is what nothing else accounts for.
struct Budget {
  double input_wait = 0;  ///< waiting for the loader
  double forward = 0;
  double backward = 0;
  double allreduce_exposed = 0;  ///< communication that backward did not hide
  double straggler_wait = 0;     ///< waiting for the last rank to arrive
  double optimizer = 0;
  double other = 0;

  double known() const {
    return input_wait + forward + backward + allreduce_exposed + straggler_wait + optimizer;
  }

  Budget& operator+=(const Budget& b) {
    input_wait += b.input_wait;
    forward += b.forward;
    backward += b.backward;
    allreduce_exposed += b.allreduce_exposed;
    straggler_wait += b.straggler_wait;
    optimizer += b.optimizer;
    other += b.other;
    return *this;
  }
};

}  // namespace cputrain
