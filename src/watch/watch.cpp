#include "watch/watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"
#include "system/clock.h"
#include "system/tell.h"
#include "system/usage/cpu_seconds.h"
#include "watch/bounded_calls.h"
#include "watch/lookout.h"
#include "watch/narrator.h"
#include "watch/own_clock.h"

namespace cputrain::watch {
namespace {

/// So long rank 0 finishes what it writes before it ends, and for a word of a stall to be said.
constexpr double kFinish = 3, kSaying = 0.5;
/// So long others leave rank 0 for all of that.
constexpr double kGrace = kFinish + 4 * kSaying;

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

double thread_seconds(pthread_t thread) {
  clockid_t clock{};
  timespec time{};
  if (::pthread_getcpuclockid(thread, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Whoever speaks adds whole lines, so that several ranks may. Nobody hears where it cannot.
void append_line(const std::filesystem::path& folder, std::string line) {
  const std::filesystem::path path = folder / kStallsName;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int file = ::open(path.c_str(), kFlags, 0666);
  if (file < 0) return;
  struct stat status {};
  line += '\n';
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    static_cast<void>(::write(file, line.data(), line.size()) < 0);
  }
  ::close(file);
}

/// What a rank reports of itself, from its pulse.
class OwnAccount {
 public:
  OwnAccount(std::shared_ptr<comm::Pulse> pulse, const Limits& limits)
      : pulse_(std::move(pulse)), sample_(limits.sample()) {}

  Report look(double now) {
    const std::uint64_t moves = pulse_->moves();
    if (std::exchange(moves_, moves) != moves) since_ = now;
    if (now - sampled_ >= sample_) look_at_cpu(now);
    return {.place = pulse_->place(),
            .waits = pulse_->waits(),
            .still = now - since_,
            .idle = now - std::max(since_, busy_)};
  }

 private:
  void look_at_cpu(double now) {
    // One that hangs uses next to nothing, for threads that wait for signals and the like.
    constexpr double kBusy = 0.01;
    // The watch itself has some thousand words a second to answer in a job of so many ranks.
    const double process = system::cpu_seconds() - thread_seconds(::pthread_self());
    const double working = thread_seconds(pulse_->working_thread());
    // A helper that waits for other ranks spins, which is no work.
    const double used = pulse_->helper_waits() ? working - working_ : process - process_;
    if (used >= kBusy * (now - sampled_)) busy_ = now;
    sampled_ = now;
    process_ = process;
    working_ = working;
  }

  std::shared_ptr<comm::Pulse> pulse_;
  const double sample_;
  std::uint64_t moves_ = 0;
  double since_ = 0, busy_ = 0, sampled_ = 0, process_ = 0, working_ = 0;
};

}  // namespace

class Watch::Thread {
 public:
  Thread(comm::Communicator& communicator, const comm::NodeMap& map, const Limits& limits)
      : limits_(limits),
        socket_(map.nodes() > 1),
        account_(communicator.share_pulse(), limits),
        clock_(system::steady_seconds(), 2 * limits.beat()) {
    std::promise<Team> made;
    std::shared_future<Team> team = made.get_future().share();
    // A rank that can have no thread is one without a socket.
    if (socket_.is_open()) start(team);
    made.set_value(gather_team(communicator, map, socket_));
  }
  ~Thread() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    socket_.send({this_machine(), socket_.port()}, {});  // wakes it
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void write_into(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    folder_ = folder;
  }
  void finish_with(std::function<void(double)> finish) {
    const std::lock_guard lock(mutex_);
    finish_ = std::move(finish);
  }

 private:
  void start(const std::shared_future<Team>& team) {
    try {
      thread_ = std::jthread([this, team](const std::stop_token& stop) {
        ::pthread_setname_np(::pthread_self(), "watch");  // for ps and strace
        try {
          team_ = team.get();
        } catch (const std::future_error&) {
          return;  // the ranks could not gather
        }
        run(stop);
      });
    } catch (const std::system_error&) {
      socket_.close();
    }
  }

  void run(const std::stop_token& stop) {
    Lookout lookout(team_, socket_, limits_);
    Narrator narrator(team_, limits_);
    // Not all ranks at once, which have just met: an observer's socket holds some hundred words.
    double due = clock_.look(system::steady_seconds()) + limits_.beat() * team_.rank / team_.size();
    while (!stop.stop_requested()) {
      const double now = clock_.look(system::steady_seconds());
      lookout.listen(now);
      if (lookout.verdict()) end(*lookout.verdict());
      if (now >= due) {
        due = now + limits_.beat();
        look(lookout, narrator, now);
      }
      socket_.wait(due - now);
    }
    lookout.farewell();
  }

  void look(Lookout& lookout, Narrator& narrator, double now) {
    constexpr double kAllAreHeard = 10;
    lookout.report(account_.look(now), now);
    const std::vector<RankView> views = lookout.views(now);
    if (team_.rank == 0 && now > kAllAreHeard) say(narrator.hear_hidden(views));
    Finding finding = find_stall(views, limits_);
    finding.ends = finding.ends && lookout.judges(now);
    if (lookout.speaks(now) || narrator.owes_end()) {
      if (finding.ends) lookout.pass_verdict(team_.rank == 0 ? kGrace : 0.5);
      say(narrator.hear(finding, now));
    }
    if (finding.ends) end(0);
  }

  void say(const std::optional<Word>& word) {
    if (!word) return;
    telling_.make([line = word->line] { system::tell(line); }, kSaying);
    const std::filesystem::path folder = this->folder();
    if (folder.empty()) return;
    nlohmann::ordered_json entry{{"time", system::unix_seconds()}};
    entry.update(word->entry);
    writing_.make([folder, line = json_text(entry)] { append_line(folder, line); }, kSaying);
  }

  std::filesystem::path folder() {
    const std::lock_guard lock(mutex_);
    return folder_;
  }

  /// Rank 0 ends last where it can, since the launcher then ends all.
  [[noreturn]] void end(double grace) {
    if (team_.rank == 0) {
      const std::lock_guard lock(mutex_);
      if (finish_) finish_(kFinish);
    } else {
      sleep_for(grace);
    }
    sleep_for(0.1);  // MPICH's launcher drops what ranks have said and it has not read yet
    ::_exit(static_cast<int>(ExitCode::unanswered));
  }

  const Limits limits_;
  Datagrams socket_;
  OwnAccount account_;
  OwnClock clock_;
  Team team_;
  BoundedCalls telling_, writing_;  // the run's disk may be what hangs
  std::mutex mutex_;
  std::filesystem::path folder_;
  std::function<void(double)> finish_;
  std::jthread thread_;  // last: it uses the others
};

Watch::Watch() = default;
Watch::~Watch() = default;
Watch::Watch(Watch&&) noexcept = default;
Watch& Watch::operator=(Watch&&) noexcept = default;

Watch::Watch(comm::Communicator& communicator, const comm::NodeMap& map, const Limits& limits) {
  if (communicator.size() > 1) thread_ = std::make_unique<Thread>(communicator, map, limits);
}

void Watch::write_into(const std::filesystem::path& folder) const {
  if (thread_) thread_->write_into(folder);
}

std::shared_ptr<void> Watch::finish_first(std::function<void(double)> finish) const {
  if (!thread_) return nullptr;
  thread_->finish_with(std::move(finish));
  return {thread_.get(), [](Thread* thread) { thread->finish_with({}); }};
}

}  // namespace cputrain::watch
