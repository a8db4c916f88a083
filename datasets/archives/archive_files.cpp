#include "datasets/archives/archive_files.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "core/error.h"
#include "core/text.h"
#include "datasets/archives/zip_entries.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/folder_names.h"
#include "system/limits/process_limits.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLabelEnding = ".cls";
constexpr const char* kRemedy = "pack the images anew";

/// Archives stay open: to open one for each image would cost shared file systems dear.
void allow_open_files(std::size_t count) {
  constexpr rlim_t kOthers = 256;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count + kOthers) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, count + kOthers);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // if it is too little still, opening says so
}

[[noreturn]] void refuse_archive(const ContainerFile& file, const std::string& what,
                                 const std::string& why, const std::string& remedy = kRemedy) {
  fail(ExitCode::data, fmt::format("'{}' {} ({}); {}", file.path(), what, why, remedy));
}

bool is_zip(const ContainerFile& file) {
  std::array<std::uint8_t, 4> head{};
  if (file.size() < head.size()) return false;
  file.read(0, head);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text == std::string_view("PK\x03\x04") || text == std::string_view("PK\x05\x06");
}

EntryKind kind_of(const ZipEntry& entry, std::string_view name) {
  if (name.ends_with('/') || S_ISDIR(entry.mode)) return EntryKind::folder;
  if (S_ISLNK(entry.mode)) return EntryKind::link;
  const bool is_file = S_ISREG(entry.mode) || (entry.mode & S_IFMT) == 0;
  return is_file ? EntryKind::file : EntryKind::device;
}

Packing packing_of(const ZipEntry& entry) {
  if (entry.method == ZipEntry::kStored) return Packing::zip_stored;
  return entry.method == ZipEntry::kDeflated ? Packing::zip_deflated : Packing::other;
}

std::optional<Unread> flaw_of(EntryKind kind) {
  if (kind == EntryKind::link) return Unread::archived_link;
  if (kind == EntryKind::device) return Unread::no_file;
  return std::nullopt;
}

/// Whether a deflated stream is the whole file, no byte less or more.
bool inflate_to(std::span<const std::uint8_t> packed, std::span<std::uint8_t> file) {
  z_stream zlib{};
  if (inflateInit2(&zlib, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  zlib.next_in = const_cast<Bytef*>(packed.data());
  zlib.avail_in = static_cast<uInt>(packed.size());
  zlib.next_out = file.data();
  zlib.avail_out = static_cast<uInt>(file.size());
  const int state = inflate(&zlib, Z_FINISH);
  const bool whole = state == Z_STREAM_END && zlib.avail_out == 0;
  inflateEnd(&zlib);
  return whole;
}

FileContent damaged_file(const char* what) { return {{data::ReadStatus::unreadable, what}, {}}; }

}  // namespace

bool is_read(std::string_view name) {
  return is_image_file_name(name) || name.ends_with(kLabelEnding);
}

HeldFiles::HeldFiles(std::optional<std::size_t> memory)
    : room_(std::numeric_limits<std::uint64_t>::max()) {
  if (!memory) memory = system::available_memory();
  if (memory) room_ = *memory / 4 * 3;
}

std::vector<std::uint8_t>& HeldFiles::add(std::uint64_t bytes, const std::string& archive) {
  held_ += bytes;
  if (held_ > room_) {
    fail(ExitCode::data,
         fmt::format("'{0}' is compressed as a whole and holds more than {1} of images (there is "
                     "memory for no more, where each rank keeps them: none can be read without "
                     "what is before it); unpack it and name the folder: tar -xf {0}",
                     archive, bytes_text(static_cast<double>(room_))));
  }
  return files_.emplace_back(bytes);
}

void fail_damaged(const std::string& archive, const std::string& what) {
  fail(ExitCode::data, fmt::format("'{}' cannot be read as an archive: {} (its images are needed); "
                                   "fetch or pack it again",
                                   archive, what));
}

ArchiveFiles::ArchiveFiles(const std::vector<std::string>& archives,
                           std::optional<std::size_t> memory)
    : held_(memory) {
  allow_open_files(archives.size());
  for (const std::string& path : archives) {
    archives_.emplace_back(path, "its images are needed");
    list(static_cast<std::uint32_t>(archives_.size() - 1));
  }
  sort();
  has_labels_ = finds_labels();
  if (has_labels_ && archives_.size() > 1) {
    begin_paths_with_archives();
    sort();
  }
  check_paths();
}

void ArchiveFiles::list(std::uint32_t archive) {
  const ContainerFile& file = archives_[archive];
  if (is_zip(file)) {
    list_zip(archive);
  } else {
    for_each_tar_entry(file, held_, [&](const ArchiveEntry& entry) { add(archive, entry); });
  }
  file.check_unchanged();
}

void ArchiveFiles::list_zip(std::uint32_t archive) {
  const ContainerFile& file = archives_[archive];
  std::uint64_t unpacked = 0;
  const auto use = [&](const ZipEntry& entry) {
    std::string name(entry.name);
    if (entry.of_dos && name.find('/') == std::string::npos) {
      std::ranges::replace(name, '\\', '/');
    }
    // Sums that do not fit are too large as well.
    unpacked += std::min(entry.bytes, std::numeric_limits<std::uint64_t>::max() - unpacked);
    add(archive, {.name = name,
                  .kind = kind_of(entry, name),
                  .packing = packing_of(entry),
                  .encrypted = entry.encrypted,
                  .bytes = entry.bytes,
                  .packed = entry.packed,
                  .place = entry.header,
                  .unpacked = unpacked,
                  .checksum = entry.checksum});
  };
  try {
    for_each_zip_entry(file, use);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    refuse_archive(file, error.what(), "its images are needed", "fetch or pack it again");
  }
}

void ArchiveFiles::add(std::uint32_t archive, const ArchiveEntry& entry) {
  const ContainerFile& file = archives_[archive];
  const std::string path = checked_path(file, entry);
  if (path.empty()) return;  // "./"
  check_content(file, entry, path);
  if (entries_.size() == kMaxFiles) {
    refuse_archive(file, fmt::format("holds more than {} files", with_commas(kMaxFiles)),
                   "indices have 32 bits", "split the data set");
  }
  entries_.push_back({paths_.size(), entry.bytes, entry.packed, entry.place,
                      static_cast<std::uint32_t>(path.size()), archive, entry.checksum, entry.kind,
                      entry.packing});
  paths_ += path;
}

/// Names joined by '/', and one behind a folder. Whatever else a path may mean is refused: no
/// common tool writes it.
std::string ArchiveFiles::checked_path(const ContainerFile& file, const ArchiveEntry& entry) const {
  const auto refuse_path = [&](const char* what) {
    refuse_archive(file, fmt::format("holds the path '{}'", printable(entry.name)), what);
  };
  if (entry.name.starts_with('/')) refuse_path("it begins at the root, where no image is put");
  if (entry.name.find('\0') != std::string_view::npos) refuse_path("it has a zero byte");
  if (entry.name.size() > kMaxArchivePath) refuse_path("it is too long");
  std::string path;
  std::size_t names = 0;
  for (const std::string& name : split(entry.name, '/')) {
    if (name == "..") refuse_path("it leads out of the archive");
    if (name.empty() || name == ".") continue;
    if (!path.empty()) path += '/';
    path += name;
    ++names;
  }
  if (names > kMaxArchiveFolders) refuse_path("it has too many folders");
  if (entry.kind == EntryKind::folder && !path.empty()) path += '/';
  return path;
}

void ArchiveFiles::check_content(const ContainerFile& file, const ArchiveEntry& entry,
                                 std::string_view path) const {
  const auto name = [&] { return printable(path); };
  if (entry.encrypted) {
    refuse_archive(file, fmt::format("is encrypted ('{}' is)", name()), "no password is asked for",
                   "unpack it and name the folder");
  }
  const std::uint64_t most = kFreeUnpackedBytes + kMaxUnpackedTimes * file.size();
  if (entry.unpacked > most) {
    refuse_archive(
        file, fmt::format("would be more than {} unpacked", bytes_text(static_cast<double>(most))),
        fmt::format("that is over {} times its size, as of an archive made to fill memory",
                    kMaxUnpackedTimes),
        "unpack it and name the folder if that is meant");
  }
  if (entry.kind != EntryKind::file || !is_read(path)) return;
  if (entry.packing == Packing::other) {
    refuse_archive(
        file, fmt::format("holds '{}' packed by a method that is not read", name()),
        "files in a zip archive may be stored or deflated, and those in a tar archive have no "
        "holes");
  }
  const bool fits = entry.place <= file.size() && entry.packed <= file.size() - entry.place;
  if (entry.packing != Packing::held && !fits) {
    fail_damaged(file.path(), fmt::format("it ends before the end of '{}'", name()));
  }
  if (entry.packing == Packing::zip_stored && entry.bytes != entry.packed) {
    fail_damaged(file.path(), fmt::format("'{}' has two sizes", name()));
  }
}

void ArchiveFiles::sort() {
  std::ranges::sort(entries_, {},
                    [this](const Entry& entry) { return std::pair(path(entry), entry.archive); });
}

bool ArchiveFiles::finds_labels() const {
  const auto is_label = [this](const Entry& entry) { return path(entry).ends_with(kLabelEnding); };
  if (std::ranges::none_of(entries_, is_label)) return false;
  return std::ranges::any_of(entries_, [this](const Entry& entry) {
    const std::string_view image = path(entry);
    return is_image_file_name(image) && !label_path(image).empty();
  });
}

/// In parts of one set that are packed apart, `0.jpg` of one is not that of another.
void ArchiveFiles::begin_paths_with_archives() {
  std::string paths;
  for (Entry& entry : entries_) {
    const std::string whole = fmt::format(
        "{}/{}", fs::path(archives_[entry.archive].path()).filename().string(), path(entry));
    entry.path_begin = paths.size();
    entry.path_bytes = static_cast<std::uint32_t>(whole.size());
    paths += whole;
  }
  paths_ = std::move(paths);
}

/// Each path once; the folder of another archive may be the same.
void ArchiveFiles::check_paths() {
  const auto same = [this](const Entry& a, const Entry& b) { return path(a) == path(b); };
  const auto twice = std::ranges::adjacent_find(entries_, [&](const Entry& a, const Entry& b) {
    return same(a, b) && a.kind != EntryKind::folder;
  });
  if (twice != entries_.end()) {
    refuse_archive(archives_[twice->archive], fmt::format("holds '{}'", printable(path(*twice))),
                   fmt::format("so does '{}', once more; which of the two is meant cannot be told",
                               archives_[std::next(twice)->archive].path()));
  }
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

FolderNode ArchiveFiles::tree() const {
  std::vector<TreeEntry> entries;
  entries.reserve(entries_.size());
  for (const Entry& entry : entries_) entries.push_back({path(entry), flaw_of(entry.kind)});
  return tree_of(entries);
}

std::string ArchiveFiles::label_path(std::string_view image) const {
  const std::string path =
      std::string(image.substr(0, image.rfind('.'))) + std::string(kLabelEnding);
  const Entry* found = find(path);
  return found != nullptr && found->kind == EntryKind::file ? path : "";
}

std::string ArchiveFiles::label(std::string_view image) const {
  const std::string path = label_path(image);
  if (path.empty()) return {};
  const FileContent file = read(path, nullptr);
  if (file.result.status != data::ReadStatus::ok &&
      file.result.status != data::ReadStatus::empty) {  // which is no number, as said below
    fail(ExitCode::data,
         "'{}' cannot be read: {} (it says of which class an image is); fetch or pack the archive "
         "again",
         name(path), file.result.detail);
  }
  std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    fail(ExitCode::data,
         fmt::format("'{}' {} where the number of a class belongs (0, 1 and so on say of which "
                     "class an image is); write one number into it",
                     name(path),
                     text.empty() ? "is empty" : fmt::format("holds '{}'", printable(text))));
  }
  return std::to_string(number);
}

std::string ArchiveFiles::name(std::string_view path) const {
  const fs::path archive = archives_[find(path)->archive].path();
  const bool in_path = has_labels_ && archives_.size() > 1;
  return ((in_path ? archive.parent_path() : archive) / path).string();
}

const ArchiveFiles::Entry* ArchiveFiles::find(std::string_view path) const {
  const auto found = std::ranges::lower_bound(
      entries_, path, {}, [this](const Entry& entry) { return this->path(entry); });
  return found != entries_.end() && this->path(*found) == path ? &*found : nullptr;
}

FileContent ArchiveFiles::read(std::string_view path, DecodingBudget::Claim* claim) const {
  const Entry& entry = *find(path);
  if (entry.bytes > kMaxFileBytes) {
    return {{data::ReadStatus::too_large, fmt::format("{} bytes", entry.bytes)}, {}};
  }
  if (entry.bytes == 0) return {{data::ReadStatus::empty, "zero bytes"}, {}};
  if (claim != nullptr) claim->grow(entry.bytes);
  if (entry.packing == Packing::held) return {{}, held_[entry.place]};
  archives_[entry.archive].check_unchanged();
  return unpacked(entry, claim);
}

FileContent ArchiveFiles::unpacked(const Entry& entry, DecodingBudget::Claim* claim) const {
  const ContainerFile& file = archives_[entry.archive];
  FileContent content{{}, std::vector<std::uint8_t>(entry.bytes)};
  if (entry.packing == Packing::plain) {
    file.read(entry.place, content.bytes);
    return content;
  }
  try {
    const std::uint64_t begin = zip_content(file, entry.place, entry.packed);
    if (entry.packing == Packing::zip_stored) {
      file.read(begin, content.bytes);
    } else {
      // What deflate cannot shrink grows by 5 bytes in 16,383 at most.
      if (entry.packed > entry.bytes + entry.bytes / 1024 + 4096) {
        return damaged_file("the archive has more bytes than it can need");
      }
      if (claim != nullptr) claim->grow(entry.packed);
      std::vector<std::uint8_t> packed(entry.packed);
      file.read(begin, packed);
      if (!inflate_to(packed, content.bytes)) {
        return damaged_file("its bytes in the archive are damaged, or not as many as it says");
      }
    }
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    return damaged_file(error.what());
  }
  if (crc32_z(0, content.bytes.data(), content.bytes.size()) != entry.checksum) {
    return damaged_file("it has not the checksum that the archive has for it");
  }
  return content;
}

}  // namespace cputrain::datasets
