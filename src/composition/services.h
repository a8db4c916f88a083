#pragma once

#include "job/session/services.h"

namespace cputrain::composition {

/// Everything that this build has behind the contracts of src/: the composition root, the only
/// place that knows concrete types. The services borrow both arguments.
job::Services make_services(const placement::Launcher&, system::SignalWatch&);

}  // namespace cputrain::composition
