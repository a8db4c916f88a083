#include "system/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "system/file_lock.h"
#include "system/temporary.h"

namespace cputrain::system {

namespace fs = std::filesystem;

namespace {

void write_all(int descriptor, std::span<const std::byte> bytes,
               const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// A device belongs to the whole machine and is never replaced, wherever its name is.
void refuse_device(const std::filesystem::path& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return;
  if (!S_ISCHR(about.st_mode) && !S_ISBLK(about.st_mode)) return;
  fail(ExitCode::output, path.string() +
                             " is a device (a file of its name would take its place); "
                             "name another place");
}

/// The first `most` bytes of a file, in pieces.
template <class Write>
void copy_bytes(const fs::path& from, std::uint64_t most, const Write& write) {
  std::vector<std::byte> piece(std::size_t{1} << 20);
  try {
    const RegularFile file(from);
    for (std::uint64_t done = 0; done < std::min<std::uint64_t>(most, file.size());) {
      const std::size_t got = file.read_some(done, piece);
      if (got == 0) return;
      write(std::span(piece).first(std::min<std::uint64_t>(got, most - done)));
      done += got;
    }
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    fail(ExitCode::output, "cannot copy " + from.string() + ": it " + error.what() +
                               " (it would be lost); look at the disk");
  }
}

constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();

/// Gives a whole file its name; where files cannot be renamed, its bytes are copied there. Where
/// this fails after an older file has gone, it stays where it is, with its lock given back, and the
/// error says so.
void publish(const fs::path& from, const fs::path& to, int& lock) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (!is_lacking(errno, {EXDEV})) cannot_write(to, errno);
  do_without("rename of files", to, errno, "a kill may leave files half written");
  std::error_code ignored;
  const bool replaces = fs::exists(fs::symlink_status(to, ignored));
  const Descriptor file(open_new(to, 0));
  try {
    if (!file.is_open()) cannot_write(to, errno);
    copy_bytes(from, kAll, [&](auto bytes) { write_all(file.number(), bytes, to); });
    sync_open_file(file.number(), to);
  } catch (const Error& error) {
    if (file.is_open()) ::unlink(to.c_str());  // half of it
    if (!replaces) throw;
    close_locked(std::exchange(lock, -1));
    fail(error.code(), std::string(error.what()) + "; the whole file is " + from.string() +
                           ": copy it before another run in this folder removes it");
  }
  ::unlink(from.c_str());
}

}  // namespace

void remove_abandoned(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  // A folder that cannot be looked into shows when it is written.
  for (const std::string& name : names_in(folder)) {
    if (!is_temporary_of(name, file)) continue;
    const AbandonedFile found(folder / name);
    if (found.is_abandoned()) ::unlink((folder / name).c_str());
  }
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  refuse_device(path_);
  remove_abandoned(path_);
  temporary_ = path_;
  temporary_ += temporary_suffix();
  descriptor_ = open_locked(temporary_);
  if (descriptor_ < 0) cannot_write(path_, errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close_locked(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_all(descriptor_, bytes, path_); }

void AtomicFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::size_t>(written);
  }
}

void AtomicFile::close(Durability durability) {
  if (durability == Durability::disk) sync_open_file(descriptor_, path_);
  // Until the file has its name it must not look abandoned.
  const int lock = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (lock < 0) cannot_write(path_, errno);
  // Network file systems may report a full disk only here.
  if (::close(std::exchange(descriptor_, lock)) != 0 && !is_lacking(errno, {EINTR})) {
    cannot_write(path_, errno);
  }
}

void AtomicFile::commit(Durability durability) {
  close(durability);
  publish(temporary_, path_, descriptor_);
  close_locked(std::exchange(descriptor_, -1));
  if (durability == Durability::disk) sync_folder(path_.parent_path());
}

bool AtomicFile::commit_new() {
  close(Durability::disk);
  int error = ::link(temporary_.c_str(), path_.c_str()) == 0 ? 0 : errno;
  // Some file systems have no links; the names of two that come at once then follow each other.
  if (is_lacking(error, {EPERM, EACCES, EMLINK, EXDEV})) {
    error = ::access(path_.c_str(), F_OK) == 0 ? EEXIST : 0;
    if (error == 0) publish(temporary_, path_, descriptor_);
  }
  ::unlink(temporary_.c_str());
  close_locked(std::exchange(descriptor_, -1));
  if (error != 0 && error != EEXIST) cannot_write(path_, error);
  sync_folder(path_.parent_path());
  return error == 0;
}

bool is_own_file(const std::filesystem::path& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

namespace {

/// Where nothing can be removed, a regular file with that one name is emptied.
int open_emptied(const fs::path& path, int flags) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0644);
  struct stat about {};
  if (descriptor < 0) return -1;
  const bool ours =
      ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink <= 1;
  if (ours && ::ftruncate(descriptor, 0) == 0) return descriptor;
  if (!ours) errno = EEXIST;
  ::close(descriptor);
  return -1;
}

}  // namespace

int open_new(const std::filesystem::path& path, int flags) {
  constexpr int kTries = 1000;  // others may make it, too
  for (int i = 0;; ++i) {
    refuse_device(path);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return is_lacking(errno) ? open_emptied(path, flags) : -1;
    }
    const int descriptor =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0644);
    if (descriptor >= 0 || errno != EEXIST || i == kTries) return descriptor;
  }
}

bool create_file(const std::filesystem::path& path, std::string_view text) {
  if (is_present(path)) return false;
  AtomicFile file(path);
  file.write(text);
  return file.commit_new();
}

void write_own_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

namespace {

/// A pipe, a device, or an open file of this process.
class FileInPlace final : public OutputFile {
 public:
  FileInPlace(fs::path path, int descriptor) : path_(std::move(path)), file_(descriptor) {
    if (!file_.is_open()) cannot_write(path_, errno);
  }

  void write(std::span<const std::byte> bytes) override { write_all(file_.number(), bytes, path_); }
  void commit(Durability) override {
    if (::close(file_.release()) != 0) cannot_write(path_, errno);
  }

 private:
  fs::path path_;
  Descriptor file_;
};

/// N of a path /proc/self/fd/N, where the links of /dev/stdout and /dev/fd end.
std::optional<int> own_descriptor(const fs::path& path) {
  std::error_code ignored;
  const fs::path folder = fs::canonical(path.parent_path(), ignored);
  if (folder != "/proc/" + std::to_string(::getpid()) + "/fd") return std::nullopt;
  const std::string name = path.filename().string();
  return number_in<int>(name);
}

/// Where its links end, whether something is there or not, or at a descriptor of this process.
fs::path end_of_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the system has it
  for (int i = 0; i < kMostLinks; ++i) {
    if (own_descriptor(path)) return path;
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path;
    path = path.parent_path() / target;
  }
  cannot_write(path, ELOOP);
}

bool is_written_in_place(const fs::path& end) {
  std::error_code ignored;
  const fs::file_status status = fs::status(end, ignored);
  return own_descriptor(end) || (fs::exists(status) && !fs::is_regular_file(status));
}

}  // namespace

std::unique_ptr<OutputFile> open_given_file(const std::filesystem::path& path) {
  const fs::path end = end_of_links(path);
  if (const auto descriptor = own_descriptor(end)) {
    return std::make_unique<FileInPlace>(path, ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0));
  }
  if (is_written_in_place(end)) {
    return std::make_unique<FileInPlace>(path, ::open(end.c_str(), O_WRONLY | O_CLOEXEC));
  }
  return std::make_unique<AtomicFile>(end);
}

void write_given_file(const std::filesystem::path& path, std::string_view text) {
  const auto file = open_given_file(path);
  file->write(text);
  file->commit(Durability::disk);
}

std::optional<std::filesystem::path> replaceable_file(const std::filesystem::path& path) {
  fs::path end = end_of_links(path);
  return is_written_in_place(end) ? std::nullopt : std::optional(std::move(end));
}

namespace {

/// One that can be gone on with; not open where there is none.
Descriptor open_to_append(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about {};
  if (!file.is_open()) {
    if (errno != ENOENT && errno != ELOOP && errno != ENXIO) cannot_write(path, errno);
    return file;
  }
  return ::fstat(file.number(), &about) == 0 && S_ISREG(about.st_mode) ? std::move(file)
                                                                       : Descriptor();
}

}  // namespace

GrowingFile::GrowingFile(std::filesystem::path path, Begin begin) : path_(std::move(path)) {
  if (begin == Begin::append) file_ = open_to_append(path_);
  if (!file_.is_open()) file_ = Descriptor(open_new(path_, O_APPEND));
  if (!file_.is_open()) cannot_write(path_, errno);
}

void GrowingFile::append(std::string_view bytes) {
  struct stat before {};
  const bool known = ::fstat(file_.number(), &before) == 0;
  try {
    write_all(file_.number(), std::as_bytes(std::span(bytes)), path_);
  } catch (const Error&) {
    // Half a piece would make the file unreadable; if even this fails, the error is enough.
    static_cast<void>(known && ::ftruncate(file_.number(), before.st_size) == 0);
    throw;
  }
}

void copy_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  AtomicFile file(to);
  copy_bytes(from, kAll, [&](auto bytes) { file.write(bytes); });
  file.commit();
}

void cut_file(const std::filesystem::path& path, std::uint64_t size) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open()) cannot_write(path, errno);
  const int error = ::ftruncate(file.number(), static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (error == 0) return sync_file(path);
  if (!is_lacking(error, {EPERM})) cannot_write(path, error);
  AtomicFile shorter(path);  // some file systems can only write files anew
  copy_bytes(path, size, [&](auto bytes) { shorter.write(bytes); });
  shorter.commit();
}

void try_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  std::vector<fs::path> absent;  // the deepest first
  for (fs::path p = fs::absolute(path);
       !fs::exists(fs::symlink_status(p, ignored)) && p.has_relative_path(); p = p.parent_path()) {
    absent.push_back(p);
  }
  struct Removed {
    const std::vector<fs::path>& folders;
    ~Removed() {
      std::error_code not_empty;
      for (const fs::path& folder : folders) fs::remove(folder, not_empty);
    }
  } const removed{absent};
  make_folder(path);
  const AtomicFile probe(path / "try");
}

}  // namespace cputrain::system
