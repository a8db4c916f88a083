#include "scaling/simulation/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/error.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::simulation {
nlohmann::json read_json_file(const std::filesystem::path& file) {
  constexpr std::uintmax_t kMost = 64 << 20;
  std::string text;
  try {
    text = system::read_bounded(file, kMost);
  } catch (const std::runtime_error& mistake) {
    fail(ExitCode::data, fmt::format("{}: {} (a simulation needs it); check the path",
                                     file.string(), mistake.what()));
  }
  try {
    return parse_strict_json(text);
  } catch (const std::runtime_error& mistake) {
    fail(ExitCode::data, fmt::format("{}: is no proper JSON ({}); write it again", file.string(),
                                     printable(mistake.what())));
  }
}

JsonObject::JsonObject(const nlohmann::json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json_.is_object()) wrong("must be an object");
}

void JsonObject::wrong(const std::string& what) const {
  fail(ExitCode::data,
       fmt::format("{}: {} (the simulation would compute with it); correct the file "
                   "or have it written again",
                   printable(where_), printable(what)));
}

const nlohmann::json& JsonObject::required(const char* key) const {
  if (!has(key)) wrong(fmt::format("{} is missing", key));
  return json_[key];
}

double JsonObject::checked(const char* key, const nlohmann::json& value, double min,
                           double max) const {
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!(number >= min && number <= max)) {
    wrong(fmt::format("{} must be a number from {:g} to {:g}", key, min, max));
  }
  return number;
}

double JsonObject::real(const char* key, double min, double max) const {
  return checked(key, required(key), min, max);
}

int JsonObject::whole(const char* key, int min, int max) const {
  const nlohmann::json& value = required(key);
  if (!value.is_number_integer()) wrong(fmt::format("{} must be a whole number", key));
  return static_cast<int>(checked(key, value, min, max));
}

std::string JsonObject::text(const char* key) const {
  constexpr std::size_t kMost = 4096;
  const nlohmann::json& value = required(key);
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kMost) {
    wrong(fmt::format("{} must be a text of up to {} bytes", key, kMost));
  }
  return value.get<std::string>();
}

bool JsonObject::truth(const char* key) const {
  const nlohmann::json& value = required(key);
  if (!value.is_boolean()) wrong(fmt::format("{} must be true or false", key));
  return value.get<bool>();
}

JsonObject JsonObject::object(const char* key) const {
  return {required(key), fmt::format("{}: {}", where_, key)};
}

const nlohmann::json& JsonObject::list(const char* key, std::size_t least, std::size_t most) const {
  const nlohmann::json& value = required(key);
  if (!value.is_array() || value.size() < least || value.size() > most) {
    wrong(fmt::format("{} must be a list of {}{}", key, least,
                      least == most ? "" : fmt::format(" to {}", most)));
  }
  return value;
}

std::vector<double> JsonObject::reals(const char* key, std::size_t least, std::size_t most,
                                      double min, double max) const {
  std::vector<double> numbers;
  for (const auto& value : list(key, least, most)) {
    numbers.push_back(checked(key, value, min, max));
  }
  return numbers;
}

std::vector<std::string> JsonObject::texts(const char* key, std::size_t most) const {
  std::vector<std::string> texts;
  for (const auto& value : list(key, 0, most)) {
    if (!value.is_string()) wrong(fmt::format("{} must be texts", key));
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

std::vector<JsonObject> JsonObject::objects(const char* key, std::size_t most) const {
  std::vector<JsonObject> objects;
  for (const auto& value : list(key, 1, most)) {
    objects.emplace_back(value, fmt::format("{}: {}[{}]", where_, key, objects.size()));
  }
  return objects;
}

void JsonObject::require_format(const std::string& format) const {
  const std::string found = text("format");
  if (found != format) wrong(fmt::format("format must be \"{}\", not \"{}\"", format, found));
}

void JsonObject::allow_only(const std::vector<std::string>& keys) const {
  for (const auto& [key, value] : json_.items()) {
    if (std::ranges::find(keys, key) == keys.end()) {
      wrong(fmt::format("{} is not known here{}", key, did_you_mean(key, keys)));
    }
  }
}

}  // namespace cputrain::simulation
