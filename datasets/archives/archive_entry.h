#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/formats/container_file.h"

namespace cputrain::datasets {

enum class EntryKind : std::uint8_t { file, folder, link, device };

/// How the bytes of a file lie, and what its place is: where they begin in the archive; where the
/// header of the zip entry lies; the number among held files. `other`: by a method not read here.
enum class Packing : std::uint8_t { plain, zip_stored, zip_deflated, held, other };

/// What an archive says of one of its entries.
struct ArchiveEntry {
  std::string_view name;  ///< as it stands there
  EntryKind kind = EntryKind::file;
  Packing packing = Packing::plain;
  bool encrypted = false;
  std::uint64_t bytes = 0, packed = 0;  ///< of the file, and in the archive
  std::uint64_t place = 0;
  std::uint64_t unpacked = 0;  ///< all entries so far and this one, with what is between them
  std::uint32_t checksum = 0;  ///< CRC-32, of zip archives alone
};

/// Whether entries of this name are read: images, and labels of WebDataset.
bool is_read(std::string_view name);

/// Files of compressed archives, in memory: what is before a file must be unpacked to get at it.
class HeldFiles {
 public:
  /// They may take three quarters of so much memory; nothing: of what is available now.
  explicit HeldFiles(std::optional<std::size_t> memory);

  /// A file of so many bytes, to be filled in. Error(data) where memory has no room for it.
  std::vector<std::uint8_t>& add(std::uint64_t bytes, const std::string& archive);
  std::size_t count() const { return files_.size(); }
  std::uint64_t bytes() const { return held_; }
  const std::vector<std::uint8_t>& operator[](std::size_t number) const { return files_[number]; }

 private:
  std::uint64_t room_, held_ = 0;
  std::vector<std::vector<std::uint8_t>> files_;
};

/// What is damaged: "'a.tar' cannot be read: Truncated tar archive (...); ...". Error(data).
[[noreturn]] void fail_damaged(const std::string& archive, const std::string& what);

/// Calls use(entry) for all entries of a tar archive, plain or compressed. Error(data).
void for_each_tar_entry(const ContainerFile&, HeldFiles&,
                        const std::function<void(const ArchiveEntry&)>& use);

/// "libarchive 3.6.2", of the headers, since the first archive loads it; empty in builds without
/// it.
std::string archive_library();

}  // namespace cputrain::datasets
