#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cputrain::system {

/// A program to be started. It reads nothing; what it prints goes to a file, which is started anew.
struct ChildRequest {
  std::vector<std::string> words;        ///< program (looked for in PATH) and arguments
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  std::filesystem::path log;
};

/// A program that runs beside this one. It dies with this process, even where that is killed. No
/// signal is blocked in it, nor are those ignored with which programs are ended, but for SIGHUP
/// where this process ignores it (nohup); there the program has a process group of its own. What it
/// starts itself is its own affair.
class ChildProcess {
 public:
  /// Error(usage) where the program cannot be started, Error(output) for the log.
  explicit ChildProcess(const ChildRequest&);
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
