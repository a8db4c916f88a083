#pragma once

#include <stdexcept>
#include <string>

namespace cputrain {

/// What the process tells the shell. The numbers are a promise to scripts (README, "Exit codes").
enum class ExitCode : int {
  ok = 0,
  failed = 1,         ///< training itself failed, for example the loss became NaN
  usage = 2,          ///< unknown flag, value out of range, impossible combination
  disagree = 64,      ///< ranks were started with different programs, settings or data
  data = 65,          ///< bad data, model or weight file
  internal = 70,      ///< a library call failed or the program is wrong
  output = 74,        ///< results cannot be written
  stopped = 75,       ///< SIGTERM: the last completed weights were saved
  interrupted = 130,  ///< stopped by Ctrl-C after the step was finished and saved
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

}  // namespace cputrain
