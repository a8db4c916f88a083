#include "backends/hdf5/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace cputrain::hdf5 {
namespace {

using Bytes = std::span<std::byte>;

constexpr std::uint32_t kEnd = 0x06054b50, kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kMostComment = 65535;
constexpr std::uint32_t kElsewhere = 0xffffffff;  ///< the number stands in a field of ZIP64
constexpr std::uint32_t kZip64 = 1;

[[noreturn]] void damaged_archive(const char* what) {
  throw std::runtime_error(fmt::format("is a damaged zip archive ({})", what));
}

/// A whole number of so many bytes, the lowest first.
std::uint64_t wide_number_at(Bytes bytes, std::size_t at, std::size_t count) {
  if (at > bytes.size() || bytes.size() - at < count) damaged_archive("it ends too early");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  return value;
}

std::uint32_t number_at(Bytes bytes, std::size_t at, std::size_t count) {
  return static_cast<std::uint32_t>(wide_number_at(bytes, at, count));
}

std::string_view text_at(Bytes bytes, std::size_t at, std::size_t length) {
  if (at > bytes.size() || bytes.size() - at < length) damaged_archive("a name is cut");
  return {reinterpret_cast<const char*>(bytes.data()) + at, length};
}

/// The last record of the archive, behind which a comment may stand.
std::size_t find_end(Bytes archive) {
  if (archive.size() < kEndBytes) damaged_archive("its directory is missing");
  const std::size_t last = archive.size() - kEndBytes;
  const std::size_t first = last > kMostComment ? last - kMostComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (number_at(archive, at, 4) == kEnd) return at;
  }
  damaged_archive("its directory is missing");
}

struct Extent {
  std::uint64_t size, packed, local;
};

/// What an entry of the directory says. Numbers that are too large for it stand in a field of
/// ZIP64, one after the other; Python writes sizes from 2 GB on there.
Extent extent_of_entry(Bytes archive, std::size_t entry) {
  Extent extent{number_at(archive, entry + 24, 4), number_at(archive, entry + 20, 4),
                number_at(archive, entry + 42, 4)};
  std::size_t field = entry + kEntryBytes + number_at(archive, entry + 28, 2);
  const std::size_t end = field + number_at(archive, entry + 30, 2);
  while (field < end && number_at(archive, field, 2) != kZip64) {
    field += 4 + number_at(archive, field + 2, 2);
  }
  field += 4;
  for (std::uint64_t* number : {&extent.size, &extent.packed, &extent.local}) {
    if (*number != kElsewhere) continue;
    if (field + 8 > end) damaged_archive("a size is missing");
    *number = wide_number_at(archive, field, 8);
    field += 8;
  }
  return extent;
}

Bytes member_of_entry(Bytes archive, std::size_t entry) {
  const std::uint32_t flags = number_at(archive, entry + 8, 2);
  const std::uint32_t method = number_at(archive, entry + 10, 2);
  if ((flags & 1) != 0) throw std::runtime_error("is an encrypted zip archive");
  if (method != 0) {
    throw std::runtime_error("is a compressed zip archive, where Keras compresses nothing");
  }
  const auto [size, packed, local] = extent_of_entry(archive, entry);
  if (size != packed) damaged_archive("two sizes of one file");
  if (local > archive.size() || number_at(archive, local, 4) != kLocal) {
    damaged_archive("a file has no beginning");
  }
  const std::size_t begin =
      local + kLocalBytes + number_at(archive, local + 26, 2) + number_at(archive, local + 28, 2);
  if (begin > archive.size() || archive.size() - begin < size) damaged_archive("a file is cut");
  return archive.subspan(begin, size);
}

/// HDF5 has no checksums of its own in files of Keras: a changed number would be a weight.
void check_content(Bytes archive, std::size_t entry, Bytes content, std::string_view name) {
  const auto* bytes = reinterpret_cast<const Bytef*>(content.data());
  if (crc32_z(0, bytes, content.size()) == number_at(archive, entry + 16, 4)) return;
  throw std::runtime_error(
      fmt::format("is damaged ({} has not the checksum that the archive has for it)", name));
}

}  // namespace

std::optional<Bytes> stored_member(Bytes archive, std::string_view name) {
  const std::size_t end = find_end(archive);
  const std::uint32_t entries = number_at(archive, end + 10, 2);
  std::size_t entry = number_at(archive, end + 16, 4);
  if (entry == kElsewhere) throw std::runtime_error("is a zip archive of more than 4 GB");
  std::optional<std::size_t> found;  // the last one of that name, as in Python
  for (std::uint32_t i = 0; i < entries; ++i) {
    if (number_at(archive, entry, 4) != kEntry) damaged_archive("its directory is cut");
    const std::uint32_t length = number_at(archive, entry + 28, 2);
    if (text_at(archive, entry + kEntryBytes, length) == name) found = entry;
    entry += kEntryBytes + length + number_at(archive, entry + 30, 2) +
             number_at(archive, entry + 32, 2);
  }
  if (!found) return {};
  const Bytes content = member_of_entry(archive, *found);
  check_content(archive, *found, content, name);
  return content;
}

}  // namespace cputrain::hdf5
