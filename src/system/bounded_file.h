#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "system/file_system.h"

/// Reading files that may be hostile: a pipe without a writer, gigabytes, a line without an end.
/// std::runtime_error has what is wrong with one.
namespace cputrain::system {

/// A regular file, read at any place. It stays the same file where its name gets another one.
class RegularFile {
 public:
  explicit RegularFile(const std::filesystem::path&);

  /// Bytes that it had when it was opened.
  std::uintmax_t size() const { return size_; }
  /// Whether its size and the time of its last change are those that it had then.
  bool is_unchanged() const;
  /// Bytes read: fewer than asked for at the end of the file only.
  std::size_t read_some(std::uintmax_t offset, std::span<std::byte> dst) const;
  /// Fills all of `dst`.
  void read_at(std::uintmax_t offset, std::span<std::byte> dst) const;
  /// Calls use(piece) for so many bytes from `begin` on, one piece after the other.
  void for_each_piece(std::uintmax_t begin, std::uintmax_t bytes,
                      const std::function<void(std::span<const std::byte>)>& use) const;

 private:
  Descriptor file_;
  std::uintmax_t size_ = 0;
  timespec changed_{};
};

/// All of a regular file of at most `most` bytes, which may grow meanwhile.
std::string read_bounded(const std::filesystem::path&, std::uintmax_t most);

/// Reads a JSON file of at most so many bytes that may be hostile. Error(data) says what is wrong
/// with it, with the remedy behind: "(why it matters); what to try".
nlohmann::json read_json_file(const std::filesystem::path&, std::uintmax_t most,
                              std::string_view remedy);

/// The lines of a regular file, one after the other.
class BoundedLines {
 public:
  /// At most so many bytes are read, and so many of a line.
  BoundedLines(const std::filesystem::path&, std::uintmax_t most, std::uintmax_t most_of_line);

  /// Without its end; nothing behind the last one.
  std::optional<std::string> next();

 private:
  bool fill();

  RegularFile file_;
  std::uintmax_t most_, most_of_line_;
  std::uintmax_t read_ = 0;
  std::string piece_;      ///< what was read ahead
  std::size_t place_ = 0;  ///< in piece_
};

}  // namespace cputrain::system
