#include "backends/hdf5/written_apart.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>

#include "core/casts.h"
#include "core/error.h"
#include "system/bounded_file.h"

namespace cputrain::hdf5 {
namespace {

[[noreturn]] void failed_call(const char* what) {
  throw SystemFault(fmt::format("cannot be read ({}: {})", what, std::strerror(errno)));
}

class DescriptorOutput final : public system::OutputFile {
 public:
  explicit DescriptorOutput(int descriptor) : descriptor_(descriptor) {}

  using OutputFile::write;
  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) failed_call("memory");
      bytes = bytes.subspan(to_size(done));
    }
  }
  void commit(system::Durability) override {}

 private:
  int descriptor_;
};

/// A starter that ignores SIGCHLD leaves that to us: nobody could wait for the child.
class WaitsForChildren {
 public:
  WaitsForChildren() {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, &before_);
  }
  ~WaitsForChildren() { ::sigaction(SIGCHLD, &before_, nullptr); }
  WaitsForChildren(const WaitsForChildren&) = delete;
  WaitsForChildren& operator=(const WaitsForChildren&) = delete;

 private:
  struct sigaction before_ {};
};

/// Pages that count against RLIMIT_DATA, as bytes: the sixth number of statm.
std::size_t data_of_this_process() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  for (int field = 0; field < 6; ++field) statm >> pages;
  return statm ? pages * to_size(::sysconf(_SC_PAGESIZE)) : 0;
}

void limit(decltype(RLIMIT_CORE) what, rlim_t most, rlim_t least_more = 0) {
  const rlimit limits{most, most + least_more};
  ::setrlimit(what, &limits);
}

/// Dies with its parent, says nothing, leaves no image of its memory, and has an end: the system
/// ends it first where memory runs out. Handlers of the parent's libraries would print its faults.
void become_a_quiet_child(pid_t parent, const Limits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(nowhere, stream);
  sigset_t faults;
  ::sigemptyset(&faults);
  for (const int fault :
       {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGXCPU, SIGALRM, SIGTERM}) {
    ::signal(fault, SIG_DFL);
    ::sigaddset(&faults, fault);
  }
  ::sigprocmask(SIG_UNBLOCK, &faults, nullptr);
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.cpu_seconds), 1);
  if (const std::size_t data = data_of_this_process()) limit(RLIMIT_DATA, data + limits.memory);
  ::alarm(static_cast<unsigned>(limits.seconds));
}

/// Exit codes beside those of an Error; the file is what it says.
constexpr int kThrew = 1, kSystemFault = 3;

/// The exit code.
int write_or_say_why(int descriptor, const std::function<void(system::OutputFile&)>& write) {
  DescriptorOutput output(descriptor);
  std::string why = "cannot be read";
  int code = kThrew;
  try {
    write(output);
    return 0;
  } catch (const Error& error) {
    why = error.what();
    code = to_int(error.code());
  } catch (const SystemFault& error) {
    why = error.what();
    code = kSystemFault;
  } catch (const std::bad_alloc&) {
    why = "cannot be read (it asks for more memory than there is, or than such a file needs)";
    code = kSystemFault;
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
  }
  try {
    if (::ftruncate(descriptor, 0) == 0 && ::lseek(descriptor, 0, SEEK_SET) == 0) {
      output.write(std::string_view(why));
    }
  } catch (...) {
    return kThrew;  // without a word: there is no room for one
  }
  return code;
}

[[noreturn]] void say_how_it_ended(int status) {
  if (!WIFSIGNALED(status)) {
    throw std::runtime_error(
        fmt::format("cannot be read (its reader ended with {})", WEXITSTATUS(status)));
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL || signal == SIGTERM) {
    throw SystemFault("cannot be read (the system ended its reader: out of memory?)");
  }
  if (signal == SIGALRM) {
    throw SystemFault("cannot be read (its reader waits and waits: does its disk answer?)");
  }
  if (signal == SIGXCPU) throw std::runtime_error("is damaged (libhdf5 comes to no end)");
  throw std::runtime_error(
      fmt::format("is damaged (libhdf5 failed with signal {}, {})", signal, ::strsignal(signal)));
}

}  // namespace

MemoryFile::MemoryFile() : descriptor_(::memfd_create("cputrain-weights", MFD_CLOEXEC)) {
  if (descriptor_ < 0) failed_call("memfd_create");
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

std::filesystem::path MemoryFile::path() const {
  return fmt::format("/proc/self/fd/{}", descriptor_);
}

void write_apart(MemoryFile& file, const Limits& limits,
                 const std::function<void(system::OutputFile&)>& write) {
  const WaitsForChildren waits;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) failed_call("fork");
  if (child == 0) {
    become_a_quiet_child(parent, limits);
    ::_exit(write_or_say_why(file.descriptor(), write));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) failed_call("waitpid");
  }
  if (!WIFEXITED(status)) say_how_it_ended(status);
  const int code = WEXITSTATUS(status);
  if (code == 0) return;
  constexpr std::uintmax_t kMostText = 1 << 16;
  const std::string why = system::read_bounded(file.path(), kMostText);
  if (why.empty()) say_how_it_ended(status);
  if (code == kSystemFault) throw SystemFault(why);
  if (code != kThrew) fail(static_cast<ExitCode>(code), why);
  throw std::runtime_error(why);
}

}  // namespace cputrain::hdf5
