#include "training/run/log_marks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "logging/reporters.h"
#include "runfiles/metrics.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "training/run/run_folder.h"

namespace cputrain::training {
namespace {

namespace fs = std::filesystem;

/// Those of run_files() that grow line by line; the others are written anew as a whole.
std::vector<std::string> growing_files() {
  std::vector<std::string> files = logging::log_format_files();
  files.insert(files.end(), {runfiles::kMetricsName, "training.csv"});
  return files;
}
constexpr std::string_view kEventFile = "events.out.tfevents.";

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

/// Sizes in bytes by the name in the run's folder.
using Sizes = std::map<std::string, std::uint64_t>;

bool is_log(std::string_view name) {
  if (std::ranges::count(growing_files(), name) > 0) return true;
  const auto slash = name.find('/');
  if (slash == name.npos) return false;
  const auto folder = name.substr(0, slash), file = name.substr(slash + 1);
  return std::ranges::find(kEventFolders, folder) != std::end(kEventFolders) &&
         file.starts_with(kEventFile) &&
         file.find_first_of(std::string_view("/\0", 2)) == file.npos;
}

/// A link or a pipe in the place of a log is not cut.
void add(Sizes& sizes, const fs::path& run, const std::string& name) {
  if (!is_log(name) || !system::is_own_file(run / name)) return;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(run / name, error);
  if (!error) sizes[name] = size;
}

Sizes logs_of(const fs::path& run) {
  Sizes sizes;
  for (const std::string& name : growing_files()) add(sizes, run, name);
  for (const char* folder : kEventFolders) {
    std::error_code error;
    if (fs::is_symlink(run / folder, error)) continue;
    for (fs::directory_iterator entry(run / folder, error), end; !error && entry != end;
         entry.increment(error)) {
      add(sizes, run, std::string(folder) + "/" + entry->path().filename().string());
    }
  }
  return sizes;
}

[[noreturn]] void wrong(const std::string& what) {
  fail(ExitCode::data, "the checkpoint's lengths of logs are wrong: " + what +
                           " (cut there, they would lose lines); take another checkpoint");
}

Sizes checked(const nlohmann::ordered_json& marks) {
  if (!marks.is_object()) wrong("they are no object");
  Sizes sizes;
  for (const auto& [name, size] : marks.items()) {
    if (!is_log(name)) wrong(printable(name) + " is no log of a run");
    // A negative number is a very large one here.
    if (!size.is_number_integer() || size.get<std::uint64_t>() > kMostBytes) {
      wrong(printable(name) + " cannot be so long");
    }
    sizes[name] = size.get<std::uint64_t>();
  }
  return sizes;
}

/// The bytes of a text up to the end of its last whole line.
std::uint64_t whole_lines(const fs::path& path) {
  constexpr std::uint64_t kLongest = 1 << 20;  // bytes of a line
  const system::RegularFile file(path);
  const std::uint64_t begin = file.size() > kLongest ? file.size() - kLongest : 0;
  std::string end(file.size() - begin, '\0');
  file.read_at(begin, std::as_writable_bytes(std::span(end)));
  const auto last = end.rfind('\n');
  return last == end.npos ? begin : begin + last + 1;
}

}  // namespace

nlohmann::ordered_json log_marks(const fs::path& run) {
  auto marks = nlohmann::ordered_json::object();
  for (const auto& [name, size] : logs_of(run)) marks[name] = size;
  return marks;
}

void check_marks(const nlohmann::ordered_json& marks) { checked(marks); }

std::vector<std::string> cut_logs(const fs::path& run, const nlohmann::ordered_json& marks) {
  const Sizes wanted = checked(marks), there = logs_of(run);
  std::vector<std::string> warnings;
  for (const auto& [name, size] : wanted) {
    const auto found = there.find(name);
    if (found == there.end()) {
      std::error_code ignored;
      const bool is_other =
          fs::symlink_status(run / name, ignored).type() != fs::file_type::not_found;
      warnings.push_back(
          name +
          (is_other ? " is a link, or no regular file, and is not gone on with" : " is missing") +
          ": it will not have the steps up to the checkpoint");
    } else if (found->second < size) {
      warnings.push_back(fmt::format("{} has lost {} of its bytes up to the checkpoint", name,
                                     with_commas(size - found->second)));
      if (name.find('/') == name.npos) system::cut_file(run / name, whole_lines(run / name));
    } else if (found->second > size) {
      system::cut_file(run / name, size);
    }
  }
  for (const auto& [name, size] : there) {
    if (wanted.contains(name)) continue;
    if (::unlink((run / name).c_str()) == 0) continue;
    if (!system::is_lacking(errno)) system::cannot_write(run / name, errno);
    system::cut_file(run / name, 0);
  }
  return warnings;
}

void sync_logs(const fs::path& run) {
  for (const auto& [name, size] : logs_of(run)) system::sync_file(run / name);
  system::sync_folder(run);
  for (const char* folder : kEventFolders) {
    std::error_code ignored;
    if (fs::is_directory(run / folder, ignored)) system::sync_folder(run / folder);
  }
}

}  // namespace cputrain::training
