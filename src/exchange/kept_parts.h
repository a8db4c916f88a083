#pragma once

#include <vector>

#include "compute/parameters/parameters.h"

namespace cputrain::exchange {

/// What a sum that sends fewer bytes keeps from step to step, so that a training can go on later.
/// Between two sums.
class KeptParts {
 public:
  virtual ~KeptParts() = default;
  /// What was not sent yet, by element of the arena, in the host's memory. To be read and written,
  /// in ranges that are summed alone: pages of others take no memory. Whatever is written is sent,
  /// however ranges are cut from now on.
  virtual Array unsent() = 0;
  /// Other numbers that the next sum of a range starts from, the same on all ranks of the group.
  /// They stay where they are until the next sum.
  virtual std::vector<compute::ArenaPart> factors() { return {}; }
  /// Puts them back; those of a range of another size are left.
  virtual void set_factors(Range, [[maybe_unused]] const Array& values) {}
  /// Forgets all of it, as before the first sum.
  virtual void forget() = 0;
  /// Forgets NaN and infinities, after gradients that had some.
  virtual void forget_nonfinite() = 0;
};

}  // namespace cputrain::exchange
