#include "core/launcher.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/error.h"

namespace cputrain {
namespace {

std::optional<int> as_number(const char* text) {
  if (text == nullptr) return std::nullopt;
  const char* const end = text + std::strlen(text);
  int number = 0;
  const auto [stopped, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stopped != end || number < 0) return std::nullopt;
  return number;
}

/// Who started the processes, what says so, and what to start them with instead.
struct Words {
  std::string who, variable, remedy;
};

bool speaks(const std::string& mpi, const char* name) { return mpi.find(name) != mpi.npos; }

/// A launcher of this build's own MPI.
std::string own_launcher(const std::string& mpi) {
  if (speaks(mpi, "Open MPI")) return "its mpirun (mpirun.openmpi)";
  if (speaks(mpi, "MPICH")) return "its mpiexec (mpiexec.mpich)";
  return "its own launcher";
}

std::string remedy(const Launcher& launcher, const std::string& mpi) {
  using Kind = Launcher::Kind;
  if (mpi == "no MPI") {
    return "start one process with --threads instead, or build it with -DCPUTRAIN_MPI=ON";
  }
  if (launcher.kind == Kind::slurm || launcher.kind == Kind::pmix) {
    return "try srun --mpi=pmix with an MPI that was built for it, or mpirun inside the allocation";
  }
  std::string text = "start them with " + own_launcher(mpi);
  if (launcher.kind == Kind::pmi && speaks(mpi, "Open MPI")) {
    text += ", or build the program for MPICH: scripts/build mpich";
  }
  if (launcher.kind == Kind::open_mpi) text += ", or build it for Open MPI: scripts/build release";
  return text;
}

Words words_of(const Launcher& launcher, const std::string& mpi) {
  using Kind = Launcher::Kind;
  Words words{"", "", remedy(launcher, mpi)};
  switch (launcher.kind) {
    case Kind::open_mpi:
      words.who = "Open MPI's mpirun";
      words.variable = "OMPI_COMM_WORLD_SIZE";
      break;
    case Kind::pmi:
      words.who = "an mpiexec that speaks PMI, as those of MPICH and Intel MPI do,";
      words.variable = "PMI_SIZE";
      break;
    case Kind::pmix:
      words.who = "a launcher that speaks PMIx";
      words.variable = "PMIX_RANK";
      break;
    case Kind::slurm:
      words.who = "srun";
      words.variable = "SLURM_STEP_NUM_TASKS";
      break;
    case Kind::nobody:
      break;
  }
  return words;
}

}  // namespace

Launcher read_launcher(const std::function<const char*(const char*)>& variable) {
  using Kind = Launcher::Kind;
  const auto number = [&](const char* name) { return as_number(variable(name)); };
  Launcher found;
  if (const auto world = number("WORLD_SIZE"); world && number("RANK")) found.world = *world;
  const auto started = [&](Kind kind, std::optional<int> rank, int size) {
    found.kind = kind;
    found.rank = rank.value_or(0);
    found.size = size;
    return found;
  };
  // Open MPI's own come first: its processes have PMIX_RANK, too, and under Slurm SLURM_*.
  const auto ompi_rank = number("OMPI_COMM_WORLD_RANK"), ompi_size = number("OMPI_COMM_WORLD_SIZE");
  if (ompi_rank && ompi_size) return started(Kind::open_mpi, ompi_rank, *ompi_size);
  const auto tasks = number("SLURM_STEP_NUM_TASKS");
  const auto pmi_rank = number("PMI_RANK");
  const auto pmi_size = number("PMI_SIZE") ? number("PMI_SIZE") : tasks;
  if (pmi_rank && pmi_size) return started(Kind::pmi, pmi_rank, *pmi_size);
  // PMIx tells the size through its library only: what a rank knows is that there are those below.
  if (const auto rank = number("PMIX_RANK")) {
    return started(Kind::pmix, rank, tasks.value_or(*rank + 1));
  }
  if (tasks && *tasks > 1) return started(Kind::slurm, number("SLURM_PROCID"), *tasks);
  return found;
}

Launcher launcher_environment() {
  return read_launcher([](const char* name) { return std::getenv(name); });
}

void check_launch(const Launcher& launcher, int ranks, const std::string& mpi) {
  if (launcher.size <= ranks) return;
  const std::string started = std::to_string(launcher.size);
  if (launcher.rank != 0) {
    fail(ExitCode::disagree, "one of " + started +
                                 " processes that MPI does not see as ranks of one job (they would "
                                 "each train alone); see what rank 0 says");
  }
  const Words words = words_of(launcher, mpi);
  const std::string sees = mpi == "no MPI" ? "this build has no MPI"
                                           : "this program's MPI, " + mpi + ", sees " +
                                                 std::to_string(ranks) + " of them";
  const bool exactly = launcher.kind != Launcher::Kind::pmix;
  fail(ExitCode::disagree, words.who + " started " + (exactly ? started : "at least " + started) +
                               " processes (" + words.variable + "), but " + sees +
                               " (each would train alone, all of them the same); " + words.remedy +
                               "; separate trainings on purpose want env -u " + words.variable);
}

std::string launch_warning(const Launcher& launcher, int ranks) {
  if (launcher.world <= 1 || ranks > 1) return "";
  return "WORLD_SIZE and RANK say that there are " + std::to_string(launcher.world) +
         " processes, as torchrun starts them, and MPI sees one (each trains alone); start ranks "
         "with mpirun -np " +
         std::to_string(launcher.world);
}

}  // namespace cputrain
