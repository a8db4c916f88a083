#include "backends/mpi/start_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <system_error>

#include "core/casts.h"
#include "core/error.h"
#include "core/text.h"
#include "system/clock.h"
#include "system/output.h"
#include "system/print.h"

namespace cputrain::mpi {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kArrived = "arrived";

/// "rank 2", "ranks 2, 5"
std::string ranks_text(const std::set<int>& ranks) {
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "Missing ranks: ") + join(numbers, ", ");
}

/// N of a name such as "pid.N", from 0; nothing for other names.
std::optional<pid_t> number_of(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

/// For a job whose ranks are all on this machine.
std::set<int> absent_ranks(const placement::Launcher& launcher, const Arrivals& arrivals) {
  std::set<int> absent;
  for (int rank = 0; rank < launcher.size; ++rank) {
    if (!arrivals.here.contains(rank)) absent.insert(rank);
  }
  return absent;
}

std::string who_is_missing(const placement::Launcher& launcher, const Arrivals& arrivals) {
  const int here = to_int(arrivals.here.size());
  if (!arrivals.stopped.empty()) {
    return fmt::format("{} came and {} no more", ranks_text(arrivals.stopped),
                       arrivals.stopped.size() == 1 ? "moves" : "move");
  }
  if (here == 0) return fmt::format("not all of {} processes have come", launcher.size);
  if (launcher.local_size < launcher.size) {
    if (here < launcher.local_size) {
      return fmt::format("{} of {} ranks of this machine never came", launcher.local_size - here,
                         launcher.local_size);
    }
    return fmt::format(
        "the {} ranks of this machine are here, others of {} did not come from their "
        "hosts",
        here, launcher.size);
  }
  const std::set<int> absent = absent_ranks(launcher, arrivals);
  if (absent.empty()) return fmt::format("all {} ranks are here, and MPI does not start", here);
  return ranks_text(absent) + " never came";
}

}  // namespace

std::string missing_text(const placement::Launcher& launcher, const Arrivals& arrivals,
                         double seconds) {
  return fmt::format(
      "MPI has not started for {:g} s (--stall start): {} (it may have ended before "
      "MPI_Init, or its host does not answer); see what it said above, and try the "
      "command with fewer ranks or hosts",
      seconds, who_is_missing(launcher, arrivals));
}

Arrivals read_arrivals(const fs::path& folder) {
  constexpr double kLately = 5;
  Arrivals arrivals;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto rank = number_of(std::string(kArrived) + "-", entry->path().filename().string());
    struct stat status {};
    if (!rank || ::stat(entry->path().c_str(), &status) != 0) continue;
    arrivals.here.insert(*rank);
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    if (to_double(now.tv_sec - status.st_mtim.tv_sec) > kLately) {
      arrivals.stopped.insert(*rank);
    }
  }
  return arrivals;
}

StartGuard::StartGuard(const placement::Launcher& launcher, std::optional<fs::path> folder,
                       double seconds)
    : launcher_(launcher), folder_(std::move(folder)) {
  if (seconds <= 0 || (launcher.size <= 1 && launcher.size_known)) return;
  show();
  try {
    thread_ = std::jthread([this, seconds] { run(seconds); });
  } catch (const std::system_error&) {  // a start without a guard is better than none
  }
}

StartGuard::~StartGuard() {
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
  }
  changed_.notify_all();
}

void StartGuard::run(double seconds) {
  ::pthread_setname_np(::pthread_self(), "start guard");
  constexpr double kMost = 2;  // seconds that a longer pause of this process or machine counts as
  system::OwnClock clock(system::steady_seconds(), kMost);
  std::unique_lock lock(mutex_);
  while (clock.look(system::steady_seconds()) < seconds) {
    if (changed_.wait_for(lock, std::chrono::seconds(1), [this] { return started_; })) return;
    show();
  }
  end(seconds);
}

/// A file of this rank that is a second old at most.
void StartGuard::show() const {
  if (!folder_) return;
  const fs::path path = *folder_ / fmt::format("{}-{}", kArrived, launcher_.rank);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  ::futimens(file, nullptr);
  ::close(file);
}

/// With the mutex held: MPI's start, if it comes now, comes too late.
void StartGuard::end(double seconds) const {
  const Arrivals arrivals = folder_ ? read_arrivals(*folder_) : Arrivals{};
  std::set<int> moving = arrivals.here;
  for (const int rank : arrivals.stopped) moving.erase(rank);
  const bool speaks = moving.empty() ? launcher_.rank == 0 : *moving.begin() == launcher_.rank;
  if (speaks) system::tell("cputrain: " + missing_text(launcher_, arrivals, seconds));
  // MPICH's launcher drops what ranks have written and it has not read yet; silent ranks wait
  // longer, so that the message comes first.
  std::this_thread::sleep_for(std::chrono::milliseconds(speaks ? 100 : 1000));
  system::end_at_once(to_int(ExitCode::unanswered));
}

}  // namespace cputrain::mpi
