#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cputrain::datasets {

/// A regular file in memory, read-only: its pages are the system's own copy, one a machine. A file
/// that is cut while it is mapped kills the program (SIGBUS), so it must be replaced, not
/// rewritten. An empty file has no bytes.
class MappedFile {
 public:
  /// Error(data) naming the file, with `purpose` as the reason why it matters.
  MappedFile(const std::string& path, const std::string& purpose);
  ~MappedFile();
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cputrain::datasets
