#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// Reading files that may be hostile: a pipe that nobody writes to, gigabytes, a line without an
/// end. std::runtime_error says what is wrong with one.
namespace cputrain {

/// A regular file of at most `most` bytes, piece after piece. It may grow meanwhile.
class BoundedFile {
 public:
  BoundedFile(const std::filesystem::path&, std::uintmax_t most);
  ~BoundedFile();
  BoundedFile(const BoundedFile&) = delete;
  BoundedFile& operator=(const BoundedFile&) = delete;

  /// Empty at the end.
  std::string next();

 private:
  std::uintmax_t most_, read_ = 0;
  int descriptor_;
};

/// All of it.
std::string read_bounded(const std::filesystem::path&, std::uintmax_t most);

/// The lines of a regular file, one after the other.
class BoundedLines {
 public:
  struct Limits {
    std::uintmax_t file, line;  ///< bytes
  };

  BoundedLines(const std::filesystem::path& path, Limits limits)
      : file_(path, limits.file), most_(limits.line) {}

  /// Without its end; nothing behind the last one.
  std::optional<std::string> next();

 private:
  bool fill();

  BoundedFile file_;
  std::uintmax_t most_;
  std::string piece_;      ///< of the file
  std::size_t place_ = 0;  ///< in it
};

}  // namespace cputrain
