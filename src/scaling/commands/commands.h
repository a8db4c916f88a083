#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "core/names.h"
#include "scaling/simulation/simulator.h"

/// Commands about many trainings, each made at the end of its file, and options that several have.
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

}  // namespace cputrain::commands
