#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Zip archives by their directory (the format: PKWARE's APPNOTE.TXT, 4.3 and 4.5.3 of ZIP64),
/// which may be hostile: none of their numbers is believed before it is compared with the archive's
/// size. std::runtime_error has what is wrong with one.
namespace cputrain::system {

/// Fills `dst` with an archive's bytes from `offset` on. It is asked for none beyond its end.
using ReadArchive = std::function<void(std::uint64_t offset, std::span<std::byte> dst)>;

/// A file of the archive, or a folder, as the directory has it.
struct ZipEntry {
  static constexpr std::uint16_t kStored = 0, kDeflated = 8;

  std::string_view name;       ///< its bytes, in whatever code; for the time of the call
  std::uint64_t bytes = 0;     ///< of the file
  std::uint64_t packed = 0;    ///< of it in the archive
  std::uint64_t header = 0;    ///< where its own header lies, which these bytes follow
  std::uint32_t checksum = 0;  ///< CRC-32 of the file
  std::uint32_t mode = 0;      ///< of Unix: what it is (S_IFMT) and rights; 0 where not known
  std::uint16_t method = kStored;
  bool encrypted = false;
  bool of_dos = false;  ///< written there or on Windows, where '\\' may stand between names
};

/// Calls use(entry) for all, in the order of the directory, of which a piece at a time is read.
void for_each_zip_entry(std::uint64_t size, const ReadArchive& read,
                        const std::function<void(const ZipEntry&)>& use);

/// Where the `packed` bytes begin that follow the header of an entry.
std::uint64_t zip_content(std::uint64_t size, const ReadArchive& read, std::uint64_t header,
                          std::uint64_t packed);

/// Files of an archive by their names, of which the last entry counts, as in Python.
class ZipFiles {
 public:
  struct Place {
    std::uint64_t begin, size;  ///< bytes of the archive
  };

  /// Reads the directory, and nothing of the files. `read` is kept.
  ZipFiles(std::uint64_t size, ReadArchive read);

  /// In the order of the alphabet.
  std::vector<std::string> names() const;
  /// A file that is stored as it is, whose checksum (0: none) is compared when it is first asked
  /// for; nothing where there is none of that name. One that is compressed or encrypted is refused.
  std::optional<Place> stored(const std::string& name);

 private:
  Place whole(const std::string& name, const ZipEntry&);

  std::uint64_t size_, asked_ = 0;  ///< bytes: of the archive, and of files that were asked for
  ReadArchive read_;
  std::map<std::string, ZipEntry> entries_;  ///< by name, which is not kept in them
  std::map<std::string, Place> whole_;       ///< those whose checksums were compared
};

}  // namespace cputrain::system
