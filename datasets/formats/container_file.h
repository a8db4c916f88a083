#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/casts.h"
#include "system/bounded_file.h"

namespace cputrain::datasets {

/// A regular file that holds many images, or their names, and is read by calls where they are asked
/// for. If it is cut meanwhile, that is an error here; in mapped memory it would be the end of the
/// program (SIGBUS). Its pages are the system's own copy, one a machine. From many threads.
class ContainerFile {
 public:
  /// Error(data) naming the file, with `purpose` as the reason why it matters.
  ContainerFile(const std::string& path, const std::string& purpose);

  const std::string& path() const { return path_; }
  /// Bytes that it had when it was opened.
  std::size_t size() const { return to_size(file_.size()); }
  /// Error(data) where its size or the time of its last change is another one by now.
  void check_unchanged() const;
  /// Fills all of `dst`. Error(data) where the file has become shorter, or cannot be read.
  void read(std::size_t offset, std::span<std::uint8_t> dst) const;
  /// Calls use(piece) for these bytes, one piece after the other.
  void for_each_piece(std::size_t offset, std::size_t bytes,
                      const std::function<void(std::span<const std::uint8_t>)>& use) const;
  /// CRC-32 of these bytes.
  std::uint32_t checksum(std::size_t offset, std::size_t bytes) const;

 private:
  std::string path_;
  system::RegularFile file_;
};

/// Error(data): what was read of an open file is not what was there when it was opened.
[[noreturn]] void fail_changed(const std::string& path, const std::string& what);

}  // namespace cputrain::datasets
