#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cputrain::system {

/// Where the files of a zip archive lie in it, by its directory (the format: PKWARE's APPNOTE.TXT,
/// 4.3). Archives may be hostile: none of their numbers is believed before it is compared with the
/// archive's size. Throws std::runtime_error with what is wrong.
class ZipDirectory {
 public:
  /// Fills `dst` with the archive's bytes from `offset` on. It is asked for none beyond its end.
  using Read = std::function<void(std::uint64_t offset, std::span<std::byte> dst)>;
  struct Place {
    std::uint64_t begin, size;  ///< bytes of the archive
    std::uint32_t checksum;     ///< CRC-32, which is not compared here
  };

  /// Reads the directory, and nothing of the files. `read` is kept.
  ZipDirectory(std::uint64_t size, Read read);

  /// In the order of the alphabet.
  std::vector<std::string> names() const;
  /// A file that is stored as it is; nothing where there is none of that name. One that is
  /// compressed or encrypted is refused.
  std::optional<Place> stored(const std::string& name) const;

 private:
  std::uint64_t size_;
  Read read_;
  std::vector<std::byte> directory_;
  std::map<std::string, std::size_t> entries_;  ///< places in the directory, by name
};

}  // namespace cputrain::system
