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

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "core/error.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "system/file_lock.h"
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

struct Removed {
  const fs::path& folder;
  ~Removed() { remove_folder(folder); }
};

}  // namespace

Writer::Writer(fs::path run, std::uint64_t step) : run_(std::move(run)), step_(step) {
  // Another process that clears up may take the folder away before there is a lock in it.
  constexpr int kTries = 1000;
  for (int i = 0;; ++i) {
    temporary_ = new_aside(run_, step_);
    if (::mkdir(temporary_.c_str(), 0777) != 0) system::cannot_write(temporary_, errno);
    manifest_ = system::open_locked(temporary_ / kManifestName);
    if (manifest_ >= 0) return;
    const int error = errno;
    const Removed in_the_end{temporary_};
    if (error != ENOENT || i == kTries) system::cannot_write(temporary_, error);
  }
}

Writer::~Writer() {
  if (manifest_ >= 0) system::close_locked(manifest_);
  if (!temporary_.empty()) remove_folder(temporary_);
}

/// The folder that is there gets another name: ours, or where the file system cannot exchange two
/// names, a new one. Between two renames the older checkpoints are all that there is for a moment.
void Writer::take_place(const fs::path& folder) {
  constexpr int kHere = AT_FDCWD;
  if (::renameat2(kHere, temporary_.c_str(), kHere, folder.c_str(), RENAME_EXCHANGE) == 0) return;
  if (!system::is_lacking(errno, {EXDEV})) system::cannot_write(folder, errno);
  const fs::path aside = new_aside(run_, step_);
  if (::rename(folder.c_str(), aside.c_str()) == 0) {
    try {
      move_folder(temporary_, folder);
    } catch (const Error&) {
      static_cast<void>(::rename(aside.c_str(), folder.c_str()) == 0);  // better than none
      throw;
    }
    temporary_ = aside;
    return;
  }
  if (!system::is_lacking(errno, {EXDEV})) system::cannot_write(folder, errno);
  remove_folder(folder);  // a lower layer's of overlayfs, for one, can get no other name
  move_folder(std::exchange(temporary_, {}), folder);  // ours stays, whatever happens
}

void Writer::commit() {
  const auto files = written_files(temporary_);
  const fs::path manifest = temporary_ / kManifestName;
  system::GrowingFile(manifest, system::Begin::append).append(manifest_text(files));
  system::sync_file(manifest);
  system::sync_folder(temporary_);
  const fs::path folder = folder_of(run_, step_);
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(folder, ignored))) {
    take_place(folder);
  } else {
    move_folder(temporary_, folder);
    temporary_.clear();
  }
  system::sync_folder(run_);
  if (!temporary_.empty()) remove_folder(std::exchange(temporary_, {}));  // what was there before
}

}  // namespace cputrain::checkpoint
