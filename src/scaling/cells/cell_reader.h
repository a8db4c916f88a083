#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cputrain::cells {

inline constexpr int kCellsVersion = 1;

/// Reads one object of a file that may be hostile. A field that is missing or null is not known;
/// one that is there and wrong is Error(data), naming the place and what is allowed.
class CellReader {
 public:
  /// Error(data) where `object` is none. Borrows it.
  CellReader(const nlohmann::json& object, std::string where);

  bool knows(const char* key) const;
  std::optional<double> real(const char* key, double min, double max) const;
  std::optional<std::int64_t> whole(const char* key, std::int64_t min, std::int64_t max) const;
  /// Empty where not known.
  std::string text(const char* key) const;
  /// Numbers or texts; empty where not known.
  std::vector<double> reals(const char* key, double min, double max) const;
  std::vector<std::string> texts(const char* key) const;
  /// False where not known.
  bool truth(const char* key) const;
  /// Texts by the flags' names: words of small letters, digits and dashes; empty where not known.
  std::map<std::string, std::string> options(const char* key) const;
  /// Nullptr where not known.
  const nlohmann::json* object(const char* key) const;
  const nlohmann::json& required(const char* key) const;
  const std::string& where() const { return where_; }

  [[noreturn]] void wrong(const std::string& what) const;

 private:
  const std::string& checked_text(const std::string& key, const nlohmann::json&) const;
  const nlohmann::json* list(const char* key) const;
  double checked_real(const char* key, const nlohmann::json&, double min, double max) const;

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace cputrain::cells
