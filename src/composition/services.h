#pragma once

#include "job/session/services.h"

namespace cputrain {

/// Everything that this build has behind the contracts of src/: the composition root, the only
/// place that knows concrete types. The services borrow both arguments.
Services make_services(const Launcher&, SignalWatch&);

}  // namespace cputrain
