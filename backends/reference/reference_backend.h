#pragma once

#include <memory>

#include "compute/backend.h"

namespace cputrain::reference {

/// What convolutions multiply. bf16: each number rounded to the nearest 16-bit brain float, as
/// `--precision bf16` means it.
enum class Factors { as_they_are, bf16 };

/// Plain loops on dense NHWC arrays, one thread, in float or double: the oracle for every other
/// backend, and the place to read what each layer means.
std::unique_ptr<compute::Backend> make_reference_backend(DType precision,
                                                         Factors = Factors::as_they_are);

}  // namespace cputrain::reference
