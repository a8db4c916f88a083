#pragma once

#include "backends/cuda/device/tensor_core.h"

namespace cputrain::cuda {

/// A float as two numbers whose sum it is, exactly: `big` is what is left of it without the 13
/// bits that TF32 lacks, `small` is those.
///
/// It is cut off instead of rounded since that is two instructions per number (rounding: 8 on sm_80
/// and sm_90), and the main loop waits for its instructions. `big` is a TF32 number, so it does not
/// matter what tensor cores do with further bits. Those of `small` they cut off (an H200 does, and
/// the emulated device); where they round them, results are nearer. No half is larger than the
/// number. That of an infinity or NaN has a `small` that is NaN, as are all sums it takes part in.
struct Tf32Halves {
  unsigned big, small;

  CPUTRAIN_DEVICE static Tf32Halves of(unsigned value) {
    const float big = tf32_value(value);
    return {__float_as_uint(big), __float_as_uint(__uint_as_float(value) - big)};
  }
};

}  // namespace cputrain::cuda
