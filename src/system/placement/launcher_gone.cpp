#include "system/placement/launcher_gone.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <string>
#include <string_view>

namespace cputrain::placement {
namespace {

/// The content of /proc/PID/stat; proc(5) has its fields.
struct ProcessStatus {
  ProcessIdentity identity;
  std::string name;  ///< the program file's, cut to 15 letters
  char state = '?';
  pid_t parent = 0;
};

/// A whole small file of /proc; errno, 0 for success.
int read_small(const std::filesystem::path& path, std::string& text) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  text.resize(4096);
  const ssize_t size = ::read(descriptor, text.data(), text.size());
  const int error = size < 0 ? errno : 0;
  ::close(descriptor);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return error;
}

std::optional<ProcessStatus> parse_status(pid_t id, const std::string& line) {
  // The name stands in parentheses and may have some of its own.
  const std::size_t begin = line.find('('), end = line.rfind(')');
  if (begin == line.npos || end == line.npos || end < begin) return std::nullopt;
  ProcessStatus status;
  status.name = line.substr(begin + 1, end - begin - 1);
  std::istringstream rest(line.substr(end + 1));
  rest >> status.state >> status.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) rest >> skipped;
  rest >> status.identity.start;
  status.identity.id = id;
  if (!rest) return std::nullopt;
  return status;
}

std::filesystem::path status_file(pid_t id, const std::filesystem::path& proc) {
  return proc / std::to_string(id) / "stat";
}

std::optional<ProcessStatus> read_status(pid_t id, const std::filesystem::path& proc) {
  std::string line;
  if (read_small(status_file(id, proc), line) != 0) return std::nullopt;
  return parse_status(id, line);
}

/// Those whose end ends the job: Open MPI's (orted and prted on other hosts), MPICH's and its kin's
/// (Hydra), Slurm's.
bool is_launcher(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames{
      "orterun", "prterun", "orted", "prted", "prte", "hydra_pmi_proxy", "slurmstepd"};
  return name.starts_with("mpirun") || name.starts_with("mpiexec") ||
         std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

std::optional<ProcessIdentity> identity_of(pid_t id, const std::filesystem::path& proc) {
  const auto status = read_status(id, proc);
  return status ? std::optional(status->identity) : std::nullopt;
}

bool is_gone(const ProcessIdentity& process, const std::filesystem::path& proc) {
  std::string line;
  const int error = read_small(status_file(process.id, proc), line);
  if (error != 0) return error == ENOENT || error == ESRCH;
  const auto status = parse_status(process.id, line);
  if (!status) return false;
  return status->identity != process || status->state == 'Z' || status->state == 'X';
}

std::optional<ProcessIdentity> find_launcher(pid_t process, const std::filesystem::path& proc) {
  constexpr int kMostAncestors = 1000;  // processes that come and go could seem to form a ring
  const auto own = read_status(process, proc);
  if (!own) return std::nullopt;
  const auto parent = read_status(own->parent, proc);
  auto ancestor = parent;
  for (int i = 0; ancestor && i < kMostAncestors; ++i) {
    if (is_launcher(ancestor->name)) return ancestor->identity;
    ancestor = read_status(ancestor->parent, proc);
  }
  if (!parent || parent->identity.id <= 1) return std::nullopt;
  return parent->identity;
}

std::function<bool()> launcher_gone() {
  const auto launcher = find_launcher(::getpid());
  if (!launcher) return {};
  return [launcher = *launcher] { return is_gone(launcher); };
}

}  // namespace cputrain::placement
