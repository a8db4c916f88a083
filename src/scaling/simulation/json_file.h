#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cputrain::simulation {

/// Reads JSON that may be hostile. Error(data) says what is wrong with the file.
nlohmann::json read_json_file(const std::filesystem::path&);

/// An object of such a file. What is missing or odd is Error(data), naming the place, the key and
/// what is allowed. Borrows the JSON.
class JsonObject {
 public:
  JsonObject(const nlohmann::json&, std::string where);

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  int whole(const char* key, int min, int max) const;
  double real(const char* key, double min, double max) const;
  std::string text(const char* key) const;
  bool truth(const char* key) const;
  JsonObject object(const char* key) const;
  /// Whatever is there.
  const nlohmann::json& required(const char* key) const;
  /// Exactly so many numbers, or so many at least and at most.
  std::vector<double> reals(const char* key, std::size_t count, double min, double max) const {
    return reals(key, count, count, min, max);
  }
  std::vector<double> reals(const char* key, std::size_t least, std::size_t most, double min,
                            double max) const;
  std::vector<std::string> texts(const char* key, std::size_t most) const;
  std::vector<JsonObject> objects(const char* key, std::size_t most) const;
  /// "format" must be this.
  void require_format(const std::string&) const;
  /// Every key must be one of these: a word misspelt in a file that people write.
  void allow_only(const std::vector<std::string>& keys) const;

  [[noreturn]] void wrong(const std::string& what) const;

 private:
  const nlohmann::json& list(const char* key, std::size_t least, std::size_t most) const;
  double checked(const char* key, const nlohmann::json&, double min, double max) const;

  const nlohmann::json& json_;
  std::string where_;
};

}  // namespace cputrain::simulation
