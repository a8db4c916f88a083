#include "system/output.h"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/text.h"
#include "system/clock.h"
#include "system/print.h"

namespace cputrain::system {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::atomic<int> waiting = 0;
std::atomic<double> hurried_since = kNever;

std::size_t most_bytes(Worth worth) {
  switch (worth) {
    case Worth::redrawn:
      return kMostRedrawn;
    case Worth::told:
      return kMostTold;
    default:
      return kMostLines;
  }
}

/// What may be written in one call: whole lines where they fit, since ranks may share a pipe, which
/// takes that much as one.
std::string_view first_lines(std::string_view text) {
  constexpr std::size_t kAtomic = 4096;
  if (text.size() <= kAtomic) return text;
  const std::size_t end = text.substr(0, kAtomic).rfind('\n');
  return text.substr(0, end == std::string_view::npos ? kAtomic : end + 1);
}

/// The bytes that were written, which may be fewer; 0 where they cannot be.
std::size_t written(int descriptor, std::string_view bytes) {
  for (;;) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN) {  // who shares the terminal may have made it so
      pollfd room{descriptor, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return 0;
    }
  }
}

/// Whoever waits for a file waits for storage, and for no reader.
bool is_file(int descriptor) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

/// What waits for one place, and the thread that writes it.
class Channel {
 public:
  explicit Channel(int descriptor) : has_reader_(!is_file(descriptor)) {
    std::thread([this] { run(); }).detach();  // which may never return from a write
    Lock lock(mutex_);
    taken_.wait(lock, [this] { return has_begun_; });
  }

  bool put(int descriptor, std::string_view text, Worth worth) {
    Lock lock(mutex_);
    const auto has_room = [&] { return bytes_ == 0 || bytes_ + text.size() <= most_bytes(worth); };
    if (worth == Worth::result ? !wait(lock, kNever, kNever, has_room)
                               : !has_room() || (worth <= Worth::line && drops())) {
      if (worth != Worth::redrawn) dropped_[at(descriptor)] += lines_of(text);
      if (worth == Worth::result) failed_[at(descriptor)] = true;
      return false;
    }
    try {
      if (pieces_.empty() || pieces_.back().descriptor != descriptor) {
        pieces_.push_back({descriptor, {}});
      }
      pieces_.back().text += text;
    } catch (const std::bad_alloc&) {  // what ends the process must find the lock free
      return false;
    }
    bytes_ += text.size();
    asked_.notify_one();
    return !failed_[at(descriptor)];
  }

  /// Whether all is written in time.
  bool finish(double unread, double all) {
    Lock lock(mutex_);
    return wait(lock, unread, all, [this] { return bytes_ == 0 && !says_dropped_; });
  }

  bool has_failed(int descriptor) {
    const std::lock_guard lock(mutex_);
    return failed_[at(descriptor)];
  }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Piece {
    int descriptor;
    std::string text;
  };

  static std::size_t at(int descriptor) { return static_cast<std::size_t>(descriptor); }
  static std::size_t lines_of(std::string_view text) {
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::ranges::count(text, '\n')));
  }

  bool drops() const { return dropped_[STDOUT_FILENO] + dropped_[STDERR_FILENO] > 0; }

  /// A thread that lacks a CPU is no reader who takes nothing.
  template <class Done>
  bool wait(Lock& lock, double most_unread, double most, const Done& done) {
    if (done()) return true;
    const Stopwatch whole;
    if (has_reader_) ++waiting;
    const auto has_time = [&] {
      const double now = steady_seconds(), unread = writes_since_ ? now - *writes_since_ : 0;
      const bool is_hurried = std::min(unread, now - hurried_since) >= kGivesUp;
      return !is_hurried && unread < most_unread && whole.seconds() < most;
    };
    bool is_done = false;
    while (!(is_done = done()) && has_time()) {
      // Rarely: who waits for storage shows as one that does nothing.
      taken_.wait_for(lock, std::chrono::milliseconds(100));
    }
    if (has_reader_) --waiting;
    return is_done;
  }

  void run() {
    ::pthread_setname_np(::pthread_self(), "output");  // for ps and strace
    Lock lock(mutex_);
    // What malloc sets aside for a thread is set aside now: who asks later how many addresses are
    // left (`ulimit -v`) sees all of it.
    pieces_.push_back({STDOUT_FILENO, std::string(64, ' ')});
    pieces_.pop_back();
    has_begun_ = true;
    taken_.notify_all();
    for (;;) {
      asked_.wait(lock, [this] { return !pieces_.empty(); });
      const Piece piece = std::move(pieces_.front());
      pieces_.pop_front();
      for (std::string_view rest = piece.text; !rest.empty();) {
        writes_since_ = steady_seconds();
        lock.unlock();
        const std::size_t count = written(piece.descriptor, first_lines(rest));
        lock.lock();
        if (count == 0) failed_[at(piece.descriptor)] = true;
        const std::size_t gone = count == 0 ? rest.size() : count;
        rest.remove_prefix(gone);
        bytes_ -= gone;
        writes_since_.reset();
        taken_.notify_all();
        if (drops() && bytes_ <= kMostLines / 2) say_dropped(lock);
      }
    }
  }

  /// There is room again: lines that come meanwhile are not dropped.
  void say_dropped(Lock& lock) {
    const std::array<std::size_t, 3> dropped = std::exchange(dropped_, {});
    says_dropped_ = true;
    lock.unlock();
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
      if (const std::size_t lines = dropped[at(descriptor)]) {
        tell("warning: {} {} dropped, as nobody read standard {}", counted(lines, "line"),
             lines == 1 ? "was" : "were", descriptor == STDOUT_FILENO ? "output" : "error");
      }
    }
    lock.lock();
    says_dropped_ = false;
    taken_.notify_all();
  }

  const bool has_reader_;
  std::mutex mutex_;
  std::condition_variable asked_, taken_;
  bool has_begun_ = false;
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;                 ///< theirs, with what is being written
  std::optional<double> writes_since_{};  ///< the call that is being made
  std::array<bool, 3> failed_{};          ///< by descriptor
  /// Lines, since that was told. Bytes wait where there are some, and it is told once few do.
  std::array<std::size_t, 3> dropped_{};
  bool says_dropped_ = false;
};

/// Channels of standard error and output, one where these lead to one place. Never destroyed: a
/// thread may be in a write when the process ends. Output's comes last: who sees it may use both.
std::atomic<Channel*> of_error = nullptr, of_output = nullptr;

bool are_one_place(int a, int b) {
  struct stat one {
  }, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

void begin_output() {
  if (of_output) return;
  try {
    auto* const output = new Channel(STDOUT_FILENO);
    of_error = are_one_place(STDOUT_FILENO, STDERR_FILENO) ? output : new Channel(STDERR_FILENO);
    of_output = output;
  } catch (const std::system_error&) {  // no more threads
    return;
  }
  ::pthread_atfork(nullptr, nullptr,
                   [] { of_output = of_error = nullptr; });  // threads stay with the parent
  std::atexit([] { flush_output(1, 30); });                  // libraries may end the process
}

bool put(std::FILE* stream, std::string_view text, Worth worth) {
  Channel* const output = of_output;
  if (output && stream == stdout) return output->put(STDOUT_FILENO, text, worth);
  if (output && stream == stderr) return of_error.load()->put(STDERR_FILENO, text, worth);
  std::fwrite(text.data(), 1, text.size(), stream);
  if (worth != Worth::result) std::fflush(stream);
  return !std::ferror(stream);
}

bool flush_output(double unread, double all) {
  Channel* const output = of_output;
  if (!output) return std::fflush(stdout) == 0 && !std::ferror(stdout);
  const Stopwatch watch;
  const bool whole = output->finish(unread, all);
  of_error.load()->finish(unread, all - watch.seconds());
  return whole && !output->has_failed(STDOUT_FILENO);
}

void hurry_output() {
  double never = kNever;
  hurried_since.compare_exchange_strong(never, steady_seconds());
}

bool waits_for_reader() { return waiting > 0; }

void end_at_once(int code) {
  flush_output(0.2, 2);
  ::_exit(code);
}

}  // namespace cputrain::system
