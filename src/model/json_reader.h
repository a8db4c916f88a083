#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cputrain::model {

/// Reads one object's fields from a description that people may have written: every figure is
/// checked, and Error(data) names the place, the field and what is allowed. A field with a default
/// may be left out.
class JsonReader {
 public:
  /// Error(data) where `object` is none. Borrows it.
  JsonReader(const nlohmann::json& object, std::string where);

  bool has(const char* key) const;
  const nlohmann::json& field(const char* key) const;
  int whole(const char* key, int min, int max, std::optional<int> standard = {}) const;
  double real(const char* key, double min, double max, std::optional<double> standard = {}) const;
  bool flag(const char* key, std::optional<bool> standard = {}) const;
  std::string text(const char* key, std::optional<std::string> standard = {}) const;

  /// Fields besides "name", "type" and "from" must be among these: a mistyped one would otherwise
  /// be ignored.
  void allow(const std::vector<std::string>& names) const;

  [[noreturn]] void wrong(const std::string& what) const;

 private:
  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace cputrain::model
