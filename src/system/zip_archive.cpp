#include "system/zip_archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "core/hash.h"
#include "core/text.h"

namespace cputrain::system {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator = 0x07064b50,
                        kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46,
                      kLocalBytes = 30, kMostComment = 65535, kPiece = std::size_t{1} << 18;
// Names of an archive are kept where files are found by them: 100 MB of memory.
constexpr std::size_t kMostNamed = 200'000, kMostNameBytes = std::size_t{64} << 20;
constexpr std::uint64_t kElsewhere = 0xffffffff;  ///< the number stands in a field of ZIP64
constexpr std::uint64_t kZip64 = 1;

[[noreturn]] void damaged_zip(const char* what) {
  throw std::runtime_error(fmt::format("is a damaged zip archive ({})", what));
}

/// A whole number of so many bytes, the lowest first.
std::uint64_t zip_number(Bytes bytes, std::size_t at, std::size_t count) {
  if (at > bytes.size() || bytes.size() - at < count) damaged_zip("a number is cut");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  return value;
}

/// The archive, of which the piece that was read last is kept.
class ZipWindow {
 public:
  ZipWindow(std::uint64_t size, const ReadArchive& read) : size_(size), read_(read) {}

  /// Until the next call.
  Bytes at(std::uint64_t offset, std::size_t count) {
    if (offset > size_ || size_ - offset < count) damaged_zip("it ends too early");
    if (offset < begin_ || offset + count > begin_ + kept_.size()) {
      kept_.resize(std::min(size_ - offset, std::max<std::uint64_t>(count, kPiece)));
      read_(offset, kept_);
      begin_ = offset;
    }
    return Bytes(kept_).subspan(offset - begin_, count);
  }

 private:
  std::uint64_t size_, begin_ = 0;
  const ReadArchive& read_;
  std::vector<std::byte> kept_;
};

struct DirectoryPlace {
  std::uint64_t begin, end, entries;
  std::uint64_t before;  ///< bytes before the archive, which its places do not count
};

/// The record that has the numbers of a large archive, where there is one.
void take_end64(ZipWindow& archive, DirectoryPlace& found, std::uint64_t& bytes) {
  if (found.end < kLocatorBytes + kEnd64Bytes) return;
  const Bytes locator = archive.at(found.end - kLocatorBytes, kLocatorBytes);
  if (zip_number(locator, 0, 4) != kLocator) return;
  const std::uint64_t usual = found.end - kLocatorBytes - kEnd64Bytes;
  const std::uint64_t told = zip_number(locator, 8, 8);
  const bool is_usual = zip_number(archive.at(usual, 4), 0, 4) == kEnd64;
  found.end = is_usual ? usual : told;
  const Bytes record = archive.at(found.end, kEnd64Bytes);
  if (zip_number(record, 0, 4) != kEnd64) damaged_zip("its directory is missing");
  found.entries = zip_number(record, 32, 8);
  bytes = zip_number(record, 40, 8);
  found.begin = zip_number(record, 48, 8);
}

/// The last record of the archive says where the directory is. A comment may stand behind it.
DirectoryPlace find_zip_directory(ZipWindow& archive, std::uint64_t size) {
  const std::uint64_t first = size - std::min<std::uint64_t>(size, kEndBytes + kMostComment);
  const Bytes tail = archive.at(first, static_cast<std::size_t>(size - first));
  if (tail.size() < kEndBytes) damaged_zip("its directory is missing");
  std::size_t at = tail.size() - kEndBytes;
  const auto is_end = [&] {
    return zip_number(tail, at, 4) == kEnd &&
           zip_number(tail, at + 20, 2) <= tail.size() - at - kEndBytes;
  };
  while (!is_end()) {
    if (at-- == 0) damaged_zip("its directory is missing");
  }
  if (const auto part = zip_number(tail, at + 4, 2); part != 0 && part != 0xffff) {
    throw std::runtime_error("is one of several parts of a zip archive");
  }
  DirectoryPlace found{zip_number(tail, at + 16, 4), first + at, zip_number(tail, at + 10, 2), 0};
  std::uint64_t bytes = zip_number(tail, at + 12, 4);
  take_end64(archive, found, bytes);
  if (bytes > found.end || found.begin > found.end - bytes) damaged_zip("its directory is cut");
  if (found.entries > bytes / kEntryBytes) damaged_zip("its directory is cut");
  found.before = found.end - bytes - found.begin;
  found.begin += found.before;
  return found;
}

/// Numbers that are too large for an entry stand in a field of ZIP64, one after the other. Python
/// writes sizes from 2 GB on there.
void take_zip64(Bytes fields, ZipEntry& entry) {
  std::size_t at = 0;
  while (at + 4 <= fields.size() && zip_number(fields, at, 2) != kZip64) {
    at += 4 + zip_number(fields, at + 2, 2);
  }
  const std::size_t end = at + 4 <= fields.size() ? at + 4 + zip_number(fields, at + 2, 2) : 0;
  at += 4;
  for (std::uint64_t* number : {&entry.bytes, &entry.packed, &entry.header}) {
    if (*number != kElsewhere) continue;
    if (at + 8 > end) damaged_zip("a size is missing");
    *number = zip_number(fields, at, 8);
    at += 8;
  }
}

/// `head`: the entry with its name and the fields behind it.
ZipEntry entry_of(Bytes head, std::size_t name_bytes) {
  const auto low = [&](std::size_t at, std::size_t count) {
    return static_cast<std::uint32_t>(zip_number(head, at, count));
  };
  constexpr std::uint32_t kUnix = 3, kDarwin = 19, kDosFolder = 0x10;
  // FAT, HPFS, NTFS, as Info-ZIP has it, VFAT.
  constexpr std::array<std::uint32_t, 5> kOfDos{0, 6, 10, 11, 14};
  const std::uint32_t system = low(5, 1), attributes = low(38, 4);
  ZipEntry entry;
  entry.name = {reinterpret_cast<const char*>(head.data()) + kEntryBytes, name_bytes};
  entry.bytes = zip_number(head, 24, 4);
  entry.packed = zip_number(head, 20, 4);
  entry.header = zip_number(head, 42, 4);
  entry.checksum = low(16, 4);
  entry.method = static_cast<std::uint16_t>(low(10, 2));
  entry.encrypted = (low(8, 2) & 1) != 0;
  entry.of_dos = std::ranges::find(kOfDos, system) != kOfDos.end();
  if (system == kUnix || system == kDarwin) {
    entry.mode = attributes >> 16;
  } else if ((attributes & kDosFolder) != 0) {
    entry.mode = S_IFDIR;
  }
  take_zip64(head.subspan(kEntryBytes + name_bytes), entry);
  return entry;
}

std::uint32_t checksum_of(const ReadArchive& read, ZipFiles::Place place) {
  std::vector<std::byte> space(std::min<std::uint64_t>(place.size, kPiece));
  std::uint32_t sum = 0;
  for (std::uint64_t done = 0; done < place.size; done += kPiece) {
    const auto piece = std::span(space).first(std::min<std::uint64_t>(kPiece, place.size - done));
    read(place.begin + done, piece);
    sum = crc32_zip(piece, sum);
  }
  return sum;
}

}  // namespace

void for_each_zip_entry(std::uint64_t size, const ReadArchive& read,
                        const std::function<void(const ZipEntry&)>& use) {
  ZipWindow archive(size, read);
  const DirectoryPlace directory = find_zip_directory(archive, size);
  std::uint64_t at = directory.begin;
  for (std::uint64_t left = directory.entries; left > 0; --left) {
    if (at > directory.end || directory.end - at < kEntryBytes) damaged_zip("its directory is cut");
    const Bytes head = archive.at(at, kEntryBytes);
    if (zip_number(head, 0, 4) != kEntry) damaged_zip("its directory has something else in it");
    const std::size_t name = zip_number(head, 28, 2), fields = zip_number(head, 30, 2);
    const std::size_t whole = kEntryBytes + name + fields + zip_number(head, 32, 2);
    if (directory.end - at < whole) damaged_zip("its directory is cut");
    ZipEntry entry = entry_of(archive.at(at, kEntryBytes + name + fields), name);
    entry.header += directory.before;
    use(entry);
    at += whole;
  }
}

std::uint64_t zip_content(std::uint64_t size, const ReadArchive& read, std::uint64_t header,
                          std::uint64_t packed) {
  std::array<std::byte, kLocalBytes> head{};
  if (header > size || size - header < kLocalBytes) damaged_zip("a file has no beginning");
  read(header, head);
  if (zip_number(head, 0, 4) != kLocal) damaged_zip("a file has no beginning");
  const std::uint64_t begin =
      header + kLocalBytes + zip_number(head, 26, 2) + zip_number(head, 28, 2);
  if (begin > size || size - begin < packed) damaged_zip("a file is cut");
  return begin;
}

ZipFiles::ZipFiles(std::uint64_t size, ReadArchive read) : size_(size), read_(std::move(read)) {
  std::size_t count = 0, bytes = 0;
  for_each_zip_entry(size_, read_, [&](const ZipEntry& entry) {
    bytes += entry.name.size();
    if (++count > kMostNamed || bytes > kMostNameBytes) {
      throw std::runtime_error("is a zip archive of over 200,000 files or 64 MB of names");
    }
    entries_.insert_or_assign(std::string(entry.name), entry).first->second.name = {};
  });
}

std::vector<std::string> ZipFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::optional<ZipFiles::Place> ZipFiles::stored(const std::string& name) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return {};
  const auto known = whole_.find(name);
  if (known != whole_.end()) return known->second;
  return whole_[name] = whole(name, entry->second);
}

ZipFiles::Place ZipFiles::whole(const std::string& name, const ZipEntry& entry) {
  if (entry.encrypted) throw std::runtime_error("is an encrypted zip archive");
  if (entry.method != ZipEntry::kStored) {
    throw std::runtime_error("is a compressed zip archive, where weights are stored as they are");
  }
  if (entry.bytes != entry.packed) damaged_zip("two sizes of one file");
  const Place place{zip_content(size_, read_, entry.header, entry.packed), entry.bytes};
  // Many names of the same bytes would have them read as many times.
  if (place.size > size_ - asked_) damaged_zip("its files lie in one another");
  asked_ += place.size;
  // torch.save() writes zeros where it is told to compute none (set_crc32_options).
  if (entry.checksum != 0 && checksum_of(read_, place) != entry.checksum) {
    throw std::runtime_error(fmt::format(
        "is damaged ({} has not the checksum that the archive has for it)", printable(name)));
  }
  return place;
}

}  // namespace cputrain::system
