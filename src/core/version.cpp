#include "core/version.h"

namespace cputrain {

constinit const std::string_view kVersion = CPUTRAIN_VERSION;

}  // namespace cputrain
