#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Values of flags as text. Error(usage) names the flag, the text and what is allowed.
namespace cputrain::training {

std::int64_t parse_whole(const std::string& flag, const std::string& text, std::int64_t min,
                         std::int64_t max);
double parse_real(const std::string& flag, const std::string& text, double min, double max);
/// Whole numbers between commas, each once.
std::vector<std::int64_t> parse_wholes(const std::string& flag, const std::string& text,
                                       std::int64_t min, std::int64_t max);

/// Words between commas, none of them empty.
std::vector<std::string> parse_words(const std::string& flag, const std::string& text);

// Names of backends, those that this build lacks, too, and the words beside their figures.

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
