#include "system/usage/disk_writes.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <fstream>
#include <sstream>
#include <string>

namespace cputrain::system {
namespace {

/// Those that lie on disks of this machine and have a device number of their own.
bool hides_its_disk(long kind) {
  constexpr long kZfs = 0x2fc12fc1, kBcachefs = static_cast<long>(0xca451a4e);
  return kind == OVERLAYFS_SUPER_MAGIC || kind == static_cast<long>(BTRFS_SUPER_MAGIC) ||
         kind == kZfs || kind == kBcachefs;
}

long kind_of(const std::filesystem::path& folder) {
  struct statfs about {};
  return ::statfs(folder.c_str(), &about) == 0 ? static_cast<long>(about.f_type) : 0;
}

/// Writes that were completed, and flushes, which older systems do not count. They are fields of
/// Documentation/admin-guide/iostats.rst, behind those that name the disk.
std::uint64_t completed_in(std::istringstream line) {
  constexpr int kWrites = 5, kFlushes = 16;
  std::uint64_t sum = 0, value = 0;
  for (int field = 1; field <= kFlushes && line >> value; ++field) {
    if (field == kWrites || field == kFlushes) sum += value;
  }
  return sum;
}

}  // namespace

DiskWrites::DiskWrites(const std::filesystem::path& folder, const std::filesystem::path& root,
                       std::optional<long> kind) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return;
  std::filesystem::path disk =
      root / fmt::format("sys/dev/block/{}:{}/stat", major(about.st_dev), minor(about.st_dev));
  std::error_code ignored;
  if (std::filesystem::exists(disk, ignored)) {
    counters_ = std::move(disk);
  } else if (hides_its_disk(kind ? *kind : kind_of(folder))) {
    counters_ = root / "proc/diskstats";
  }
}

bool DiskWrites::is_one() const { return counters_.filename() == "stat"; }

std::uint64_t DiskWrites::completed() const {
  std::uint64_t sum = 0;
  std::ifstream lines(counters_);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string skipped;
    if (!is_one()) fields >> skipped >> skipped >> skipped;
    sum += completed_in(std::move(fields));
  }
  return sum;
}

}  // namespace cputrain::system
