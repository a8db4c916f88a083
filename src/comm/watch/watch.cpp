#include "comm/watch/watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/watch/lookout.h"
#include "comm/watch/narrator.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "system/clock.h"
#include "system/file_system.h"
#include "system/output.h"
#include "system/print.h"

namespace cputrain::watch {
namespace {

/// So long rank 0 finishes what it writes before it ends, and a line about a stall may take; a
/// second more what else it saves.
constexpr double kFinish = 3, kSaying = 0.5;
/// So long others leave rank 0 for all of that.
constexpr double kGrace = kFinish + 4 * kSaying;

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// A line of stalls.jsonl: the entry, with the time before it.
std::string stall_line(const nlohmann::ordered_json& entry) {
  nlohmann::ordered_json line{{"time", system::unix_seconds()}};
  line.update(entry);
  return json_text(line);
}

/// Adds it to that file of a folder. A failure is ignored. Whole lines are appended, so that
/// several ranks may print.
void append_stall(const std::filesystem::path& folder, std::string line) {
  const std::filesystem::path path = folder / kStallsName;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const system::Descriptor file(::open(path.c_str(), kFlags, 0666));
  struct stat status {};
  line += '\n';
  if (::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode)) {
    static_cast<void>(::write(file.number(), line.data(), line.size()) < 0);
  }
}

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
    socket_.send(address_of(this_machine(), socket_.port()), {});  // wakes it
  }

  void write_into(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    folder_ = folder;
  }
  void finish_with(Finish finish) {
    const std::lock_guard lock(mutex_);
    finish_ = std::move(finish);
  }
  void look_after(std::optional<StorageDuty> duty) {
    const std::lock_guard lock(storage_mutex_);
    if (duty) {
      storage_.emplace(std::move(*duty));
    } else {
      storage_.reset();
    }
  }

 private:
  /// Storage, while a training writes.
  struct Storage {
    explicit Storage(StorageDuty given) : duty(std::move(given)), account(duty.writings) {}
    StorageDuty duty;
    StorageAccount account;
    std::optional<StorageNarrator> narrator{};  // made by the watch's thread, which has the team
  };

  void start(const std::shared_future<Team>& team) {
    try {
      thread_ = std::jthread([this, team](const std::stop_token& stop) {
        ::pthread_setname_np(::pthread_self(), kThreadName);
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
      if (lookout.verdict()) end(team_.rank == 0, *lookout.verdict());
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
    Report own = account_.look(now);
    const StorageSilence storage = look_at_storage(lookout, own.place, now);
    // Who does not wait for others may wait for storage, which gets on.
    if (!own.waits) own.idle = std::min(own.idle, storage.idle);
    lookout.report(own, now);
    const std::vector<RankView> views = lookout.views(now);
    if (team_.rank == 0 && now > kAllAreHeard) say(narrator.hear_hidden(views));
    Finding finding = find_stall(views, limits_);
    finding.ends = finding.ends && lookout.judges(now);
    if (lookout.speaks(now) || narrator.owes_end()) {
      if (finding.ends) lookout.pass_verdict(team_.rank == 0 ? kGrace : 0.5);
      say(narrator.hear(finding, now));
    }
    if (finding.ends) end(team_.rank == 0 || lookout.speaks(now), 0);
  }

  void say(const std::optional<Word>& word) {
    if (!word) return;
    system::tell(word->line);
    const std::filesystem::path folder = this->folder();
    if (folder.empty()) return;
    const auto write = [folder, line = stall_line(word->entry)] { append_stall(folder, line); };
    const std::lock_guard lock(storage_mutex_);
    if (storage_) return storage_->duty.logs->post(write);
    writing_.make(write, kSaying);
  }

  std::filesystem::path folder() {
    const std::lock_guard lock(mutex_);
    return folder_;
  }

  /// The mutex keeps what is looked at from being destroyed.
  StorageSilence look_at_storage(Lookout& lookout, const comm::Place& place, double now) {
    const std::lock_guard lock(storage_mutex_);
    if (!storage_) return {};
    const StorageDuty& duty = storage_->duty;
    StorageSilence silence = storage_->account.look(now);
    silence.keeps_steps = duty.logs->is_full();
    if (!storage_->narrator) {
      storage_->narrator.emplace(duty.folder, team_.rank,
                                 team_.hosts[static_cast<std::size_t>(team_.rank)], limits_);
    }
    if (const auto word = storage_->narrator->hear(silence, place, now)) {
      system::tell(word->line);
      // Behind what waits for the same storage: it is there as soon as that is.
      duty.logs->post(
          [folder = duty.folder, line = stall_line(word->entry)] { append_stall(folder, line); });
    }
    if (duty.signals == nullptr) return silence;
    switch (storage_->account.farewell(silence, duty.signals->came(), now)) {
      case Farewell::none:
        break;
      case Farewell::announced:
        system::tell(
            "cputrain: storage does not answer ({}); the job ends without its last state once "
            "nothing gets on for {:g} s, and at once after another signal",
            join(silence.what, ", "), kStorageGrace);
        break;
      case Farewell::now:
        lookout.pass_verdict(kSaying);  // no rank may wait for this one
        end_without_storage(duty, silence);
    }
    return silence;
  }

  /// What was made since the newest checkpoint is lost.
  [[noreturn]] void end_without_storage(const StorageDuty& duty, const StorageSilence& silence) {
    const std::string newest = duty.newest();
    system::tell(
        "cputrain: storage did not answer for {:.0f} s ({} in {}), so the job ends without its "
        "last state; {}",
        silence.still, join(silence.what, ", "), duty.folder.string(),
        newest.empty() ? "there is no whole checkpoint of it"
                       : "the newest whole checkpoint is " + newest);
    const int code = duty.signals->stop_code();
    end_with(code == static_cast<int>(ExitCode::interrupted) ? code
                                                             : static_cast<int>(ExitCode::output));
  }

  /// Rank 0 ends last where it can, since the launcher then ends all.
  [[noreturn]] void end(bool finishes, double grace) {
    if (finishes) {
      const std::lock_guard lock(mutex_);  // what it saves is destroyed behind this
      BoundedCalls finishing;
      const auto finish = [call = finish_, folder = folder_] { call(kFinish, folder); };
      if (finish_) finishing.make(finish, kFinish + 2 * kSaying);
    } else {
      sleep_for(grace);
    }
    end_with(static_cast<int>(ExitCode::unanswered));
  }

  [[noreturn]] static void end_with(int code) {
    system::flush_output(kSaying, 2 * kSaying);
    sleep_for(0.1);  // MPICH's launcher drops what ranks have written and it has not read yet
    ::_exit(code);
  }

  const Limits limits_;
  Datagrams socket_;
  OwnAccount account_;
  system::OwnClock clock_;
  Team team_;
  BoundedCalls writing_;  // the run's disk may be what hangs
  std::mutex mutex_;
  std::filesystem::path folder_;
  Finish finish_;
  std::mutex storage_mutex_;
  std::optional<Storage> storage_;
  std::jthread thread_;  // last: it uses the others
};

Watch::Watch() = default;
Watch::~Watch() = default;
Watch::Watch(Watch&&) noexcept = default;
Watch& Watch::operator=(Watch&&) noexcept = default;

Watch::Watch(comm::Communicator& communicator, const comm::NodeMap& map, const Limits& limits) {
  thread_ = std::make_unique<Thread>(communicator, map, limits);
}

void Watch::write_into(const std::filesystem::path& folder) const {
  if (thread_) thread_->write_into(folder);
}

std::shared_ptr<void> Watch::finish_first(Finish finish) const {
  if (!thread_) return nullptr;
  thread_->finish_with(std::move(finish));
  return {thread_.get(), [](Thread* thread) { thread->finish_with({}); }};
}

std::shared_ptr<void> Watch::look_after(StorageDuty duty) const {
  if (!thread_) return nullptr;
  thread_->look_after(std::move(duty));
  return {thread_.get(), [](Thread* thread) { thread->look_after(std::nullopt); }};
}

void BoundedCalls::make(const std::function<void()>& call, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto returned = [&] { return last_.wait_until(end) == std::future_status::ready; };
  if (last_.valid() && !returned()) return;
  std::packaged_task<void()> task(call);
  last_ = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {  // no more threads: better late than never
    return call();
  }
  returned();
}

}  // namespace cputrain::watch
