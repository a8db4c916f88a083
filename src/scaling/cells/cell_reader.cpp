#include "scaling/cells/cell_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::cells {
namespace {

constexpr std::size_t kLongestText = 1 << 16, kLongestList = 100'000, kMostOptions = 1000;

bool is_flag(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

CellReader::CellReader(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) wrong("is not an object");
}

bool CellReader::knows(const char* key) const {
  return object_.contains(key) && !object_.at(key).is_null();
}

const nlohmann::json& CellReader::required(const char* key) const {
  if (!object_.contains(key)) wrong(fmt::format("{} is missing", key));
  return object_.at(key);
}

double CellReader::checked_real(const char* key, const nlohmann::json& value, double min,
                                double max) const {
  if (!value.is_number() || !(value >= min && value <= max)) {
    wrong(fmt::format("{} must be a number from {:g} to {:g}", key, min, max));
  }
  return value.get<double>();
}

std::optional<double> CellReader::real(const char* key, double min, double max) const {
  if (!knows(key)) return std::nullopt;
  return checked_real(key, object_.at(key), min, max);
}

std::optional<std::int64_t> CellReader::whole(const char* key, std::int64_t min,
                                              std::int64_t max) const {
  if (!knows(key)) return std::nullopt;
  const auto& value = object_.at(key);
  // Compared as json, which keeps signed and unsigned apart.
  if (!value.is_number_integer() || value < min || value > max) {
    wrong(fmt::format("{} must be a whole number from {} to {}", key, min, max));
  }
  return value.get<std::int64_t>();
}

std::string CellReader::text(const char* key) const {
  if (!knows(key)) return "";
  return checked_text(key, object_.at(key));
}

const std::string& CellReader::checked_text(const std::string& key,
                                            const nlohmann::json& value) const {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kLongestText) {
    wrong(fmt::format("{} must be a text of at most {} bytes", key, kLongestText));
  }
  return value.get_ref<const std::string&>();
}

bool CellReader::truth(const char* key) const {
  if (!knows(key)) return false;
  if (!object_.at(key).is_boolean()) wrong(fmt::format("{} must be true or false", key));
  return object_.at(key).get<bool>();
}

std::map<std::string, std::string> CellReader::options(const char* key) const {
  std::map<std::string, std::string> options;
  if (!knows(key)) return options;
  const auto& value = object_.at(key);
  if (!value.is_object() || value.size() > kMostOptions) {
    wrong(fmt::format("{} must be an object of at most {} flags", key, kMostOptions));
  }
  for (const auto& [flag, text] : value.items()) {
    if (!is_flag(flag)) wrong(fmt::format("{}: {} is no flag's name", key, printable(flag)));
    options[flag] = checked_text(fmt::format("{}, {}", key, flag), text);
  }
  return options;
}

const nlohmann::json* CellReader::list(const char* key) const {
  if (!knows(key)) return nullptr;
  const auto& value = object_.at(key);
  if (!value.is_array() || value.size() > kLongestList) {
    wrong(fmt::format("{} must be a list of at most {} values", key, kLongestList));
  }
  return &value;
}

std::vector<double> CellReader::reals(const char* key, double min, double max) const {
  std::vector<double> values;
  const nlohmann::json* found = list(key);
  if (!found) return values;
  for (const auto& value : *found) values.push_back(checked_real(key, value, min, max));
  return values;
}

std::vector<std::string> CellReader::texts(const char* key) const {
  std::vector<std::string> values;
  const nlohmann::json* found = list(key);
  if (!found) return values;
  for (const auto& value : *found) {
    if (!value.is_string()) wrong(fmt::format("{} must be a list of texts", key));
    values.push_back(value.get<std::string>());
  }
  return values;
}

const nlohmann::json* CellReader::object(const char* key) const {
  return knows(key) ? &object_.at(key) : nullptr;
}

void CellReader::wrong(const std::string& what) const {
  fail(ExitCode::data, fmt::format("{}: {} (the table cannot be read); run the sweep or the "
                                   "simulation again, which writes it anew",
                                   where_, what));
}

}  // namespace cputrain::cells
