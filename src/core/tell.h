#pragma once

#include <string_view>

namespace cputrain {

/// A line for people on standard error. A full or closed one is no reason to stop: errors are
/// ignored.
void tell(std::string_view line);

}  // namespace cputrain
