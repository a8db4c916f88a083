#include "core/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"

namespace cputrain {
namespace {

constexpr std::size_t kLongestText = 1 << 16, kMostFlags = 1000;
constexpr std::string_view kNan = "nan:";

/// A number that is not finite, as json_number() wrote it.
std::optional<double> number_of_text(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (!text.starts_with(kNan) || text.size() != kNan.size() + 16) return std::nullopt;
  const auto bits = hexadecimal<std::uint64_t>(std::string_view(text).substr(kNan.size()));
  if (!bits || !std::isnan(std::bit_cast<double>(*bits))) return std::nullopt;
  return std::bit_cast<double>(*bits);
}

bool is_flag(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

bool is_short_text(const nlohmann::json& value) {
  return value.is_string() && value.get_ref<const std::string&>().size() <= kLongestText;
}

}  // namespace

JsonFields::JsonFields(const nlohmann::json& object, std::string where, std::string_view remedy,
                       bool null_is_missing)
    : object_(object),
      where_(std::move(where)),
      remedy_(remedy),
      null_is_missing_(null_is_missing) {
  if (!object.is_object()) wrong("is not an object");
}

const nlohmann::json* JsonFields::find(const char* key) const {
  if (asked_.empty() || asked_.back() != key) asked_.emplace_back(key);
  const auto found = object_.find(key);
  if (found == object_.end() || (found->is_null() && null_is_missing_)) return nullptr;
  return &*found;
}

bool JsonFields::has(const char* key) const { return find(key) != nullptr; }

bool JsonFields::is_null(const char* key) const {
  find(key);
  if (!object_.contains(key)) required(key);
  return object_.at(key).is_null();
}

const nlohmann::json& JsonFields::required(const char* key) const {
  const nlohmann::json* found = find(key);
  if (!found) wrong(fmt::format("{} is missing", key));
  return *found;
}

std::int64_t JsonFields::checked_whole(const char* key, std::int64_t min, std::int64_t max) const {
  const nlohmann::json& value = required(key);
  // As a signed number, one above INT64_MAX would be negative.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  const std::int64_t number = fits ? value.get<std::int64_t>() : 0;
  if (fits && number >= min && number <= max) return number;
  wrong(fmt::format("{} must be a whole number from {} to {}", key, min, max));
}

double JsonFields::checked(const char* key, const nlohmann::json& value, double min,
                           double max) const {
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (number >= min && number <= max) return number;
  wrong(fmt::format("{} must be a number from {:g} to {:g}", key, min, max));
}

double JsonFields::real(const char* key, double min, double max,
                        std::optional<double> standard) const {
  return standard && !has(key) ? *standard : checked(key, required(key), min, max);
}

double JsonFields::number(const char* key) const {
  const nlohmann::json& value = required(key);
  if (value.is_number()) return value.get<double>();
  const auto special = value.is_string() ? number_of_text(value.get<std::string>()) : std::nullopt;
  if (!special) wrong(fmt::format("{} must be a number, or a text for inf or NaN", key));
  return *special;
}

bool JsonFields::truth(const char* key, std::optional<bool> standard) const {
  if (standard && !has(key)) return *standard;
  if (!required(key).is_boolean()) wrong(fmt::format("{} must be true or false", key));
  return required(key).get<bool>();
}

std::string JsonFields::text(const char* key, std::optional<std::string> standard) const {
  if (standard && !has(key)) return *standard;
  const nlohmann::json& value = required(key);
  if (is_short_text(value)) return value.get<std::string>();
  wrong(fmt::format("{} must be a text of at most {} bytes", key, kLongestText));
}

const nlohmann::json& JsonFields::list(const char* key, std::size_t least, std::size_t most) const {
  const nlohmann::json& value = required(key);
  if (value.is_array() && value.size() >= least && value.size() <= most) return value;
  wrong(fmt::format("{} must be a list of {}{} values", key, least,
                    least == most ? "" : fmt::format(" to {}", most)));
}

std::vector<double> JsonFields::reals(const char* key, std::size_t least, std::size_t most,
                                      double min, double max) const {
  std::vector<double> values;
  for (const auto& value : list(key, least, most)) {
    values.push_back(checked(key, value, min, max));
  }
  return values;
}

std::vector<std::string> JsonFields::texts(const char* key, std::size_t most) const {
  std::vector<std::string> values;
  for (const auto& value : list(key, 0, most)) {
    if (!is_short_text(value)) wrong(fmt::format("{} must be a list of texts", key));
    values.push_back(value.get<std::string>());
  }
  return values;
}

std::map<std::string, std::string> JsonFields::flags(const char* key) const {
  const nlohmann::json& object = required(key);
  if (!object.is_object() || object.size() > kMostFlags) {
    wrong(fmt::format("{} must be an object of at most {} flags", key, kMostFlags));
  }
  std::map<std::string, std::string> flags;
  for (const auto& [flag, text] : object.items()) {
    if (!is_flag(flag)) wrong(fmt::format("{}: {} is no flag's name", key, printable(flag)));
    if (!is_short_text(text)) {
      wrong(fmt::format("{}, {} must be a text of at most {} bytes", key, flag, kLongestText));
    }
    flags[flag] = text.get<std::string>();
  }
  return flags;
}

JsonFields JsonFields::object(const char* key) const {
  return {required(key), fmt::format("{}, {}", where_, key), remedy_, null_is_missing_};
}

std::vector<JsonFields> JsonFields::objects(const char* key, std::size_t least,
                                            std::size_t most) const {
  std::vector<JsonFields> objects;
  std::string_view one = key;  // "layer 3" of "layers"
  if (one.ends_with('s')) one.remove_suffix(1);
  for (const auto& value : list(key, least, most)) {
    objects.emplace_back(value, fmt::format("{}, {} {}", where_, one, objects.size() + 1), remedy_,
                         null_is_missing_);
  }
  return objects;
}

void JsonFields::end(std::initializer_list<const char*> others) const {
  std::vector<std::string> names(others.begin(), others.end());
  for (const std::string& asked : asked_) {
    if (std::ranges::find(names, asked) == names.end()) names.push_back(asked);
  }
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(names, key) != names.end()) continue;
    wrong(fmt::format("{} is not a field here{}{}{}", printable(key),
                      names.empty() ? "" : ", which are ", join(names, ", "),
                      did_you_mean(key, names)));
  }
}

void JsonFields::wrong(const std::string& what) const {
  fail(ExitCode::data, "{}: {} {}", where_, what, remedy_);
}

void JsonMembers::finite(const char* key, double& member) {
  if (file_ && !file_->contains(key)) return;
  std::optional<double> value;
  if (std::isfinite(member)) value = member;
  constexpr double kAny = std::numeric_limits<double>::max();
  if (file_) value.reset();
  need(key, value, -kAny, kAny);
  if (file_) member = value.value_or(std::numeric_limits<double>::quiet_NaN());
}

void JsonMembers::format(const std::string& name) {
  std::string found = name;
  need("format", found);
  if (found == name) return;
  file_->wrong(fmt::format("format must be \"{}\", not \"{}\"", name, printable(found)));
}

void JsonMembers::refuse_fraction(const char* key) const {
  file_->wrong(fmt::format("{} must be a list of whole numbers", key));
}

void JsonMembers::refuse_word(const char* key, const std::vector<std::string>& words) const {
  file_->wrong(fmt::format("{} must be one of {}", key, join(words, ", ")));
}

double short_number(float value) { return std::stod(fmt::format("{}", value)); }

nlohmann::ordered_json json_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}{:016x}", kNan, std::bit_cast<std::uint64_t>(value));
}

void fields_of_budget(JsonMembers& f, Budget& budget) {
  constexpr double kMost = 1e12;
  for (const BudgetPart& part : kBudgetParts) f.may(part.name, budget.*part.seconds, -kMost, kMost);
}

void fields_of_taken(JsonMembers& f, TakenTime& taken) {
  constexpr double kMost = 1e15;
  const auto describe = [&](const char* name, std::optional<double>& part) {
    f.may(name, part, -kMost, kMost);
    if (part && !(*part >= 0 && *part <= 1)) part.reset();
  };
  describe(kStolen, taken.stolen);
  describe(kCpuWait, taken.cpu_wait);
}

nlohmann::ordered_json json_of(const Budget& budget) { return json_of(budget, fields_of_budget); }

std::optional<double> number_in(const nlohmann::json& object, const char* key, double least,
                                double most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<double> whole_in(const nlohmann::json& object, const char* key, double least,
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

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  return text.size() > 200 ? printable(text) : text;
}

}  // namespace cputrain
