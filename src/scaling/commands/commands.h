#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "core/names.h"
#include "scaling/cells/plan.h"
#include "scaling/simulation/gpu/gpu_forecast.h"
#include "scaling/simulation/simulator.h"
#include "scaling/sweep/sweep_request.h"
#include "scaling/tune/findings.h"
#include "training/request/choose_training.h"
#include "training/session/session.h"

/// Commands about many trainings, each made at the end of its file, and what files share.
namespace cputrain::commands {

using FindSimulator = std::function<simulation::Simulator()>;

std::unique_ptr<cli::Command> make_bench();
std::unique_ptr<cli::Command> make_bench_step();
std::unique_ptr<cli::Command> make_bench_allreduce();
std::unique_ptr<cli::Command> make_bench_input();
std::unique_ptr<cli::Command> make_bench_kernels();
std::unique_ptr<cli::Command> make_tune();
std::unique_ptr<cli::Command> make_sweep();
std::unique_ptr<cli::Command> make_simulate(FindSimulator);
std::unique_ptr<cli::Command> make_report();

/// What measurements are asked for beside what a training is.
struct BenchOptions : cli::Options {
  std::optional<int> repeat;
  std::size_t bytes = 52'871'940;                      ///< of `bench allreduce`
  std::vector<int> micro_batches{1, 2, 4, 8, 11, 32};  ///< of `bench kernels`

  int repeats() const { return repeat.value_or(5); }
};

/// So many training images, or --limit-train: synthetic ones where no data are named. They are
/// drawn by seed, since the first of a folder may be all of one class.
inline data::DataSource open_images(const training::TrainingFlags& flags,
                                    const training::Services& services, std::size_t images,
                                    std::uint64_t seed) {
  data::DataRequest request = flags.data_request(seed);
  if (flags.data.empty()) request.spec = fmt::format("synthetic:{}", 2 * images);
  request.limit_train = flags.limit_train.value_or(images);
  data::DataSource source = services.data.open(request);
  source.validation.clear();
  return source;
}

/// What is looked for.
enum class Find { both, speed, rate };
constexpr auto names(Find) {
  return std::to_array<Name<Find>>(
      {{Find::both, "both"}, {Find::speed, "speed"}, {Find::rate, "rate"}});
}

struct TuneOptions : BenchOptions {
  std::optional<Find> asked;  ///< --find
  std::optional<int> most_batch, lr_steps;
  std::optional<double> min_lr, max_lr;

  Find find() const { return asked.value_or(Find::both); }
  bool finds_speed() const { return find() != Find::rate; }
  bool finds_rate() const {
    return find() == Find::rate || (find() == Find::both && !data.empty());
  }
  bool has_batch() const { return batch || batch_per_rank; }
};

/// Climbs the ladders of micro-batches and of batches that the options leave open. The training
/// then has the sizes that are advised. `rates`: a test that follows, for how long all will take.
/// Collective.
void tune_speed(training::Session&, training::TrainingSpec&, const TuneOptions&,
                const std::optional<tune::RateRange>& rates, tune::Findings& to);

/// The part, above 0 to 1, of what frozen layers make of its images that this training would keep
/// from its first epoch on; nothing where it keeps none. With synthetic images where no data are
/// named. Compiles it, silently, where layers are frozen. Collective; Error as a training.
std::optional<double> kept_part(training::Session&, const training::TrainingSpec&);

struct SweepOptions : cli::Options {
  sweep::SweepRequest sweep;
  std::string reference;
  std::set<std::string> of_trainings;  ///< names of flags that trainings have, too
};

/// The axes of `sweep`'s table, how its cells are measured, and flags of its trainings. Those of
/// them that are axes (scaling/cells/axes.h) take a list.
void add_sweep_flags(cli::Flags&, SweepOptions&, const cli::CommandLineChoices&);

/// Fills in what the sweep itself needs to know, such as what each backend can compute in.
/// Error(usage) for a precision or a backend of which no cell could be measured (single cells that
/// cannot are n/a), for combinations that make no sense, and for a missing --reference.
void settle_sweep(SweepOptions&, const cli::CommandLineChoices&);

/// The grid, and where and with what costs it is.
struct SimulateOptions : cli::Options {
  cells::SweepGrid grid{};
  std::string platform, costs;
  std::optional<double> clock_ghz, peak_share, memory_gb, memory_gbs, network_gbps;
  std::optional<int> measure_seconds, repeat;
};

void add_simulate_flags(cli::Flags&, SimulateOptions&);

/// The platform with what the flags change. Before costs are measured `here` is the machine's cores
/// alone. Error(usage) for flags that were typed and would change nothing.
simulation::Platform choose_platform(const SimulateOptions&, const training::Services&,
                                     const simulation::CostTable* costs);

/// The grid with what was left open. Error(usage) where it is too large or empty.
cells::SweepGrid planned_grid(cells::SweepGrid, const simulation::Platform&);

/// What of a training on GPUs is asked for. Error(usage) where its images are to stay on GPUs that
/// have no room for them.
simulation::GpuRun gpu_run(const SimulateOptions&, const training::TrainingSpec&,
                           const simulation::Platform&, std::size_t images);

/// Without flags of the environment that change nothing here, so commands leave them out.
SimulateOptions without_idle(SimulateOptions);

}  // namespace cputrain::commands
