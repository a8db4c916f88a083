#include "composition/program.h"

#include <utility>

#include "backends/sim/simulator.h"
#include "cli/commands/commands.h"
#include "composition/services.h"
#include "scaling/commands/commands.h"
#include "scaling/report/trainings/evaluation_page.h"

namespace cputrain::composition {
namespace {

/// In the order of the overview. The first is the default; topics stand behind their command.
std::vector<cli::MakeCommand> command_list() {
  using namespace commands;
  return {make_train,
          [] { return make_eval(report::evaluation_page); },
          make_predict,
          make_export,
          make_data,
          make_data_check,
          make_data_info,
          make_data_pack,
          make_data_synth,
          make_weights,
          make_weights_fetch,
          make_weights_list,
          make_weights_path,
          make_bench,
          make_bench_step,
          make_bench_allreduce,
          make_bench_input,
          make_bench_kernels,
          make_tune,
          make_sweep,
          [] { return make_simulate(sim::find_simulator); },
          make_report,
          make_info,
          [] { return make_selftest(own_of); }};
}

}  // namespace

cli::CommandLineChoices command_line_choices() {
  std::vector<training::BackendChoice> backends;
  for (const ListedBackend& backend : backend_list()) backends.push_back(backend.choice);
  return command_line_choices(std::move(backends));
}

cli::CommandLineChoices command_line_choices(std::vector<training::BackendChoice> backends) {
  return {.backends = std::move(backends),
          .commands = command_list(),
          .examples = {{"cputrain --model efficientnet-lite0 --weights imagenet --freeze "
                        "all-but-head --data photos",
                        "Trains a new last layer on class folders: photos/cat/*.jpg, "
                        "photos/dog/*.jpg."},
                       {"cputrain --data photos", "Trains a network on them from nothing."},
                       {"mpirun -np 4 cputrain --data photos --batch 256",
                        "Trains with four ranks, which share each batch of 256 images."},
                       {"cputrain sweep --np 1,2 --batch 128,256",
                        "Makes the table of seconds per epoch by CPUs and batch."}}};
}

}  // namespace cputrain::composition
