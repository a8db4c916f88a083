#pragma once

#include <memory>

#include "compute/backend.h"

namespace cputrain::reference {

/// Plain loops on dense NHWC arrays, one thread, in float or double: the oracle for every other
/// backend, and the place to read what each layer means.
std::unique_ptr<compute::Backend> make_reference_backend(DType precision);

}  // namespace cputrain::reference
