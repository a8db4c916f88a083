#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.h"
#include "cli/dry_run.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "job/open_training.h"
#include "job/recipe_lines.h"
#include "job/run_folder.h"
#include "job/run_logs.h"
#include "job/start_weights.h"
#include "job/training_plans.h"
#include "logging/profile.h"
#include "logging/reporters.h"
#include "system/files.h"
#include "system/tell.h"
#include "train/trainer.h"
#include "train/weights.h"

namespace cputrain {
namespace {

constexpr int kVerboseMap = 3;  ///< --verbose: lines of an epoch, and the map of all ranks

/// Which images batch normalization's statistics are of.
std::string batch_norm_line(const TrainingFlags& flags, const BatchPlan& plan, std::size_t ranks) {
  const std::size_t images = std::min(plan.images(0), plan.global_batch());
  const std::size_t share = (images + ranks - 1) / ranks;
  if (flags.sync_bn) {
    return fmt::format(
        "Batch normalization: statistics of all {} images of a batch, over all ranks", images);
  }
  return fmt::format(
      "Batch normalization: statistics of up to {} images of one rank (the curve depends on the "
      "number of ranks; --sync-bn takes all images); moving statistics are averaged over ranks",
      std::min(share, static_cast<std::size_t>(plan.micro_batch())));
}

/// What a person should know before the first step.
void say_plan(const Session& session, const TrainingSpec& spec, const Graph& graph,
              const BatchPlan& plan) {
  for (const std::string& line : session.plan.lines) say(session, line);
  for (const std::string& warning : session.plan.warnings) warn(session, warning);
  if (spec.flags.verbose.value_or(0) >= kVerboseMap) {
    for (const std::string& line : map_of(session.plan)) say(session, "  " + line);
  }
  say(session, fmt::format("Backend: {}; ranks: {}", session.backend->describe(),
                           session.communicator->describe()));
  say(session, fmt::format("Model {}: {} parameters, {:.3g} GFLOP an image and training step "
                           "(`cputrain info --model {}` lists the layers)",
                           spec.model->name, with_commas(graph.parameter_count()),
                           graph.training_flops() / 1e9, spec.model->spec));
  const std::size_t ranks = static_cast<std::size_t>(session.communicator->size());
  const std::size_t images = std::min(plan.images(0), plan.global_batch());
  const std::size_t least = images / ranks, most = (images + ranks - 1) / ranks;
  say(session,
      fmt::format("Batch {} over {} rank{}: {} images a rank, {} steps an epoch; {} {:g}, seed {}",
                  spec.batch, ranks, ranks == 1 ? "" : "s",
                  least == most ? fmt::format("{}", most) : fmt::format("{} or {}", least, most),
                  plan.steps(), rule_name(spec.optimizer.rule), full_rate(spec), spec.seed));
  for (const std::string& line : recipe_lines(spec, plan)) say(session, line);
  for (const std::string& warning : recipe_warnings(spec, plan)) warn(session, warning);
  if (graph.has_batch_norm()) say(session, batch_norm_line(spec.flags, plan, ranks));
  if (spec.batch > plan.samples()) {
    warn(session, fmt::format("--batch {} is larger than the {} training images (every epoch "
                              "is one step); a smaller batch learns more in the same time",
                              spec.batch, plan.samples()));
  }
  if (!spec.flags.freeze.empty()) {
    say(session, fmt::format("Frozen: {} of {} parameters learn", with_commas(graph.learnt_count()),
                             with_commas(graph.parameter_count())));
  }
  if (spec.flags.data.empty()) {
    say(session, "No --data: training on synthetic pictures in the paper's shape");
  }
}

/// The run's results: weights on disk, and the lines that say so.
class Results {
 public:
  Results(const Session& session, std::filesystem::path folder, const ModelDescription& model,
          Training& training, std::optional<double> target_accuracy)
      : session_(session),
        folder_(std::move(folder)),
        model_(model),
        training_(training),
        target_accuracy_(target_accuracy) {
    std::error_code ignored;
    has_earlier_ = session.leads() && std::filesystem::exists(weights_path(), ignored);
  }

  std::filesystem::path weights_path() const { return folder_ / kWeightsName; }

  /// Saves these weights, which nobody changes meanwhile.
  void save(const Array& weights, Durability durability) {
    save_weights(weights_path(), model_, *training_.program, weights, durability);
    has_earlier_ = false;
  }

  /// What happened to this run, and of which one the weights in the folder are, if not of this one.
  std::string with_earlier(const std::string& what) const {
    if (!has_earlier_) return what;
    return fmt::format("{}; {} is still of the run before this one", what, weights_path().string());
  }

  void say_earlier() const {
    if (!has_earlier_) return;
    say(session_,
        fmt::format("Weights of an earlier run stay in {} until this one has saved its own",
                    weights_path().string()));
  }

  /// The answer to SIGTERM.
  int save_and_say() {
    if (!session_.leads()) {
      // Open MPI kills the others as soon as one rank is gone: let rank 0 save first.
      std::this_thread::sleep_for(std::chrono::seconds(3));
      return static_cast<int>(ExitCode::stopped);
    }
    try {
      save_between_steps();
      tell(fmt::format("cputrain: terminated; weights of the last completed step are in {}",
                       weights_path().string()));
      return static_cast<int>(ExitCode::stopped);
    } catch (const Error& error) {
      tell(fmt::format("cputrain: {}", with_earlier(error.what())));
      return static_cast<int>(error.code());
    }
  }

  /// While the mutex is held this rank changes no weights, but others of its node may, where they
  /// share one copy: a copy of it is of a completed step if its version was the same before and
  /// after. Keeps the mutex for good in the end, so that no later step is made and told before the
  /// exit.
  void save_between_steps() {
    constexpr int kTries = 500;  // of some ms; mpirun leaves a second or two
    const Array weights = training_.exchange->arenas().weights;
    Memory& memory = session_.backend->memory();
    const OwnedArray copy(memory, weights.size, weights.dtype);
    for (int i = 0; i < kTries; ++i) {
      training_.weights_mutex.lock();
      const std::uint64_t before = training_.exchange->weights_version();
      if (before % 2 == 0) {
        memory.copy(weights.data, copy.array().data, copy.bytes());
        if (training_.exchange->weights_version() == before) {
          return save(copy.array(),
                      Durability::process);  // a busy disk may take longer than mpirun waits
        }
      }
      training_.weights_mutex.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    fail(ExitCode::output,
         "terminated in the middle of a step that other ranks did not complete (the weights are of "
         "no step and were not saved); start again");
  }

  void finish(const TrainResult& result, Reporter& reporter) {
    if (!session_.leads()) return;
    {
      const std::lock_guard lock(training_.weights_mutex);  // SIGTERM may come now, too
      save(training_.exchange->arenas().weights, Durability::disk);
    }
    reporter.summary(
        {.outcome = result.stopped ? "interrupted" : "finished",
         .steps = result.steps,
         .epochs = result.epochs,
         .seconds = result.seconds,
         .training_seconds = result.training_seconds,
         .last = result.last,
         .target_accuracy = target_accuracy_,
         .reached = result.reached,
         .weights_hash = weights_hash(*training_.program, training_.exchange->arenas().weights),
         .weights_file = weights_path().string()});
    if (target_accuracy_) say(session_, accuracy_line(result, *target_accuracy_));
    say(session_, fmt::format("Weights: {}", weights_path().string()));
    say(session_, fmt::format("Run folder: {}", folder_.string()));
  }

 private:
  const Session& session_;
  std::filesystem::path folder_;
  const ModelDescription& model_;
  Training& training_;
  std::optional<double> target_accuracy_;
  std::atomic<bool> has_earlier_ =
      false;  ///< the weights that lie in the folder are of a run before this one
};

/// What these processors and their memory can do, measured in the same places, a moment before.
void write_limits(const Session& session, const std::filesystem::path& folder) {
  const Limits limits = measure_together(session);
  if (!session.leads()) return;
  const nlohmann::ordered_json json{{"fma_gflops", limits.fma_gflops},
                                    {"triad_gbs", limits.triad_gbs}};
  write_file(folder / kLimitsName, json_text(json, 2) + "\n");
}

/// What the folder's other files are of.
void describe_run(const Session& session, const Services& services, const TrainingSpec& spec,
                  int micro_batch, const std::filesystem::path& folder) {
  write_file(folder / "config.json", json_text(from_any_folder(effective_flags(spec)), 2) + "\n");
  write_file(folder / "environment.json",
             json_text(environment_json(session, services, micro_batch), 2) + "\n");
}

std::filesystem::path open_run_folder(const Session& session, const Services& services,
                                      const TrainingSpec& spec, int micro_batch) {
  if (!session.leads()) return {};
  const auto folder = make_run_folder(spec, session.communicator->size());
  if (holds_run(folder)) {
    // Tries that the folder can be written; the earlier config.json stays until this training
    // starts.
    const AtomicFile tried(folder / "config.json");
  } else {
    describe_run(session, services, spec, micro_batch, folder);
  }
  return folder;
}

/// Makes room for this run's files where another run's are; of those the weights alone stay.
void replace_run(const Session& session, const Services& services, const TrainingSpec& spec,
                 int micro_batch, const std::filesystem::path& folder) {
  if (!session.leads() || !holds_run(folder)) return;
  clear_run_folder(folder);
  describe_run(session, services, spec, micro_batch, folder);
}

std::vector<std::string> hosts_of(const Session& session) {
  std::vector<std::string> hosts;
  for (const RankPlan& plan : session.plan.ranks) hosts.push_back(plan.host);
  return hosts;
}

ModelDescription description_of(const Session& session, const TrainingSpec& spec,
                                const DataSource& source, const Graph& graph, int classes,
                                const Training& training) {
  return {spec.model->name,
          class_names(source, classes),
          graph,
          spec.seed,
          spec.flags.validation_split.value_or(kValidationSplit),
          spec.resize,
          spec.flags.reproducible ? session.backend->kernels() : "",
          training_data(session, spec, source, training.start.get())};
}

/// Replicas that drifted apart (other processors, a damaged memory) must not pass for one model.
void check_replicas(const Session& session, const Training& training) {
  const Array weights = training.exchange->arenas().weights;
  check_agreement(session, "their weights after training",
                  fmt::format("{:016x}", hash_of(session.backend->memory(), weights)));
}

/// Trains on what was decoded; the exit code.
int train_opened(const Services& services, const OpenedTraining& opened, const DecodedData& data,
                 const TrainingPlans& plans, CompiledTraining compiled,
                 const std::filesystem::path& folder, Timeline& timeline) {
  const auto& [spec, session, source, classes, graph, micro_batch] = opened;
  say_plan(session, spec, graph, plans.train);
  const auto training = make_training(session, services, spec, graph, source, data.train,
                                      plans.train, std::move(compiled));
  const auto val_batches =
      services.data.batches(data.validation, plans.validation, {.shuffle = false});
  const auto validation = data.validation.size()
                              ? std::optional(Validation{*val_batches, plans.validation})
                              : std::nullopt;
  if (training->program->trying()) {
    say(session,
        "Convolutions try their algorithms in the first steps of epochs 1, 2, 3, 5, 9, ...");
  }
  const ModelDescription model = description_of(session, spec, source, graph, classes, *training);
  training->start.reset();
  Results results(session, folder, model, *training, spec.flags.target_accuracy);
  results.say_earlier();
  replace_run(session, services, spec, micro_batch, folder);
  if (spec.flags.measure_limits) write_limits(session, folder);
  const auto reporter = make_reporter(session, spec, classes, *training->program, plans.train,
                                      data.validation.size(), folder);
  const auto armed = services.signals->arm([&results] { return results.save_and_say(); });
  try {
    const TrainResult result =
        train({*session.backend, *training->program, *training->exchange, *training->optimizer,
               *training->learning_rate, *session.communicator, *training->batches, plans.train,
               training->weights_mutex, timeline},
              validation,
              {.epochs = spec.epochs,
               .steps = spec.flags.steps,
               .settled_steps = spec.flags.settled_steps.value_or(0),
               .seed = spec.seed,
               .target_accuracy = spec.flags.target_accuracy,
               .hosts = hosts_of(session),
               .cpus = session.place().cpus},
              *reporter, [&] { return services.signals->stop_requested(); });
    check_weights(*session.communicator, session.backend->memory(),
                  training->exchange->arenas().weights);
    results.finish(result, *reporter);
    write_timeline(session, spec, timeline);
    check_replicas(session, *training);
    session.communicator->barrier();  // nobody leaves before the weights are on disk
    return result.stopped ? services.signals->stop_code() : static_cast<int>(ExitCode::ok);
  } catch (const Error& error) {
    fail(error.code(), results.with_earlier(error.what()));
  }
}

}  // namespace

int run_train(const Config& config, const Services& services) {
  if (!config.json.empty() && !config.dry_run) {
    fail(ExitCode::usage, fmt::format("--json {}: a training writes metrics.jsonl into its folder; "
                                      "add --dry-run for the plan alone, or leave --json out",
                                      config.json));
  }
  const OpenedTraining opened = open_training(config, services);
  const auto& [spec, session, source, classes, graph, micro_batch] = opened;
  const TrainingPlans listed = opened.plans(source.train.size(), source.validation.size());
  CompiledTraining compiled =
      compile_before_decoding(session, services, spec, graph, source, listed);
  if (config.dry_run) {
    print_dry_run(session, spec, graph, listed.train, compiled, config.json);
    return static_cast<int>(ExitCode::ok);
  }
  // The folder before the long work: a full disk or a wrong --out shows at once.
  const auto folder = open_run_folder(session, services, spec, micro_batch);
  Timeline timeline = make_timeline(session, spec, folder);
  const DecodedData data =
      decode_with_progress(session, services, spec.flags, source, spec.image, spec.resize);
  const TrainingPlans plans = opened.plans(data.train.size(), data.validation.size());
  if (!data.bad.empty()) {  // other shares, other numbers of images at once
    compiled = {};
    compiled = compile_after_decoding(session, services, spec, graph, source, plans);
  }
  return train_opened(services, opened, data, plans, std::move(compiled), folder, timeline);
}

}  // namespace cputrain
