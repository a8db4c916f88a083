#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

/// Members of JSON objects that nobody vouches for.
namespace cputrain::report {

inline constexpr double kMost = 1e12;  ///< of anything that is counted or timed

/// Nothing where it is missing, no number, or beyond these.
std::optional<double> figure_of(const nlohmann::json& object, const char* key, double least = 0,
                                double most = kMost);

/// The same of a whole number, which may be written as a text: flags in config.json are.
std::optional<double> whole_number(const nlohmann::json& object, const char* key, double least,
                                   double most);

template <class Integer>
std::optional<Integer> whole(const nlohmann::json& object, const char* key, double least,
                             double most) {
  const auto value = whole_number(object, key, least, most);
  return value ? std::optional(static_cast<Integer>(*value)) : std::nullopt;
}

/// A value as text, whether it was written as a text, a number or a switch.
std::string value_text(const nlohmann::json& object, const char* key);

}  // namespace cputrain::report
