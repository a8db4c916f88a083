#include "system/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/text.h"
#include "system/files.h"
#include "system/signals.h"

namespace cputrain::system {
namespace {

/// Empty where there is none.
std::string path_of(const std::string& name) {
  if (name.empty()) return "";
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/bin:/bin", ':')) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// What the child is started with, made before the fork: between it and exec nothing may be
/// allocated, since other threads may have held the heap's lock.
struct Start {
  std::string path;
  std::vector<char*> words, environment;
  int log, trouble;  ///< descriptors; errno is written to the second
  pid_t parent;
};

/// A process that is started with signals ignored hands that on, through exec, too: `nohup` SIGHUP,
/// a shell's `&` SIGINT, and we ourselves SIGPIPE. SIGHUP stays ignored where it is, since nohup's
/// user wants what we start to outlive the terminal. mpirun sets a handler for it, and that of Open
/// MPI 5 takes it off the blocked ones, too, so the signal must not come: a terminal sends it to
/// process groups.
void pass_signals() {
  if (is_ignored(SIGHUP)) ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE}) {
    ::signal(signal, SIG_DFL);
  }
}

[[noreturn]] void run_child(const Start& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.parent) ::_exit(1);  // it died before the line above
  pass_signals();
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0 && ::dup2(null, 0) >= 0 && ::dup2(start.log, 1) >= 0 && ::dup2(start.log, 2) >= 0) {
    ::execve(start.path.c_str(), start.words.data(), start.environment.data());
  }
  const int error = errno;
  static_cast<void>(::write(start.trouble, &error, sizeof error) > 0);
  ::_exit(1);
}

[[noreturn]] void cannot_start(const std::string& name, const std::string& why) {
  fail(ExitCode::usage, "cannot start " + name + ": " + why +
                            " (it starts the ranks); install it, or name another --launcher");
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words,
                           const std::vector<std::string>& environment,
                           const std::filesystem::path& log_file) {
  const std::string path = path_of(words.front());
  if (path.empty()) cannot_start(words.front(), "there is no such program");
  const Descriptor log(open_new(log_file, O_APPEND));
  if (!log.is_open()) cannot_write(log_file, errno);
  int trouble[2];
  if (::pipe2(trouble, O_CLOEXEC) != 0) {
    fail(ExitCode::internal, std::string("pipe2: ") + std::strerror(errno));
  }
  const Start start{path,         pointers_to(words), pointers_to(environment),
                    log.number(), trouble[1],         ::getpid()};
  id_ = ::fork();
  const int fork_error = errno;
  if (id_ == 0) run_child(start);
  ::close(trouble[1]);
  int error = id_ < 0 ? fork_error : 0;
  if (id_ > 0) {
    int code = 0;
    if (::read(trouble[0], &code, sizeof code) == sizeof code) {  // else exec has closed it
      error = code;
      ::waitpid(id_, nullptr, 0);
      id_ = -1;
    }
  }
  ::close(trouble[0]);
  if (error != 0) cannot_start(words.front(), std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (exit_code()) return;
  send(SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (!exit_code_ && ::waitpid(id_, &status, WNOHANG) == id_) {
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return exit_code_;
}

void ChildProcess::send(int signal) {
  if (!exit_code()) ::kill(id_, signal);
}

bool program_exists(const std::string& name) { return !path_of(name).empty(); }

}  // namespace cputrain::system
