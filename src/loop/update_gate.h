#pragma once

#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/memory.h"
#include "exchange/exchange.h"
#include "loop/parts.h"

namespace cputrain::loop {

/// Decides, on all ranks alike and before any weight changes, whether a step updates them: not
/// where it is left out, and not where the policy forbids it because some gradient, summed over
/// ranks, is NaN or infinite, or too large to be squared in double precision. With NanPolicy::abort
/// no rank looks. Optimizers count updates: the step behind one that changes nothing has its
/// number.
class UpdateGate {
 public:
  /// Has the optimizer begin the step. Borrows both.
  UpdateGate(Parts&, const StepToDo&);
  UpdateGate(const UpdateGate&) = delete;  // measures refer to it
  UpdateGate& operator=(const UpdateGate&) = delete;

  /// For the exchange: the look, then those of the optimizer, which may change its state and are
  /// therefore left out where the look has closed the gate.
  std::span<const exchange::Measure> measures() const;
  /// Whether weights are updated whatever the gradients are, and without a measure.
  bool always_open() const { return !todo_.left_out && measures().empty(); }
  /// Whether weights are updated. Known once the exchange has called the first measure.
  bool open() const { return !todo_.left_out && bad_ == 0; }
  /// Puts back what the step has moved all the same: moving statistics and the optimizer's rate.
  /// Compression keeps what is finite, since others got their part of it. The caller holds the
  /// weights' mutex.
  void undo();

 private:
  std::span<double> look();

  Parts& parts_;
  const StepToDo& todo_;
  double rate_before_;
  double bad_ = 0;      ///< ranges with non-finite gradients, over all owners
  double nothing_ = 0;  ///< what is measured where the gate is closed
  std::vector<exchange::Measure> measures_;
};

/// Collective: whether no value of any rank is NaN or infinite, in arrays of this memory.
bool all_numbers(compute::Memory&, const Array&, comm::Communicator&);

}  // namespace cputrain::loop
