// Says that it is of this build, and has no function for the program to call.
#include "backends/cuda/plugin/plugin_api.h"
#include "contracts.h"

namespace {
[[gnu::used]] constexpr char kMark[] = CPUTRAIN_PLUGIN_MARK CPUTRAIN_CONTRACTS ">";
}
