#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "datasets/formats/container_file.h"

/// Zip archives by their directory (the format: PKWARE's APPNOTE.TXT, 4.3 and 4.5.3 of ZIP64),
/// which may be hostile: none of their numbers is believed before it is compared with the archive's
/// size. std::runtime_error has what is wrong with one.
namespace cputrain::datasets {

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
void for_each_zip_entry(const ContainerFile&, const std::function<void(const ZipEntry&)>& use);

/// Where the `packed` bytes begin that follow the header of an entry.
std::uint64_t zip_content(const ContainerFile&, std::uint64_t header, std::uint64_t packed);

}  // namespace cputrain::datasets
