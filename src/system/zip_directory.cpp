#include "system/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace cputrain::system {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kEnd = 0x06054b50, kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kMostComment = 65535;
constexpr std::size_t kMostDirectory = std::size_t{64} << 20;  // 65,535 names of 1,000 bytes
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

std::string text_at(Bytes bytes, std::size_t at, std::size_t length) {
  if (at > bytes.size() || bytes.size() - at < length) damaged_archive("a name is cut");
  return {reinterpret_cast<const char*>(bytes.data()) + at, length};
}

std::vector<std::byte> read_piece(const ZipDirectory::Read& read, std::uint64_t begin,
                                  std::uint64_t end) {
  std::vector<std::byte> bytes(end - begin);
  read(begin, bytes);
  return bytes;
}

struct Extent {
  std::uint64_t size, packed, local;
};

/// What an entry of the directory says. Numbers that are too large for it stand in a field of
/// ZIP64, one after the other; Python writes sizes from 2 GB on there.
Extent extent_of_entry(Bytes directory, std::size_t entry) {
  Extent extent{number_at(directory, entry + 24, 4), number_at(directory, entry + 20, 4),
                number_at(directory, entry + 42, 4)};
  std::size_t field = entry + kEntryBytes + number_at(directory, entry + 28, 2);
  const std::size_t end = field + number_at(directory, entry + 30, 2);
  while (field < end && number_at(directory, field, 2) != kZip64) {
    field += 4 + number_at(directory, field + 2, 2);
  }
  field += 4;
  for (std::uint64_t* number : {&extent.size, &extent.packed, &extent.local}) {
    if (*number != kElsewhere) continue;
    if (field + 8 > end) damaged_archive("a size is missing");
    *number = wide_number_at(directory, field, 8);
    field += 8;
  }
  return extent;
}

/// The last record of the archive, behind which a comment may stand: its place among these last
/// bytes.
std::size_t find_end(Bytes tail) {
  if (tail.size() < kEndBytes) damaged_archive("its directory is missing");
  for (std::size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    if (number_at(tail, at, 4) == kEnd) return at;
  }
  damaged_archive("its directory is missing");
}

}  // namespace

ZipDirectory::ZipDirectory(std::uint64_t size, Read read) : size_(size), read_(std::move(read)) {
  const std::uint64_t first = size_ - std::min<std::uint64_t>(size_, kEndBytes + kMostComment);
  const std::vector<std::byte> tail = read_piece(read_, first, size_);
  const std::size_t end = find_end(tail);
  const std::uint32_t begin = number_at(tail, end + 16, 4);
  if (begin == kElsewhere) throw std::runtime_error("is a zip archive of more than 4 GB");
  if (begin > first + end) damaged_archive("its directory is cut");
  if (first + end - begin > kMostDirectory) {
    throw std::runtime_error("is a zip archive with a directory of over 64 MB");
  }
  directory_ = read_piece(read_, begin, first + end);
  std::size_t entry = 0;
  const std::uint32_t count = number_at(tail, end + 10, 2);
  if (count == 0xffff) throw std::runtime_error("is a zip archive of more than 65,534 files");
  for (std::uint32_t left = count; left > 0; --left) {
    if (number_at(directory_, entry, 4) != kEntry) damaged_archive("its directory is cut");
    const std::uint32_t length = number_at(directory_, entry + 28, 2);
    // The last one of a name counts, as in Python.
    entries_[text_at(directory_, entry + kEntryBytes, length)] = entry;
    entry += kEntryBytes + length + number_at(directory_, entry + 30, 2) +
             number_at(directory_, entry + 32, 2);
  }
}

std::vector<std::string> ZipDirectory::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::optional<ZipDirectory::Place> ZipDirectory::stored(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return {};
  const std::size_t entry = found->second;
  if ((number_at(directory_, entry + 8, 2) & 1) != 0) {
    throw std::runtime_error("is an encrypted zip archive");
  }
  if (number_at(directory_, entry + 10, 2) != 0) {
    throw std::runtime_error("is a compressed zip archive, where weights are stored as they are");
  }
  const auto [size, packed, local] = extent_of_entry(directory_, entry);
  if (size != packed) damaged_archive("two sizes of one file");
  if (local > size_ || size_ - local < kLocalBytes) damaged_archive("a file has no beginning");
  std::array<std::byte, kLocalBytes> head{};
  read_(local, head);
  if (number_at(head, 0, 4) != kLocal) damaged_archive("a file has no beginning");
  const std::uint64_t begin = local + kLocalBytes + number_at(head, 26, 2) + number_at(head, 28, 2);
  if (begin > size_ || size_ - begin < size) damaged_archive("a file is cut");
  return Place{begin, size, number_at(directory_, entry + 16, 4)};
}

}  // namespace cputrain::system
