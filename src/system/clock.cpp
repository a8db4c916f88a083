#include "system/clock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace cputrain::system {

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

}  // namespace cputrain::system
