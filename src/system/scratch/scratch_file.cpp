#include "system/scratch/scratch_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.h"

namespace cputrain::system {
namespace {

std::vector<std::string> folders() {
  std::vector<std::string> list{"/var/tmp", "/tmp", "."};
  const char* chosen = std::getenv("TMPDIR");
  if (chosen && *chosen) list.insert(list.begin(), chosen);
  return list;
}

/// Files there take memory.
bool is_of_memory(const std::string& folder) {
  constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;  // linux/magic.h
  struct statfs facts {};
  return ::statfs(folder.c_str(), &facts) == 0 &&
         (static_cast<long>(facts.f_type) == kTmpfs || static_cast<long>(facts.f_type) == kRamfs);
}

/// Why it has no bytes, or nothing.
std::string map_new_file(const std::string& folder, std::size_t bytes,
                         std::span<std::byte>& mapped) {
  std::string path = scratch_name(folder);
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return std::strerror(errno);
  ::unlink(path.c_str());
  std::string failure = reserve(file, bytes);
  if (failure.empty()) {
    void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) {
      failure = std::strerror(errno);
    } else {
      mapped = {static_cast<std::byte*>(start), bytes};
    }
  }
  ::close(file);
  return failure;
}

}  // namespace

std::optional<std::uint64_t> space_in(const std::string& folder) {
  struct statvfs facts {};
  if (::statvfs(folder.c_str(), &facts) != 0) return std::nullopt;
  return std::uint64_t{facts.f_bavail} * facts.f_frsize;
}

std::uint64_t longest_file() {
  struct rlimit limit {};
  const bool known = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

/// Some space stays for others: a file system that is full stops all that write there.
std::string folder_with_room(std::uint64_t bytes, Storage storage) {
  if (bytes > longest_file()) return {};
  for (const std::string& folder : folders()) {
    if (::access(folder.c_str(), W_OK | X_OK) != 0) continue;
    if (storage == Storage::disk && is_of_memory(folder)) continue;
    if (space_in(folder).value_or(0) >= bytes + bytes / 20) return folder;
  }
  return {};
}

std::string scratch_name(const std::string& folder) { return folder + "/cputrain-images-XXXXXX"; }

std::string reserve(int descriptor, std::uint64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  return error == 0 ? "" : std::strerror(error);
}

ScratchFile::ScratchFile(const std::string& folder, std::size_t bytes) {
  if (bytes == 0) return;
  const std::string failure = map_new_file(folder, bytes, bytes_);
  if (failure.empty()) return;
  fail(ExitCode::usage, "a file of " + std::to_string(bytes >> 20) + " MiB in " + folder +
                            " cannot be had: " + failure +
                            " (images that do not fit into memory were to lie there); free space, "
                            "name another folder in TMPDIR, or use --cache none");
}

ScratchFile::~ScratchFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace cputrain::system
