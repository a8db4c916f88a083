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
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "system/bounded_file.h"

namespace cputrain::hdf5 {
namespace {

[[noreturn]] void failed_call(const char* what) {
  throw std::runtime_error(fmt::format("cannot be read ({}: {})", what, std::strerror(errno)));
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
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }
  void commit(system::Durability) override {}

 private:
  int descriptor_;
};

/// Dies with its parent, says nothing, leaves no image of its memory, and has an end. Handlers of
/// the parent's libraries would print of its faults.
void become_a_quiet_child(pid_t parent, int most_seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(nowhere, stream);
  sigset_t faults;
  ::sigemptyset(&faults);
  for (const int fault : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGXCPU}) {
    ::signal(fault, SIG_DFL);
    ::sigaddset(&faults, fault);
  }
  ::sigprocmask(SIG_UNBLOCK, &faults, nullptr);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const rlimit seconds{static_cast<rlim_t>(most_seconds), static_cast<rlim_t>(most_seconds + 1)};
  ::setrlimit(RLIMIT_CPU, &seconds);
}

constexpr int kThrew = 1;  ///< other codes are those of an Error; the file is its text

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
    code = static_cast<int>(error.code());
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

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGXCPU) return "is damaged (libhdf5 comes to no end)";
    if (signal == SIGKILL) return "cannot be read (the system ended its reader: out of memory?)";
    return fmt::format("is damaged (libhdf5 failed with signal {}, {})", signal,
                       ::strsignal(signal));
  }
  return fmt::format("cannot be read (its reader ended with {})", WEXITSTATUS(status));
}

}  // namespace

MemoryFile::MemoryFile() : descriptor_(::memfd_create("cputrain-weights", MFD_CLOEXEC)) {
  if (descriptor_ < 0) failed_call("memfd_create");
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

std::filesystem::path MemoryFile::path() const {
  return fmt::format("/proc/self/fd/{}", descriptor_);
}

void write_apart(MemoryFile& file, int most_seconds,
                 const std::function<void(system::OutputFile&)>& write) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) failed_call("fork");
  if (child == 0) {
    become_a_quiet_child(parent, most_seconds);
    ::_exit(write_or_say_why(file.descriptor(), write));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) failed_call("waitpid");
  }
  if (!WIFEXITED(status)) throw std::runtime_error(how_it_ended(status));
  const int code = WEXITSTATUS(status);
  if (code == 0) return;
  constexpr std::uintmax_t kMostText = 1 << 16;
  const std::string why = system::read_bounded(file.path(), kMostText);
  if (why.empty()) throw std::runtime_error(how_it_ended(status));
  if (code != kThrew) fail(static_cast<ExitCode>(code), why);
  throw std::runtime_error(why);
}

}  // namespace cputrain::hdf5
