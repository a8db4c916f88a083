#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace cputrain::cuda::probes {

using Clock = std::chrono::steady_clock;

/// This program once more, with other arguments, in a process of its own: a GPU's error that never
/// goes away, or a call that never returns, is then lost with that process alone.
class Child {
 public:
  /// Its standard output is read here, and its standard input ends with this object.
  explicit Child(const std::vector<std::string>& arguments);
  /// Kills it where it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  enum class Read { line, end, late };
  /// The next line that it prints, without its end.
  Read read_line(std::string& line, Clock::time_point until);
  /// As a shell has it, 128 + N after signal N; nothing where it does not end in time.
  std::optional<int> exit_code(Clock::time_point until);

 private:
  pid_t id_ = -1;
  int in_ = -1, out_ = -1;
  std::string unread_;
};

}  // namespace cputrain::cuda::probes
