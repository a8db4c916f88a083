// A plugin of an earlier build. Nothing of it may run: what it does when it is loaded ends the
// process, as code for objects of another layout may.
#include <cstdlib>

#include "backends/cuda/plugin/plugin_api.h"

namespace {
[[gnu::used]] constexpr char kMark[] = CPUTRAIN_PLUGIN_MARK "cputrain 0.0.9, GNU 9.4.0>";
[[maybe_unused]] const bool ended = (std::_Exit(99), true);
}  // namespace
