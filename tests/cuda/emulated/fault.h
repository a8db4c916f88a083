#pragma once

#include <string>

#include "core/error.h"

namespace cputrain::emulated {

/// What work on the emulated device did wrong. The host hears of it where it waits, as of errors of
/// CUDA, and then at every call until restart().
class Fault : public Error {
 public:
  explicit Fault(const std::string& message) : Error(ExitCode::internal, message) {}
};

}  // namespace cputrain::emulated
