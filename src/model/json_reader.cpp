#include "model/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::model {

JsonReader::JsonReader(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) wrong("is not an object");
}

bool JsonReader::has(const char* key) const { return object_.contains(key); }

const nlohmann::json& JsonReader::field(const char* key) const {
  if (!has(key)) wrong(fmt::format("{} is missing", key));
  return object_.at(key);
}

int JsonReader::whole(const char* key, int min, int max, std::optional<int> standard) const {
  if (!has(key) && standard) return *standard;
  const auto& value = field(key);
  if (!value.is_number_integer() || value < min || value > max) {
    wrong(fmt::format("{} must be a whole number from {} to {}", key, min, max));
  }
  return value.get<int>();
}

double JsonReader::real(const char* key, double min, double max,
                        std::optional<double> standard) const {
  if (!has(key) && standard) return *standard;
  const auto& value = field(key);
  if (!value.is_number() || !(value >= min && value <= max)) {
    wrong(fmt::format("{} must be a number from {:g} to {:g}", key, min, max));
  }
  return value.get<double>();
}

bool JsonReader::flag(const char* key, std::optional<bool> standard) const {
  if (!has(key) && standard) return *standard;
  if (!field(key).is_boolean()) wrong(fmt::format("{} must be true or false", key));
  return field(key).get<bool>();
}

std::string JsonReader::text(const char* key, std::optional<std::string> standard) const {
  if (!has(key) && standard) return *standard;
  if (!field(key).is_string()) wrong(fmt::format("{} must be text", key));
  return field(key).get<std::string>();
}

void JsonReader::allow(const std::vector<std::string>& names) const {
  for (const auto& [key, value] : object_.items()) {
    if (key == "name" || key == "type" || key == "from") continue;
    if (std::ranges::find(names, key) != names.end()) continue;
    wrong(fmt::format("{} is not a field here{}{}{}", key, names.empty() ? "" : ", which are ",
                      join(names, ", "), did_you_mean(key, names)));
  }
}

void JsonReader::wrong(const std::string& what) const {
  fail(ExitCode::data, fmt::format("{}: {} (the model cannot be built); mend the file, or see "
                                   "`cputrain export --model-file` for one that is right",
                                   where_, what));
}

}  // namespace cputrain::model
