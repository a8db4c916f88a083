#pragma once

#include <string>

#include "compute/selftest/selftest.h"
#include "training/session/services.h"

namespace cputrain::composition {

/// Everything that this build has behind the contracts of src/: the composition root, the only
/// place that knows concrete types. The services borrow both arguments.
training::Services make_services(const placement::Launcher&, system::SignalWatch&);

/// What `selftest` knows of the backend of this name.
selftest::Own own_of(const std::string& backend);

}  // namespace cputrain::composition
