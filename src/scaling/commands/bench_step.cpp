#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/bench/steps.h"
#include "scaling/commands/commands.h"
#include "system/lost_time.h"
#include "system/print.h"
#include "training/plan/compiled_training.h"
#include "training/plan/image_place.h"
#include "training/plan/training_memory.h"
#include "training/request/flag_grammars.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

/// Counting direct convolution.
double gflops_of(const Spread& images_per_second, const bench::StepTrial& trial) {
  return images_per_second.median * trial.graph().training_flops() / 1e9;
}

void print_measurement(const training::Session& session, const training::TrainingSpec& spec,
                       const bench::StepTrial& trial, const bench::StepFigures& figures,
                       int steps) {
  const Spread& rate = figures.images_per_second.front();
  const double achieved = gflops_of(rate, trial), peak = figures.limits.peak(spec.flags.precision);
  system::print(
      "{} at {}x{}, batch {}, {} x {}, micro-batch {}, {}: {:.1f} images/s (median of {}; {:.1f} "
      "to {:.1f})\n",
      spec.model->name, spec.image.height, spec.image.width, trial.plan().images(0),
      counted(session.communicator->size(), "rank"), counted(session.threads, "thread"),
      trial.plan().micro_batch(),
      training::backend_in_figures(session.backend->name(), word_of(spec.flags.precision)),
      rate.median, steps, rate.min, rate.max);
  system::print(
      "{:.0f} GFLOP/s counting direct convolution = {:.2f} of {:.0f} GFLOP/s, the {} peak "
      "measured in this run; triad {:.1f} GB/s; workspace {}\n",
      achieved, achieved / peak, peak, peak != figures.limits.fma_gflops ? "AMX" : "FMA",
      figures.limits.triad_gbs, bytes_text(static_cast<double>(trial.program().workspace_bytes())));
}

// Times of layers are of `images` a step and of so many steps.

void print_layers(const std::vector<compute::LayerTime>& layers, double images, int steps) {
  constexpr std::size_t kNarrowest = 22;
  const std::size_t width = bench::name_width(layers, kNarrowest);
  system::print(
      "\nms per step (mean of {}) on rank 0, GFLOP/s of direct convolution, and what is not zero "
      "of the map that is read and of the gradient that comes back\n"
      "{:<{}}{:>10}{:>8}{:>10}{:>8}{:>10}{:>8}{:>7}{:>7}  {}\n",
      steps, "layer", width, "forward", "", "bwd data", "", "bwd wei.", "", "map", "grad.",
      "algorithm");
  for (const compute::LayerTime& layer : layers) {
    const auto cell = [&](double seconds) {
      const double rate = compute::gflops(layer.macs, images, seconds / steps);
      return seconds == 0 ? fmt::format("{:>10}{:>8}", "", "")
                          : fmt::format("{:>10.2f}{:>8}", 1e3 * seconds / steps,
                                        rate > 0 ? fmt::format("{:.0f}", rate) : "");
    };
    system::print("{}{}{}{}{:>7}{:>7}  {}\n", in_columns(escaped(layer.name), width),
                  cell(layer.forward), cell(layer.backward_data), cell(layer.backward_weights),
                  compute::density_text(layer.density),
                  compute::density_text(layer.gradient_density), compute::algorithms_text(layer));
  }
}

Json layers_json(const std::vector<compute::LayerTime>& layers, double images, int steps) {
  Json list = Json::array();
  for (const compute::LayerTime& layer : layers) {
    Json& entry = list.emplace_back(Json{{"name", layer.name},
                                         {"algorithm", compute::algorithms_text(layer)},
                                         {"density", known(layer.density)},
                                         {"gradient_density", known(layer.gradient_density)}});
    for (const compute::LayerDirection& way : compute::kLayerDirections) {
      const double seconds = layer.*way.seconds / steps;
      entry[fmt::format("{}_seconds", way.name)] = seconds;
      entry[fmt::format("{}_gflops", way.name)] = compute::gflops(layer.macs, images, seconds);
    }
  }
  return list;
}

/// Time that others on its host had, in rounds of so many steps. Silent on a machine that was not
/// disturbed.
void print_disturbance(const CalmRounds& rounds, int steps) {
  if (rounds.left_out() == 0 && !rounds.gave_up()) return;
  system::print("{:.1f} % of a rank's CPU time went to others on its host (steal): ",
                100 * rounds.stolen_of_all().value_or(0));
  const auto each = static_cast<std::size_t>(steps);
  if (rounds.gave_up()) {
    system::print("too few steps were calm, so all count; try again at a quieter time\n");
  } else {
    system::print("{} of {} steps were left out, with {:.1f} % in those that count\n",
                  each * rounds.left_out(), each * rounds.measured(),
                  100 * rounds.stolen_of_counted().value_or(0));
  }
}

Json measurement_json(const training::Session& session, const training::TrainingSpec& spec,
                      const bench::StepTrial& trial, const bench::StepFigures& figures) {
  const double achieved = gflops_of(figures.images_per_second.front(), trial);
  return {{"bench", "step"},
          {"model", spec.model->name},
          {"image_size", spec.image.height},
          {"batch", trial.plan().images(0)},
          {"micro_batch", trial.plan().micro_batch()},
          {"ranks", session.communicator->size()},
          {"threads", session.threads},
          {"density", known(compute::density_of(figures.layers))},
          {"images_per_second", json_of(figures.images_per_second.front())},
          {"gflops", achieved},
          {"limit", training::limits_json(figures.limits)},
          {"fraction_of_peak", achieved / figures.limits.peak(spec.flags.precision)},
          {"workspace_bytes", trial.program().workspace_bytes()},
          {"backend", session.backend->facts().description},
          {"kernels_version", session.backend->facts().kernels_version},
          {"cpu", session.machine.cpu_model},
          {"cpu_id", to_json(session.machine.cpu_id)}};
}

/// What else is measured beside a reproducible step: the same micro-batch without it, and the
/// micro-batch that would be taken then.
std::vector<training::TrainingSpec> compared_with(const training::TrainingPlan& plan) {
  if (!plan.chunks) return {};
  const training::TrainingSpec& spec = plan.spec;
  training::TrainingSpec same = spec, usual = spec;
  for (training::TrainingSpec* other : {&same, &usual}) {
    other->flags.reproducible = false;
    other->plan.sharding = spec.flags.sharding;
  }
  same.flags.micro_batch = plan.chunks->images;
  usual.flags.micro_batch.reset();
  return {same, usual};
}

/// A training would keep what its frozen layers make of these images and compute it once. `first`
/// times each pass; this is the step of images that were met before. Null where there is none, or
/// where memory has no room for it beside the others.
std::unique_ptr<bench::StepTrial> kept_trial(const training::Session& session,
                                             training::TrainingPlan plan,
                                             std::shared_ptr<const data::DataSource> source,
                                             std::shared_ptr<const data::DecodedData> data,
                                             const bench::StepTrial& first) {
  const std::size_t views = training::views_of(plan, data->train.size());
  if (!training::features_of(plan, views, first.program())) return nullptr;
  plan.keeps_features = true;
  try {
    auto trial = std::make_unique<bench::StepTrial>(session, std::move(plan), std::move(source),
                                                    std::move(data));
    return trial->compiled().kept_features > 0 ? std::move(trial) : nullptr;
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;  // which all ranks have alike
    training::say(session,
                  fmt::format("Features: a step that keeps them has no room beside the first: {}",
                              bench::first_clause(error.what())));
    return nullptr;
  }
}

/// How much longer a step takes than another: 0.1 is 10 %.
double price(const Spread& rate, const Spread& other) { return other.median / rate.median - 1; }

/// Figures of the reproducible step, and of the one that compared_with() names.
void print_price(const std::vector<std::unique_ptr<bench::StepTrial>>& trials,
                 const std::vector<Spread>& rates) {
  const int chunk = trials[1]->plan().micro_batch();
  system::print(
      "\nreproducible: {:+.1f} % of the time of a step with micro-batch {} and without it ({:.1f} "
      "images/s); micro-batch {} itself: {:+.1f} % against {} ({:.1f} images/s)\n",
      100 * price(rates[0], rates[1]), chunk, rates[1].median, chunk,
      100 * price(rates[1], rates[2]), trials[2]->plan().micro_batch(), rates[2].median);
}

Json price_json(const std::vector<std::unique_ptr<bench::StepTrial>>& trials,
                const std::vector<Spread>& rates) {
  return {{"leaf", trials[1]->plan().micro_batch()},
          {"price", price(rates[0], rates[1])},
          {"without", json_of(rates[1])},
          {"price_of_leaf", price(rates[1], rates[2])},
          {"usual_micro_batch", trials[2]->plan().micro_batch()},
          {"usual", json_of(rates[2])}};
}

/// The step of images whose features are kept, or that `part` of them.
void print_kept(const Spread& rate, const Spread& kept, double part) {
  const std::string what =
      part < 1 ? fmt::format(
                     "what they make of images has room in memory ({:.0f} % of all views) "
                     "and",
                     100 * part)
               : "what they make of all images of a step";
  system::print(
      "\nfrozen layers are computed in each step above; where {} is kept, as from the second "
      "epoch on: {:.1f} images/s ({:+.1f} %)\n",
      what, kept.median, 100 * (kept.median / rate.median - 1));
}

std::vector<double> per_image(std::vector<double> seconds, double images) {
  for (double& s : seconds) s /= images;
  return seconds;
}

void add_step_flags(cli::Flags& f, BenchOptions& c, const cli::CommandLineChoices& choices) {
  add_learning_flags(f, c, {"batch", "micro-batch", "shares"});
  add_stall_flags(f, c);
  add_machine_flags(f, c, choices);
  add_part(f, c, "input");
  add_part(f, c, "exchange");
  add_json_flag(f, c.json);
  f.whole("repeat", c.repeat, 1, 1000,
          "measured steps, up to three times as many where other work disturbs them [5, or up to "
          "25 that fill 8 seconds]");
}

void check_step(const BenchOptions& options, const cli::CommandLineChoices&) {
  check_partial(options);
}

ExitCode run_step(const BenchOptions& options, const training::Services& services) {
  training::TrainingSpec spec = training::choose_training(options);
  spec.plan.growth.clear();  // every step of a measurement is like the first
  const training::Session session = training::start_session(options, services);
  const int ranks = session.communicator->size();
  training::fit_to_ranks(spec, ranks);
  const std::size_t images_of_a_step = spec.batch * static_cast<std::size_t>(spec.plan.accumulate);
  const auto source = std::make_shared<const data::DataSource>(
      open_images(spec.flags, services, images_of_a_step, spec.seed));
  training::follow_ready_form(spec, *source);
  const auto data = std::make_shared<const data::DecodedData>(
      training::decode_images(session, spec.flags, *source, training::image_form(spec)));
  const int classes = training::classes_of(spec, *source);
  const auto memory = training::rank_memory(training::measure_capacities(session), 0);
  const training::TrainingPlan plan = training::plan_training(session, spec, classes, memory);
  std::vector<std::unique_ptr<bench::StepTrial>> trials;
  const auto add = [&](training::TrainingPlan timed) {
    timed.keeps_features = false;
    trials.push_back(std::make_unique<bench::StepTrial>(session, std::move(timed), source, data));
  };
  add(plan);
  for (const training::TrainingSpec& other : compared_with(plan)) {
    add(training::plan_training(session, other, classes, memory));
  }
  double kept_part = 0;
  if (auto kept = kept_trial(session, plan, source, data, *trials.front())) {
    kept_part = kept->compiled().kept_features;
    trials.push_back(std::move(kept));
  }
  const bench::StepFigures figures = bench::run_trials(session, trials, options.repeat);
  const auto& [limits, rounds, each, rates, layer_steps, layers, waited] = figures;
  const bench::StepTrial& trial = *trials[0];

  // Times of layers are rank 0's.
  const double own_images =
      static_cast<double>(data::share(trial.plan().images(0), 0, ranks).size());
  const int counted = each * static_cast<int>(rounds.counted());
  const int steps = each * static_cast<int>(rounds.measured());
  if (session.leads() && options.prints()) {
    print_measurement(session, spec, trial, figures, counted);
    print_disturbance(rounds, each);
    if (waited.value_or(0) >= system::kWaitWorthSaying) {
      system::print("threads of a rank waited {:.0f} % of their time for a CPU ({})\n",
                    100 * *waited, system::cpu_wait_reason(session.plan.crowding > 1));
    }
    print_layers(layers, own_images, layer_steps);
    if (options.reproducible) print_price(trials, rates);
    if (kept_part > 0) print_kept(rates.front(), rates.back(), kept_part);
  }
  Json result = measurement_json(session, spec, trial, figures);
  result["every_step"] = json_of(spread_of(trial.images_per_second()));
  result["cpu_seconds_per_image"] = json_of(spread_of(per_image(trial.cpu_seconds(), own_images)));
  result["repeats"] = counted;
  result["left_out"] = steps - counted;
  result[kStolen] = known(rounds.stolen_of_counted());
  result[kCpuWait] = known(waited);
  result["layer_steps"] = layer_steps;
  result["layers"] = layers_json(layers, own_images, layer_steps);
  if (options.reproducible) result["reproducible"] = price_json(trials, rates);
  if (kept_part > 0) {
    result["features_kept"] = json_of(rates.back());
    result["features_kept"]["part"] = kept_part;
  }
  training::write_json(session, options.json, result);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_bench_step() {
  return cli::make_command<BenchOptions>(
      {.help =
           {.name = "bench",
            .topic = "step",
            .summary = "images/s and GFLOP/s of a training step",
            .about =
                "Measures training steps, layer by layer, beside the peak of the cores and of the "
                "memory.",
            .examples = {{"cputrain bench step --model dogcat --batch 128",
                          "Measures the paper's network."},
                         {"mpirun -np 4 cputrain bench step --batch 128 --json step.json",
                          "Measures four ranks together and writes all figures as JSON."}},
            .common = {"model", "image-size", "batch", "micro-batch", "backend", "precision",
                       "threads", "allreduce", "repeat", "json"}},
       .task = {.trains = false, .measures = true},
       .add_flags = add_step_flags,
       .check = check_step,
       .why_idle =
           [](const BenchOptions& options, const std::string& flag) {
             return why_idle_in_training(options, flag, {options.backend});
           },
       .run = run_step});
}

std::unique_ptr<cli::Command> make_bench() {
  return cli::make_group(
      {.name = "bench",
       .summary = "speed of steps, allreduce, input and kernels beside the limits",
       .about = "Measures parts of a training beside the limits of this machine.",
       .examples = {{"cputrain bench step", "Measures training steps of the default model."},
                    {"mpirun -np 4 cputrain bench allreduce",
                     "Measures the sum of gradients over four ranks."}},
       .others = "benchmark,benchmarks,profile,perf"});
}

}  // namespace cputrain::commands
