#include "system/placement/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::placement {
namespace {

std::optional<int> as_number(const char* text) {
  if (text == nullptr) return std::nullopt;
  const auto number = number_in<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// What starts processes of a kind, and the variable for their number, or for which one it is.
struct Words {
  Launcher::Kind kind;
  const char *who, *variable;
};

constexpr Words kWords[] = {
    {Launcher::Kind::open_mpi, "Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE"},
    {Launcher::Kind::pmi, "an mpiexec that speaks PMI, as those of MPICH and Intel MPI do,",
     "PMI_SIZE"},
    {Launcher::Kind::pmix, "a launcher that speaks PMIx", "PMIX_RANK"},
    {Launcher::Kind::slurm, "srun", "SLURM_STEP_NUM_TASKS"}};

bool speaks(const std::string& mpi, const char* name) { return mpi.find(name) != mpi.npos; }

/// A launcher of this build's own MPI.
std::string own_launcher(const std::string& mpi) {
  if (speaks(mpi, "Open MPI")) return "its mpirun (mpirun.openmpi)";
  if (speaks(mpi, "MPICH")) return "its mpiexec (mpiexec.mpich)";
  return "its own launcher";
}

/// `mpi` is nothing in a build without.
std::string remedy(Launcher::Kind kind, const std::optional<std::string>& mpi) {
  using Kind = Launcher::Kind;
  if (!mpi) {
    return "start one process with --threads instead, or build it with -DCPUTRAIN_MPI=ON";
  }
  if (kind == Kind::slurm || kind == Kind::pmix) {
    return "try srun --mpi=pmix with an MPI that was built for it, or mpirun inside the allocation";
  }
  std::string text = "start them with " + own_launcher(*mpi);
  if (kind == Kind::pmi && speaks(*mpi, "Open MPI")) {
    text += ", or build the program for MPICH: scripts/build mpich";
  }
  if (kind == Kind::open_mpi) text += ", or build it for Open MPI: scripts/build release";
  return text;
}

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

Launcher read_launcher(const std::function<const char*(const char*)>& variable) {
  using Kind = Launcher::Kind;
  const auto number = [&](const char* name) { return as_number(variable(name)); };
  Launcher found;
  if (const auto world = number("WORLD_SIZE"); world && number("RANK")) found.world = *world;
  const auto ompi_local = number("OMPI_COMM_WORLD_LOCAL_SIZE");
  const auto local = ompi_local ? ompi_local : number("MPI_LOCALNRANKS");  // Hydra's
  const auto started = [&](Kind kind, std::optional<int> rank, int size) {
    found.kind = kind;
    found.rank = rank.value_or(0);
    found.size = size;
    found.local_size = std::min(local.value_or(size), size);
    return found;
  };
  // Open MPI's own come first: its processes have PMIX_RANK, too, and under Slurm SLURM_*.
  const auto ompi_rank = number("OMPI_COMM_WORLD_RANK"), ompi_size = number("OMPI_COMM_WORLD_SIZE");
  if (ompi_rank && ompi_size) return started(Kind::open_mpi, ompi_rank, *ompi_size);
  const auto tasks = number("SLURM_STEP_NUM_TASKS");
  const auto pmi_rank = number("PMI_RANK");
  const auto pmi_size = number("PMI_SIZE") ? number("PMI_SIZE") : tasks;
  if (pmi_rank && pmi_size) return started(Kind::pmi, pmi_rank, *pmi_size);
  // PMIx has the size in its library only: a rank just knows that those below it exist.
  if (const auto rank = number("PMIX_RANK")) {
    found.size_known = tasks.has_value();
    return started(Kind::pmix, rank, tasks.value_or(*rank + 1));
  }
  if (tasks && *tasks > 1) return started(Kind::slurm, number("SLURM_PROCID"), *tasks);
  return found;
}

Launcher launcher_environment() {
  return read_launcher([](const char* name) { return std::getenv(name); });
}

void check_launch(const Launcher& launcher, int ranks, const std::optional<std::string>& mpi) {
  if (launcher.size <= ranks) return;
  const std::string started = std::to_string(launcher.size);
  if (launcher.rank != 0 && launcher.size_known) {
    fail(ExitCode::disagree, "one of " + started +
                                 " processes that MPI does not see as ranks of one job (they would "
                                 "each train alone); see what rank 0 says");
  }
  const Words& words = *std::ranges::find(kWords, launcher.kind, &Words::kind);
  const std::string sees =
      mpi ? "this program's MPI, " + *mpi + ", sees " + std::to_string(ranks) + " of them"
          : "this build has no MPI";
  fail(ExitCode::disagree,
       std::string(words.who) + " started " + (launcher.size_known ? "" : "at least ") + started +
           " processes (" + words.variable + "), but " + sees +
           " (each would train alone, all of them the same); " + remedy(launcher.kind, mpi) +
           "; separate trainings on purpose want env -u " + words.variable);
}

std::string launch_warning(const Launcher& launcher, int ranks) {
  if (ranks > 1) return "";
  if (!launcher.size_known) {
    return "a launcher that speaks PMIx started this process (PMIX_RANK), and MPI sees no other; "
           "if "
           "it started several, each trains alone, and those other than this one say more";
  }
  if (launcher.world <= 1) return "";
  return "WORLD_SIZE and RANK say that there are " + std::to_string(launcher.world) +
         " processes, as torchrun starts them, and MPI sees one (each trains alone); start ranks "
         "with mpirun -np " +
         std::to_string(launcher.world);
}

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
