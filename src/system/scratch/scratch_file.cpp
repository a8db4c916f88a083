#include "system/scratch/scratch_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "system/file_system.h"

namespace cputrain::system {
namespace {

/// The folder that TMPDIR names, or nothing.
std::string chosen_folder() {
  const char* chosen = std::getenv("TMPDIR");
  return chosen ? chosen : "";
}

std::vector<std::string> folders() {
  std::vector<std::string> list{"/var/tmp", "/tmp", "."};
  if (std::string chosen = chosen_folder(); !chosen.empty()) {
    list.insert(list.begin(), std::move(chosen));
  }
  return list;
}

/// Files there take memory.
bool is_of_memory(const std::string& folder) {
  constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;  // linux/magic.h
  struct statfs facts {};
  return ::statfs(folder.c_str(), &facts) == 0 &&
         (static_cast<long>(facts.f_type) == kTmpfs || static_cast<long>(facts.f_type) == kRamfs);
}

std::string why_no_such_file(std::uint64_t bytes) {
  if (bytes <= longest_file()) return {};
  return "'ulimit -f' lets no file be longer than " + bytes_text(longest_file());
}

/// errno, 0 for success.
int write_zeros(int descriptor, std::uint64_t bytes) {
  const std::vector<char> zeros(std::size_t{1} << 20);
  for (std::uint64_t done = 0; done < bytes;) {
    const auto piece = std::min<std::uint64_t>(zeros.size(), bytes - done);
    const ssize_t written = ::pwrite(descriptor, zeros.data(), piece, static_cast<off_t>(done));
    if (written < 0 && errno != EINTR) return errno;
    done += static_cast<std::uint64_t>(std::max<ssize_t>(written, 0));
  }
  return 0;
}

/// Why it has no bytes, or nothing.
std::string map_new_file(const std::string& folder, std::size_t bytes,
                         std::span<std::byte>& mapped) {
  std::string path = scratch_name(folder);
  const Descriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file.is_open()) return std::strerror(errno);
  ::unlink(path.c_str());
  std::string failure = reserve(file.number(), bytes);
  if (failure.empty()) {
    void* const start =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    if (start == MAP_FAILED) {
      failure = std::strerror(errno);
    } else {
      mapped = {static_cast<std::byte*>(start), bytes};
    }
  }
  return failure;
}

/// FUSE has file systems whose files cannot be mapped, or not for several processes to write.
std::string why_unmappable(const std::string& folder) {
  std::span<std::byte> page;
  const std::string failure = map_new_file(folder, 1, page);
  if (!page.empty()) ::munmap(page.data(), page.size());
  return failure;
}

/// Why the folder is passed over, or nothing. Some space stays for others: a file system that is
/// full stops all that write there.
std::string why_not(const std::string& folder, std::uint64_t bytes, bool on_disk) {
  const std::string name = folder == "." ? "the working folder" : folder;
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return name + " cannot be written to (" + std::strerror(errno) + ")";
  }
  if (on_disk && is_of_memory(folder)) return name + " lies in memory";
  const std::uint64_t wanted = bytes + bytes / 20, space = space_in(folder).value_or(wanted);
  if (space < wanted) return name + " has " + bytes_text(space) + " free of " + bytes_text(wanted);
  const std::string failure = why_unmappable(folder);
  return failure.empty() ? "" : name + " has no files that can be mapped (" + failure + ")";
}

}  // namespace

std::optional<std::uint64_t> space_in(const std::string& folder) {
  struct statvfs facts {};
  if (::statvfs(folder.c_str(), &facts) != 0 || facts.f_blocks == 0) return std::nullopt;
  return std::uint64_t{facts.f_bavail} * facts.f_frsize;
}

std::uint64_t longest_file() {
  struct rlimit limit {};
  const bool known = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

std::string folder_with_room(std::uint64_t bytes, bool on_disk) {
  if (!why_no_such_file(bytes).empty()) return {};
  for (const std::string& folder : folders()) {
    if (why_not(folder, bytes, on_disk).empty()) return folder;
  }
  return {};
}

std::string why_no_folder(std::uint64_t bytes, bool on_disk) {
  if (std::string limit = why_no_such_file(bytes); !limit.empty()) return limit;
  std::vector<std::string> reasons;
  for (const std::string& folder : folders()) {
    std::string reason = why_not(folder, bytes, on_disk);
    if (reason.empty()) return {};
    reasons.push_back(std::move(reason));
  }
  return join(reasons, ", ");
}

std::string why_not_tmpdir(std::uint64_t bytes, bool on_disk) {
  const std::string folder = chosen_folder();
  return folder.empty() ? "" : why_not(folder, bytes, on_disk);
}

std::string scratch_name(const std::string& folder) { return folder + "/cputrain-images-XXXXXX"; }

std::string reserve(int descriptor, std::uint64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (is_lacking(error, {ENODEV, EPERM})) error = write_zeros(descriptor, bytes);
  return error == 0 ? "" : error_text(error);
}

void read_ahead(std::span<const std::uint8_t> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

void wait_for_pages(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kSmallestPage = 4096;
  const auto touch = [&](std::size_t i) {
    (void)*static_cast<const volatile std::uint8_t*>(&bytes[i]);
  };
  for (std::size_t i = 0; i < bytes.size(); i += kSmallestPage) touch(i);
  if (!bytes.empty()) touch(bytes.size() - 1);
}

ScratchFile::ScratchFile(const std::string& folder, std::size_t bytes) {
  if (bytes == 0) return;
  const std::string failure = map_new_file(folder, bytes, bytes_);
  if (failure.empty()) return;
  fail(ExitCode::usage, "a file of " + std::to_string(bytes >> 20) + " MiB in " + folder +
                            " cannot be had: " + failure +
                            " (images that do not fit into memory were to lie there); name "
                            "another folder in TMPDIR, or use --cache none");
}

ScratchFile::~ScratchFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace cputrain::system
