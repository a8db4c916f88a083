#include "scaling/report/trainings/json_figures.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.h"

namespace cputrain::report {

std::optional<double> figure_of(const nlohmann::json& object, const char* key, double least,
                                double most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<double> whole_number(const nlohmann::json& object, const char* key, double least,
                                   double most) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  double value = -1;
  if (found->is_number()) value = found->get<double>();
  if (found->is_string()) {
    const std::string& text = found->get_ref<const std::string&>();
    if (text.empty() || text.find_first_not_of("0123456789") != text.npos || text.size() > 15)
      return std::nullopt;
    value = std::stod(text);
  }
  if (!(value >= least && value <= most) || value != std::floor(value)) return std::nullopt;
  return value;
}

std::string value_text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  return text.size() > 200 ? printable(text) : text;
}

}  // namespace cputrain::report
