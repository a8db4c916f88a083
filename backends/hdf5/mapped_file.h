#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace cputrain::hdf5 {

/// A regular file as memory, which nothing changes. Where the file is cut meanwhile, reading it
/// ends the process by a signal. std::runtime_error has what is wrong.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path&);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace cputrain::hdf5
