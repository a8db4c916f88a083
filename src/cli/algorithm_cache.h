#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace cputrain {

/// Texts by key in a JSON file, the newest last: what trainings found about this machine. A cache
/// and no more: what cannot be read is not there.
class AlgorithmCache {
 public:
  explicit AlgorithmCache(std::filesystem::path file) : file_(std::move(file)) {}

  const std::filesystem::path& file() const { return file_; }
  /// Empty where there is none.
  std::string find(const std::string& key) const;
  /// Replaces what the key had, and forgets the oldest where there are many. The file is whole at
  /// any time; of two writers at once the last one wins. Error(output) where it cannot be written.
  void keep(const std::string& key, const std::string& text) const;

 private:
  std::filesystem::path file_;
};

/// cputrain/algorithms.json in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache); nothing
/// where the environment names none.
std::optional<std::filesystem::path> algorithms_file();

}  // namespace cputrain
