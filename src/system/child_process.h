#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cputrain::system {

/// A program that runs beside this one. It dies with this process, even where that is killed. No
/// signal is blocked in it, nor are those ignored with which programs are ended, but for SIGHUP
/// where this process ignores it (nohup); there the program has a process group of its own. What it
/// starts itself is its own affair.
class ChildProcess {
 public:
  /// `words` are the program (looked for in PATH) and its arguments, `environment` "NAME=value",
  /// all of it. It reads nothing; what it prints goes to the log, which is started anew.
  /// Error(usage) where it cannot be started, Error(output) for the log.
  ChildProcess(const std::vector<std::string>& words, const std::vector<std::string>& environment,
               const std::filesystem::path& log);
  /// Kills it where it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Nothing while it runs, then its exit code as a shell reports it: 128 + N after signal N.
  std::optional<int> exit_code();
  /// Does nothing where it has ended.
  void send(int signal);

 private:
  int id_ = -1;
  std::optional<int> exit_code_;
};

/// Whether a program of this name is in PATH (or, with a slash in it, is there and may be started).
bool program_exists(const std::string& name);

}  // namespace cputrain::system
