#include "cuda/probes/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace cputrain::cuda::probes {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe can be made");
  }
  int ends[2] = {-1, -1};
};

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1000000));
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments) {
  std::string program = "/proc/self/exe";
  std::vector<char*> argv{program.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Pipe to, from;
  id_ = fork();
  if (id_ < 0) throw std::runtime_error("no process can be started");
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(to.ends[0], STDIN_FILENO);
    dup2(from.ends[1], STDOUT_FILENO);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(to.ends[0]);
  close(from.ends[1]);
  in_ = to.ends[1];
  out_ = from.ends[0];
}

Child::~Child() {
  close(in_);
  close(out_);
  if (id_ <= 0) return;
  kill(id_, SIGKILL);
  // A process inside of a driver's call may not end at once; it is not waited for in vain.
  static_cast<void>(exit_code(Clock::now() + std::chrono::seconds(1)));
}

Child::Read Child::read_line(std::string& line, Clock::time_point until) {
  while (true) {
    if (const auto end = unread_.find('\n'); end != std::string::npos) {
      line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return Read::line;
    }
    pollfd ready{.fd = out_, .events = POLLIN, .revents = 0};
    const int polled = poll(&ready, 1, milliseconds_until(until));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return Read::late;
    char bytes[4096];
    const ssize_t count = read(out_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) {
      unread_.append(bytes, static_cast<std::size_t>(count));
    } else if (unread_.empty()) {
      return Read::end;
    } else {
      unread_ += '\n';
    }
  }
}

std::optional<int> Child::exit_code(Clock::time_point until) {
  while (true) {
    int status = 0;
    if (waitpid(id_, &status, WNOHANG) == id_) {
      id_ = -1;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (Clock::now() >= until) return {};
    std::this_thread::sleep_for(milliseconds(2));
  }
}

}  // namespace cputrain::cuda::probes
