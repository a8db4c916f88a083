#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>

#include "core/casts.h"
#include "core/error.h"
#include "datasets/archives/archive_entry.h"
#include "datasets/decode/limits.h"
#include "system/late_library.h"

namespace cputrain::datasets {
namespace {

// clang-format off
#define CPUTRAIN_ARCHIVE_CALLS(call) \
  call(archive_entry_filetype) call(archive_entry_hardlink) call(archive_entry_is_encrypted) \
  call(archive_entry_pathname) call(archive_entry_size) call(archive_entry_sparse_count) \
  call(archive_error_string) call(archive_filter_bytes) call(archive_read_data) \
  call(archive_read_free) call(archive_read_new) call(archive_read_next_header) \
  call(archive_read_open1) call(archive_read_set_callback_data) \
  call(archive_read_set_read_callback) call(archive_read_set_skip_callback) \
  call(archive_read_support_filter_bzip2) call(archive_read_support_filter_gzip) \
  call(archive_read_support_filter_xz) call(archive_read_support_filter_zstd) \
  call(archive_read_support_format_tar) call(archive_set_error)
// clang-format on

/// Functions of libarchive that are called here. The first archive loads it: with ICU, libxml2 and
/// others behind it, it would lengthen each start.
struct ArchiveCalls {
  CPUTRAIN_ARCHIVE_CALLS(CPUTRAIN_LATE_MEMBER)
};

ArchiveCalls load_libarchive() {
  const system::LateLibrary library({CPUTRAIN_ARCHIVE_FILES});
  ArchiveCalls table;
  CPUTRAIN_ARCHIVE_CALLS(CPUTRAIN_LATE_FIND)
  return table;
}

/// std::runtime_error where it cannot be loaded.
const ArchiveCalls& libarchive() {
  static const ArchiveCalls loaded = load_libarchive();
  return loaded;
}

struct FreeTar {
  void operator()(archive* handle) const { libarchive().archive_read_free(handle); }
};
using TarHandle = std::unique_ptr<archive, FreeTar>;

/// A way to compress a whole archive, by its first bytes.
struct Compression {
  std::string_view name, sign;
  int (*ArchiveCalls::*support)(archive*);
};

constexpr std::array<Compression, 4> kCompressions{
    {{"gzip", "\x1f\x8b", &ArchiveCalls::archive_read_support_filter_gzip},
     {"xz",
      "\xFD"
      "7zXZ",
      &ArchiveCalls::archive_read_support_filter_xz},
     {"zstd", "\x28\xB5\x2F\xFD", &ArchiveCalls::archive_read_support_filter_zstd},
     {"bzip2", "BZh", &ArchiveCalls::archive_read_support_filter_bzip2}}};

const Compression* compression_of(const ContainerFile& file) {
  std::array<std::uint8_t, 8> head{};
  const auto there = std::span(head).first(std::min(file.size(), head.size()));
  file.read(0, there);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), there.size());
  const auto found = std::ranges::find_if(
      kCompressions, [&](const Compression& one) { return text.starts_with(one.sign); });
  return found == kCompressions.end() ? nullptr : &*found;
}

/// The archive's bytes for libarchive, which skips what it need not see. An exception may not pass
/// through it.
struct TarInput {
  const ContainerFile& file;
  std::vector<std::uint8_t> piece;
  std::size_t at = 0;
  std::exception_ptr failure{};
};

la_ssize_t next_tar_piece(archive* handle, void* data, const void** bytes) {
  TarInput& input = *static_cast<TarInput*>(data);
  const std::size_t count = std::min(input.piece.size(), input.file.size() - input.at);
  try {
    input.file.read(input.at, std::span(input.piece).first(count));
  } catch (...) {
    input.failure = std::current_exception();
    libarchive().archive_set_error(handle, EIO, "it cannot be read");
    return ARCHIVE_FATAL;
  }
  input.at += count;
  *bytes = input.piece.data();
  return static_cast<la_ssize_t>(count);
}

la_int64_t skip_in_tar(archive*, void* data, la_int64_t request) {
  TarInput& input = *static_cast<TarInput*>(data);
  const std::size_t count = std::min(to_size(request), input.file.size() - input.at);
  input.at += count;
  return static_cast<la_int64_t>(count);
}

EntryKind kind_of(archive_entry* entry) {
  if (libarchive().archive_entry_hardlink(entry) != nullptr) return EntryKind::link;
  switch (libarchive().archive_entry_filetype(entry)) {
    case AE_IFREG:
      return EntryKind::file;
    case AE_IFDIR:
      return EntryKind::folder;
    case AE_IFLNK:
      return EntryKind::link;
    default:
      return EntryKind::device;
  }
}

class TarReader {
 public:
  TarReader(const ContainerFile& file, HeldFiles& held)
      : file_(file),
        held_(held),
        compression_(compression_of(file)),
        // A header with its extensions; what follows it is mostly skipped.
        input_{file, std::vector<std::uint8_t>(compression_ ? 1 << 18 : 1 << 12)},
        handle_(libarchive().archive_read_new()) {
    if (!handle_) throw std::bad_alloc();
    libarchive().archive_read_support_format_tar(handle_.get());
    // Another state than OK: by a program, which would be started.
    if (compression_ != nullptr &&
        (libarchive().*compression_->support)(handle_.get()) != ARCHIVE_OK) {
      fail(ExitCode::data,
           fmt::format("'{0}' is compressed by {1}, which this build's libarchive does not read; "
                       "unpack it: tar -xf {0}",
                       file_.path(), compression_->name));
    }
    libarchive().archive_read_set_read_callback(handle_.get(), next_tar_piece);
    libarchive().archive_read_set_skip_callback(handle_.get(), skip_in_tar);
    libarchive().archive_read_set_callback_data(handle_.get(), &input_);
    check(libarchive().archive_read_open1(handle_.get()));
  }

  void read(const std::function<void(const ArchiveEntry&)>& use) {
    for (;;) {
      archive_entry* entry = nullptr;
      const int state = libarchive().archive_read_next_header(handle_.get(), &entry);
      if (state == ARCHIVE_EOF) return;
      check(state);
      ArchiveEntry told = told_by(entry);
      if (compression_ != nullptr && told.kind == EntryKind::file && is_read(told.name)) {
        hold(told, use);
      } else {
        use(told);
      }
    }
  }

 private:
  /// A warning is mostly of a name that is not ASCII, which is taken as it is.
  void check(int state) const {
    if (input_.failure) std::rethrow_exception(input_.failure);
    if (state == ARCHIVE_OK || state == ARCHIVE_WARN) return;
    const char* what = libarchive().archive_error_string(handle_.get());
    fail_damaged(file_.path(), what != nullptr ? what : "libarchive does not say why");
  }

  ArchiveEntry told_by(archive_entry* entry) const {
    const char* name = libarchive().archive_entry_pathname(entry);
    ArchiveEntry told;
    told.name = name != nullptr ? name : "";
    told.kind = kind_of(entry);
    if (told.name.ends_with('/')) told.kind = EntryKind::folder;
    told.encrypted = libarchive().archive_entry_is_encrypted(entry) != 0;
    told.place = static_cast<std::uint64_t>(libarchive().archive_filter_bytes(handle_.get(), 0));
    if (told.kind == EntryKind::file) {
      const la_int64_t bytes = libarchive().archive_entry_size(entry);
      if (bytes < 0) fail_damaged(file_.path(), fmt::format("'{}' has no size", told.name));
      told.bytes = told.packed = static_cast<std::uint64_t>(bytes);
      const bool holes = libarchive().archive_entry_sparse_count(entry) > 0;
      if (holes && compression_ == nullptr) told.packing = Packing::other;
    }
    told.unpacked = told.place + told.bytes;
    if (compression_ != nullptr) told.packed = 0;  // nothing of it is read there again
    return told;
  }

  /// It is looked at before its bytes are unpacked.
  void hold(ArchiveEntry& told, const std::function<void(const ArchiveEntry&)>& use) {
    told.packing = Packing::held;
    told.place = held_.count();
    const std::string name(told.name);
    const std::uint64_t bytes = told.bytes;
    use(told);
    std::vector<std::uint8_t>& file = held_.add(bytes > kMaxFileBytes ? 0 : bytes, file_.path());
    if (file.empty()) return;
    const la_ssize_t got = libarchive().archive_read_data(handle_.get(), file.data(), file.size());
    if (got < 0) check(static_cast<int>(got));
    if (got < 0 || to_size(got) < file.size()) {
      fail_damaged(file_.path(), fmt::format("'{}' ends too early", name));
    }
  }

  const ContainerFile& file_;
  HeldFiles& held_;
  const Compression* compression_;
  TarInput input_;
  TarHandle handle_;
};

}  // namespace

void for_each_tar_entry(const ContainerFile& file, HeldFiles& held,
                        const std::function<void(const ArchiveEntry&)>& use) {
  try {
    libarchive();
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("'{0}' is no zip archive, and any other needs {1}, or unpack "
                                     "the archive: tar -xf {0}",
                                     file.path(), error.what()));
  }
  TarReader(file, held).read(use);
}

std::string archive_library() { return ARCHIVE_VERSION_STRING; }

}  // namespace cputrain::datasets
