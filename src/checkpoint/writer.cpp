#include "checkpoint/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "checkpoint/checksum.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "core/error.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "system/temporary.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Waits for what its writer may have left to the system, and reads it back.
ManifestFile written_file(const fs::path& path) {
  system::sync_file(path);
  try {
    const system::RegularFile file(path);
    return {path.filename().string(), file.size(), checksum_of(file)};
  } catch (const std::runtime_error& error) {
    fail(ExitCode::output,
         path.string() + " " + error.what() + " (a checkpoint would be lost); look at the disk");
  }
}

std::vector<ManifestFile> written_files(const fs::path& folder) {
  std::vector<ManifestFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == kManifestName) continue;
    if (!is_manifest_name(name) || files.size() == kMostFiles) {
      fail(ExitCode::internal, "a checkpoint cannot have the file " + printable(name));
    }
    files.push_back(written_file(entry->path()));
  }
  if (error) system::cannot_write(folder, error.value());
  std::ranges::sort(files, {}, &ManifestFile::name);
  return files;
}

/// Gives a folder the name of one that is there, which then has another name: that of `from`, or
/// where the file system cannot exchange two names, a new one. Between two renames the older
/// checkpoints are all that there is for a moment.
fs::path take_place(const fs::path& from, const fs::path& to, const fs::path& aside) {
  constexpr int kHere = AT_FDCWD;
  if (::renameat2(kHere, from.c_str(), kHere, to.c_str(), RENAME_EXCHANGE) == 0) return from;
  if (errno != EINVAL && errno != ENOSYS) system::cannot_write(to, errno);
  if (::rename(to.c_str(), aside.c_str()) != 0) system::cannot_write(to, errno);
  if (::rename(from.c_str(), to.c_str()) == 0) return aside;
  const int error = errno;
  static_cast<void>(::rename(aside.c_str(), to.c_str()) == 0);  // the old one is better than none
  system::cannot_write(to, error);
}

}  // namespace

Writer::Writer(fs::path run, std::uint64_t step) : run_(std::move(run)), step_(step) {
  // Another process that clears up may take the folder away before there is a lock in it.
  for (int error = ENOENT; manifest_ < 0; error = errno) {
    if (error != ENOENT) system::cannot_write(temporary_, error);
    temporary_ = new_aside(run_, step_);
    if (::mkdir(temporary_.c_str(), 0777) != 0) system::cannot_write(temporary_, errno);
    manifest_ = system::open_locked(temporary_ / kManifestName);
  }
}

Writer::~Writer() {
  if (manifest_ >= 0) ::close(manifest_);
  if (!temporary_.empty()) remove_folder(temporary_);
}

void Writer::commit() {
  const auto files = written_files(temporary_);
  const fs::path manifest = temporary_ / kManifestName;
  system::GrowingFile(manifest, system::Begin::append).append(manifest_text(files));
  system::sync_file(manifest);
  system::sync_folder(temporary_);
  const fs::path folder = folder_of(run_, step_);
  if (::rename(temporary_.c_str(), folder.c_str()) == 0) {
    temporary_.clear();
  } else if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
    temporary_ = take_place(temporary_, folder, new_aside(run_, step_));
  } else {
    system::cannot_write(folder, errno);
  }
  system::sync_folder(run_);
  if (!temporary_.empty()) remove_folder(std::exchange(temporary_, {}));  // what was there before
}

}  // namespace cputrain::checkpoint
