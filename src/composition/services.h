#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/selftest/selftest.h"
#include "training/session/services.h"

/// The composition root: the only place that knows concrete types.
namespace cputrain::composition {

/// A backend by its name, what --precision may ask it for, and how to make it.
struct ListedBackend {
  training::BackendChoice choice;
  std::function<std::unique_ptr<compute::Backend>(const training::BackendRequest&)> make;
  /// The devices that are here, for a backend that computes on such.
  std::function<compute::DeviceList()> devices{};
  selftest::Own own{};
};

/// The one list of backends: all that the program knows, those that this build lacks included, the
/// default first.
std::vector<ListedBackend> backend_list();

/// Everything that this build has behind the contracts of src/. The services borrow both arguments.
training::Services make_services(const placement::Launcher&, system::SignalWatch&);

/// What `selftest` knows of the backend of this name.
selftest::Own own_of(const std::string& backend);

}  // namespace cputrain::composition
