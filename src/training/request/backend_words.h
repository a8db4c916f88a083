#pragma once

#include <array>
#include <string>
#include <string_view>

/// Names of backends, those that this build lacks, too, and the words beside their figures.
namespace cputrain::training {

/// Backends of devices.
inline constexpr std::array<std::string_view, 1> kDeviceBackends{"cuda"};
/// A backend whose CPUs are devices; those of other programs' tables, too.
bool is_device(const std::string& backend);

/// What stands beside a backend's figures, for a value of --precision that may be empty: nothing
/// for `float`, unless it is TF32, as on a device.
std::string precision_in_figures(const std::string& backend, std::string_view precision);
/// Both: "cuda tf32", "cpu".
std::string backend_in_figures(const std::string& backend, std::string_view precision);

}  // namespace cputrain::training
