#pragma once

#include <string>
#include <vector>

#include "job/session/services.h"

namespace cputrain {

/// Names of the backends that this build has, the default first.
std::vector<std::string> backend_names();

/// Everything that this build has behind the contracts of src/: the composition root, the only
/// place that knows concrete types. The services borrow both arguments.
Services make_services(const Launcher&, SignalWatch&);

}  // namespace cputrain
