#include "backends/mpi/launcher.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

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

}  // namespace

Launcher read_launcher(const std::function<const char*(const char*)>& variable) {
  const auto number = [&](const char* name) { return as_number(variable(name)); };
  const auto tasks =
      number("SLURM_STEP_NUM_TASKS") ? number("SLURM_STEP_NUM_TASKS") : number("SLURM_NTASKS");
  // Open MPI's own come first: its processes have PMIX_RANK, too, and under Slurm SLURM_*.
  const auto ompi_rank = number("OMPI_COMM_WORLD_RANK"), ompi_size = number("OMPI_COMM_WORLD_SIZE");
  if (ompi_rank && ompi_size) return {*ompi_rank, *ompi_size, true, {}};
  const auto pmi_rank = number("PMI_RANK"), pmi_size = number("PMI_SIZE");
  if (pmi_rank && pmi_size) return {*pmi_rank, *pmi_size, true, {}};
  // PMIx tells the size through its library only; srun's variable stands in for the log.
  if (const auto rank = number("PMIX_RANK")) return {*rank, tasks.value_or(*rank + 1), true, {}};

  Launcher alone;
  if (const auto step = number("SLURM_STEP_NUM_TASKS"); step && *step > 1) {
    alone.warning = "srun started " + std::to_string(*step) +
                    " tasks without a process manager for MPI (each would train alone, all in the "
                    "same folder); try srun --mpi=pmix, or mpirun inside the allocation";
  }
  return alone;
}

Launcher launcher_environment() {
  return read_launcher([](const char* name) { return std::getenv(name); });
}

}  // namespace cputrain
