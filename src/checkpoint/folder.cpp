#include "checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <system_error>
#include <utility>

#include "checkpoint/manifest.h"
#include "core/error.h"
#include "core/text.h"
#include "system/file_lock.h"
#include "system/files.h"
#include "system/temporary.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;
using system::remove_quietly;

constexpr std::string_view kPrefix = "ckpt-";

bool is_left(const fs::path& folder) {
  const system::Descriptor opened(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return opened.is_open() && system::is_left(opened.number());
}

/// A new path in a run for what is written or removed: ".ckpt-000000120.tmp4711-99". It is hidden,
/// so that ckpt-* meets what is whole and nothing else.
fs::path new_aside(const fs::path& run, std::uint64_t step) {
  return run / ("." + name_of(step) + system::temporary_suffix());
}

/// Without MANIFEST a copy is not whole, so that comes last.
void copy_folder(const fs::path& from, const fs::path& to) {
  if (::mkdir(to.c_str(), 0777) != 0) system::cannot_write(to, errno);
  try {
    bool has_manifest = false;
    std::error_code error;
    for (fs::directory_iterator entry(from, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path name = entry->path().filename();
      has_manifest |= name == kManifestName;
      if (name != kManifestName) system::copy_durably(entry->path(), to / name);
    }
    if (error) system::cannot_write(to, error.value());
    if (has_manifest) system::copy_durably(from / kManifestName, to / kManifestName);
  } catch (const Error&) {
    remove_quietly(to);
    throw;
  }
}

/// Gives a checkpoint another name, which is free; where the file system cannot rename it, it is
/// copied. Error(output).
void move_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int error = errno;
  if (!system::is_lacking(error, {EXDEV})) system::cannot_write(to, error);
  system::do_without("rename of folders", to, error,
                     "checkpoints are copied, and a kill may leave half of one");
  copy_folder(from, to);
  remove_quietly(from);
}

/// A folder is in use as long as its MANIFEST is locked, which is the first thing in it.
void remove_if_abandoned(const fs::path& folder) {
  std::error_code ignored;
  if (fs::symlink_status(folder, ignored).type() != fs::file_type::directory) return;
  if (::rmdir(folder.c_str()) == 0) return;  // it was empty: a writer that lives makes another
  const system::AbandonedFile manifest(folder / kManifestName);
  if (manifest.is_missing() ? is_left(folder) : manifest.is_abandoned()) remove_quietly(folder);
}

/// The step of a folder that was written aside.
std::uint64_t step_aside(std::string_view name) {
  return step_of(name.substr(1, name.find(".tmp") - 1)).value_or(0);
}

/// Whether that is a name of new_aside().
bool is_aside(std::string_view name) {
  const std::string_view file = name.substr(0, name.find(".tmp"));
  return file.starts_with(".") && step_of(file.substr(1)) && system::is_temporary_of(name, file);
}

/// The newest whole one that killed processes left; empty where there is none, or a writer lives.
fs::path newest_whole_aside(const fs::path& run, const std::vector<std::string>& names) {
  std::vector<std::string> left;
  std::ranges::copy_if(names, std::back_inserter(left), is_aside);
  std::ranges::sort(left, std::greater(), step_aside);
  for (const std::string& name : left) {
    if (system::AbandonedFile(run / name / kManifestName).is_free() &&
        fault_of(run / name).empty()) {
      return run / name;
    }
  }
  return {};
}

}  // namespace

std::string name_of(std::uint64_t step) { return fmt::format("{}{:09}", kPrefix, step); }

std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto step = number_in<std::uint64_t>(name.substr(kPrefix.size()));
  return step && name == name_of(*step) ? step : std::nullopt;
}

fs::path folder_of(const fs::path& run, std::uint64_t step) { return run / name_of(step); }

std::vector<Found> list(const fs::path& run) {
  std::vector<Found> found;
  for (const std::string& name : system::names_in(run)) {
    const auto step = step_of(name);
    if (step && system::is_folder(run / name)) found.push_back({run / name, *step});
  }
  std::ranges::sort(found, std::greater(), &Found::step);
  return found;
}

void prune(const fs::path& run, std::uint64_t step, int keep) noexcept {
  try {
    int kept = 0;
    for (const Found& found : list(run)) {
      if (found.step <= step && kept++ < keep) continue;
      const fs::path aside = new_aside(run, found.step);
      const bool moved = ::rename(found.folder.c_str(), aside.c_str()) == 0;
      if (moved || system::is_lacking(errno, {EXDEV})) remove_quietly(moved ? aside : found.folder);
    }
  } catch (const std::exception&) {  // as what cannot be removed
  }
}

fs::path set_aside(const Found& found) {
  const fs::path plain = found.folder.parent_path() / ("damaged-" + name_of(found.step));
  fs::path to = plain;
  std::error_code ignored;
  for (int n = 2; fs::exists(fs::symlink_status(to, ignored)); ++n) {
    to = plain.string() + fmt::format("-{}", n);
  }
  try {
    move_folder(found.folder, to);
    return to;
  } catch (const Error&) {
    return found.folder;
  }
}

void give_name_back(const fs::path& run) noexcept {
  try {
    const fs::path whole = newest_whole_aside(run, system::names_in(run));
    if (whole.empty()) return;
    const std::uint64_t step = step_aside(whole.filename().string());
    const std::vector<Found> named = list(run);
    const auto is_as_new = [step](const Found& found) {
      return found.step >= step && fault_of(found.folder).empty();
    };
    if (std::ranges::any_of(named, is_as_new)) return;
    for (const Found& half : named) {
      if (half.step == step) set_aside(half);
    }
    move_folder(whole, folder_of(run, step));
  } catch (const std::exception&) {
  }
}

void remove_abandoned(const fs::path& run) noexcept {
  try {
    for (const std::string& name : system::names_in(run)) {
      if (is_aside(name)) remove_if_abandoned(run / name);
    }
  } catch (const std::exception&) {
  }
}

Writer::Writer(fs::path run, std::uint64_t step) : run_(std::move(run)), step_(step) {
  // Another process that clears up may take the folder away before there is a lock in it.
  constexpr int kTries = 1000;
  for (int i = 0;; ++i) {
    temporary_ = new_aside(run_, step_);
    if (::mkdir(temporary_.c_str(), 0777) != 0) system::cannot_write(temporary_, errno);
    manifest_ = system::open_locked(temporary_ / kManifestName);
    if (manifest_ >= 0) return;
    const int error = errno;
    const system::RemovedInTheEnd folder(temporary_);
    if (error != ENOENT || i == kTries) system::cannot_write(temporary_, error);
  }
}

Writer::~Writer() {
  if (manifest_ >= 0) system::close_locked(manifest_);
  if (!temporary_.empty()) remove_quietly(temporary_);
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
  remove_quietly(folder);  // a lower layer's of overlayfs, for one, can get no other name
  move_folder(std::exchange(temporary_, {}), folder);  // ours stays, whatever happens
}

void Writer::commit() {
  const std::string files = manifest_of(temporary_);
  const fs::path manifest = temporary_ / kManifestName;
  system::GrowingFile(manifest, system::Begin::append).append(files);
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
  if (!temporary_.empty()) remove_quietly(std::exchange(temporary_, {}));  // what was there before
}

}  // namespace cputrain::checkpoint
