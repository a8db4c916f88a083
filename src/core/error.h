#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace cputrain {

/// The process's exit status. The numbers are a promise to scripts (src/logging/README.md).
enum class ExitCode : int {
  ok = 0,
  failed = 1,         ///< a loss or weight is NaN or infinite, a case of `selftest` failed, or
                      ///< `data check` found many files that are not read
  usage = 2,          ///< unknown flag, value, combination; more than machine or `ulimit` allow;
                      ///< a program or a network that is needed is not there
  disagree = 64,      ///< ranks have different programs, flags, data or pixels, or no common MPI
  data = 65,          ///< bad data, model or weight file
  internal = 70,      ///< the program is wrong, or the system refused something in the work
  output = 74,        ///< results cannot be written: a full disk, `ulimit -f`
  stopped = 75,       ///< SIGUSR1, SIGTERM or SIGHUP: a checkpoint has the last completed step
  unanswered = 76,    ///< another rank, or the launcher, is gone or does not answer
  interrupted = 130,  ///< Ctrl-C: the same after the step
};

/// The outside world misbehaved: bad input, a missing file, a failed library call.
/// The message reads "<problem> (<why it matters>); <what to try>".
/// Programming mistakes are not errors of this kind: they are assertions.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

[[noreturn]] inline void fail(ExitCode code, const std::string& message) {
  throw Error(code, message);
}

/// The same with a message that is put together, as fmt::format does it.
template <class First, class... Others>
[[noreturn]] void fail(ExitCode code, fmt::format_string<First, Others...> message, First&& first,
                       Others&&... others) {
  fail(code, fmt::format(message, std::forward<First>(first), std::forward<Others>(others)...));
}

}  // namespace cputrain
