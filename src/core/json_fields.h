#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/budget.h"

namespace cputrain {

/// The fields of an object in a JSON file that may be hostile. What is missing or odd is
/// Error(data) with the place, the field, what is allowed, and the remedy: "(why it matters); what
/// to try". A field with a default may be left out. Borrows the object.
class JsonFields {
 public:
  /// A field that is null is missing, or else has a value of the wrong type.
  JsonFields(const nlohmann::json& object, std::string where, std::string_view remedy,
             bool null_is_missing = true);

  bool has(const char* key) const;
  /// Also with null.
  bool contains(const char* key) const { return object_.contains(key); }
  /// Error(data) where it is not there.
  bool is_null(const char* key) const;
  const nlohmann::json& required(const char* key) const;
  template <class T = int>
  T whole(const char* key, std::type_identity_t<T> min, std::type_identity_t<T> max,
          std::type_identity_t<std::optional<T>> standard = {}) const {
    if (standard && !has(key)) return *standard;
    return static_cast<T>(
        checked_whole(key, static_cast<std::int64_t>(min), static_cast<std::int64_t>(max)));
  }
  double real(const char* key, double min, double max, std::optional<double> standard = {}) const;
  /// Any number, or one of the texts of json_number().
  double number(const char* key) const;
  bool truth(const char* key, std::optional<bool> standard = {}) const;
  /// At most 64 KB.
  std::string text(const char* key, std::optional<std::string> standard = {}) const;
  std::vector<double> reals(const char* key, std::size_t least, std::size_t most, double min,
                            double max) const;
  std::vector<std::string> texts(const char* key, std::size_t most) const;
  /// Texts by flags' names: small letters, digits and dashes.
  std::map<std::string, std::string> flags(const char* key) const;
  JsonFields object(const char* key) const;
  std::vector<JsonFields> objects(const char* key, std::size_t least, std::size_t most) const;

  /// Refuses fields that were not asked for: a mistyped one would otherwise be ignored. `others`
  /// are read elsewhere.
  void end(std::initializer_list<const char*> others = {}) const;
  [[noreturn]] void wrong(const std::string& what) const;

 private:
  const nlohmann::json* find(const char* key) const;
  std::int64_t checked_whole(const char* key, std::int64_t min, std::int64_t max) const;
  double checked(const char* key, const nlohmann::json& value, double min, double max) const;
  const nlohmann::json& list(const char* key, std::size_t least, std::size_t most) const;

  const nlohmann::json& object_;
  std::string where_;
  std::string_view remedy_;
  bool null_is_missing_;
  mutable std::vector<std::string> asked_;
};

/// A number whose bits come back from JsonFields::number(): "inf", "-inf" and "nan:" with the bits
/// in hexadecimal are texts.
nlohmann::ordered_json json_number(double);

/// The number with the fewest digits that is this float again: 0.99, not 0.9900000095367432.
double short_number(float);

/// One description of a structure for both directions: a function names each member once, with its
/// bounds, and reads it from a file or writes it. Bounds are least and most of numbers; of lists of
/// numbers, least and most of their length before those; of other lists, of their length alone.
class JsonMembers {
 public:
  explicit JsonMembers(const JsonFields& file) : file_(&file) {}
  explicit JsonMembers(nlohmann::ordered_json& json) : json_(&json) {}

  template <class T, class Describe>
  static nlohmann::ordered_json written(T& member, const Describe& describe) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    JsonMembers members(json);
    describe(members, member);
    return json;
  }
  template <class T, class Describe>
  static void read_object(const JsonFields& fields, T& member, const Describe& describe,
                          bool strict) {
    JsonMembers members(fields);
    describe(members, member);
    if (strict) fields.end();
  }

  /// The file that is read; nullptr where one is written.
  const JsonFields* file() const { return file_; }

  /// Must be there. An optional member is null where it has no value, and may be missing, too.
  template <class T, class... Bounds>
  void need(const char* key, T& member, Bounds... bounds) {
    file_ ? read(key, member, bounds...) : write(key, member, bounds...);
  }
  /// Keeps its value where the file does not have it.
  template <class T, class... Bounds>
  void may(const char* key, T& member, Bounds... bounds) {
    if (!file_ || file_->has(key)) need(key, member, bounds...);
  }
  /// The same, and not written where it has its usual value.
  template <class T, class... Bounds>
  void rare(const char* key, T& member, Bounds... bounds) {
    if (file_ || member != T{}) may(key, member, bounds...);
  }
  /// The text "format", which must be this one.
  void format(const std::string& name);
  /// A double whose bits come back.
  void exact(const char* key, double& member) {
    if (file_) member = file_->number(key);
    if (json_) (*json_)[key] = json_number(member);
  }
  /// A number that is null where it is NaN or infinite, and then NaN when it is read. Keeps its
  /// value where the file does not have it.
  void finite(const char* key, double& member);
  /// An enumerator by its word in a table of pairs.
  template <class Enum, class Words>
  void word(const char* key, Enum& member, const Words& words) {
    std::string text;
    for (const auto& [value, name] : words) {
      if (!file_ && value == member) text = name;
    }
    need(key, text);
    if (!file_) return;
    std::vector<std::string> names;
    for (const auto& [value, name] : words) {
      if (name == text) return static_cast<void>(member = value);
      names.emplace_back(name);
    }
    refuse_word(key, names);
  }
  /// A structure; its function is called with (JsonMembers&, T&). Fields besides its own are
  /// refused where `strict`.
  template <class T, class Describe>
  void object(const char* key, T& member, const Describe& describe, bool strict = false) {
    if (json_) return static_cast<void>((*json_)[key] = written(member, describe));
    read_object(file_->object(key), member, describe, strict);
  }
  /// One that may be missing or, where the member is optional, null.
  template <class T, class Describe>
  void may_object(const char* key, T& member, const Describe& describe) {
    if constexpr (requires { member.has_value(); }) {
      if (file_ && file_->has(key)) member.emplace();
      if (member) return object(key, *member, describe);
      if (json_) (*json_)[key] = nullptr;
    } else {
      if (!file_ || file_->has(key)) object(key, member, describe);
    }
  }
  /// One that must be there, and may be null. Its fields are all that it may have.
  template <class T, class Describe>
  void null_or_object(const char* key, std::optional<T>& member, const Describe& describe) {
    if (json_) return may_object(key, member, describe);
    if (file_->is_null(key)) return member.reset();
    object(key, member.emplace(), describe, true);
  }
  /// One that may be missing; its fields are all that it may have.
  template <class T, class Describe>
  void rare_object(const char* key, std::optional<T>& member, const Describe& describe) {
    if (file_ && file_->has(key)) member.emplace();
    if (member) object(key, *member, describe, true);
  }
  template <class T, class Describe>
  void objects(const char* key, std::vector<T>& members, std::size_t least, std::size_t most,
               const Describe& describe, bool strict = false) {
    if (file_) {
      members.clear();
      for (const JsonFields& one : file_->objects(key, least, most)) {
        read_object(one, members.emplace_back(), describe, strict);
      }
      return;
    }
    (*json_)[key] = nlohmann::ordered_json::array();
    for (T& member : members) (*json_)[key].push_back(written(member, describe));
  }

 private:
  template <class T>
  void read(const char* key, T& member, auto... bounds) {
    if constexpr (std::is_same_v<T, bool>) {
      member = file_->truth(key);
    } else if constexpr (std::is_integral_v<T>) {
      member = file_->whole<T>(key, static_cast<T>(bounds)...);
    } else if constexpr (std::is_same_v<T, double>) {
      member = file_->real(key, bounds...);
    } else if constexpr (std::is_same_v<T, float>) {
      member = static_cast<float>(file_->real(key, bounds...));
    } else if constexpr (std::is_same_v<T, std::string>) {
      member = file_->text(key);
    } else if constexpr (requires(T list) { static_cast<double>(list.front()); }) {
      member.clear();
      for (const double value : reals(key, bounds...)) {
        member.push_back(static_cast<typename T::value_type>(value));
        if (static_cast<double>(member.back()) != value) refuse_fraction(key);
      }
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      member = file_->texts(key, static_cast<std::size_t>(bounds)...);
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      member = file_->flags(key);
    } else {  // an optional one
      typename T::value_type value{};
      if (file_->has(key)) {
        read(key, value, bounds...);
        member = value;
      }
    }
  }
  template <class T>
  void write(const char* key, const T& member, auto...) {
    if constexpr (requires { member.has_value(); }) {
      (*json_)[key] = member ? nlohmann::ordered_json(*member) : nlohmann::ordered_json();
    } else if constexpr (std::is_same_v<T, float>) {
      (*json_)[key] = short_number(member);
    } else {
      (*json_)[key] = member;
    }
  }
  std::vector<double> reals(const char* key, auto least, auto most, double min, double max) const {
    return file_->reals(key, static_cast<std::size_t>(least), static_cast<std::size_t>(most), min,
                        max);
  }
  [[noreturn]] void refuse_fraction(const char* key) const;
  [[noreturn]] void refuse_word(const char* key, const std::vector<std::string>& words) const;

  const JsonFields* file_ = nullptr;
  nlohmann::ordered_json* json_ = nullptr;
};

/// A structure as JSON, by its description.
template <class T, class Describe>
nlohmann::ordered_json json_of(T value, const Describe& describe) {
  return JsonMembers::written(value, describe);
}
template <class T, class Describe>
T value_of(const JsonFields& fields, const Describe& describe, bool strict = false) {
  T value;
  JsonMembers::read_object(fields, value, describe, strict);
  return value;
}

/// Parts of a budget by name, in seconds, as metrics.jsonl and cells.json have them; those that are
/// missing are 0.
void fields_of_budget(JsonMembers&, Budget&);
nlohmann::ordered_json json_of(const Budget&);

/// Both parts by their names; null where not known. What is no part counts as not known.
void fields_of_taken(JsonMembers&, TakenTime&);

// Members of objects that need not be right: one that is wrong counts as missing.

inline constexpr double kMostCounted = 1e12;  ///< of anything that is counted or timed
std::optional<double> number_in(const nlohmann::json& object, const char* key, double least = 0,
                                double most = kMostCounted);
/// A whole number, which may be written as a text: flags in config.json are.
std::optional<double> whole_in(const nlohmann::json& object, const char* key, double least,
                               double most);
template <class Integer>
std::optional<Integer> whole_of(const nlohmann::json& object, const char* key, double least,
                                double most) {
  const auto value = whole_in(object, key, least, most);
  return value ? std::optional(static_cast<Integer>(*value)) : std::nullopt;
}
/// A value as text, whether it was written as a text, a number or a switch.
std::string text_in(const nlohmann::json& object, const char* key);

}  // namespace cputrain
