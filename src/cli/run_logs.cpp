#include "cli/run_logs.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/recipe_lines.h"
#include "cli/run_folder.h"
#include "core/error.h"
#include "core/files.h"
#include "report/profile.h"
#include "report/reporters.h"

namespace cputrain {
namespace {

/// A terminal that somebody looks at: mpirun gives ranks one without a width and copies what they
/// write there into its own output, which may be a file.
bool on_a_screen() {
  winsize size{};
  return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
}

Verbosity verbosity(const Config& config) {
  const int standard = on_a_screen() ? 1 : 2;
  return static_cast<Verbosity>(std::min(config.verbose.value_or(standard), 2));
}

/// Of the whole training, unless it reaches its target earlier.
std::size_t steps_of(const Config& config, const TrainingChoices& choices, const BatchPlan& plan) {
  if (config.steps) return *config.steps;
  std::size_t steps = 0;
  for (int epoch = 0; epoch < choices.epochs; ++epoch) steps += plan.in_epoch(epoch).steps();
  return steps;
}

RunFacts facts_of(const Session& session, const Config& config, const TrainingChoices& choices,
                  int classes, const BatchPlan& plan, std::size_t validation_images) {
  return {.model = choices.model->name,
          .data = config.data.empty() ? "synthetic" : config.data,
          .platform = fmt::format("{}, {} ranks of {} threads", session.machine.cpu_model,
                                  session.communicator->size(), session.threads),
          .optimizer = std::string(rule_name(choices.optimizer.rule)),
          .allreduce = session.communicator->size() > 1 ? to_text(config.allreduce) : "",
          .batch = choices.batch,
          .train_images = plan.samples(),
          .validation_images = validation_images,
          .ranks = session.communicator->size(),
          .classes = classes,
          .steps = steps_of(config, choices, plan),
          .epochs = training_epochs(plan, choices.epochs, config.steps),
          .learning_rate = full_rate(choices),
          .seed = choices.seed,
          .seconds_of_start = session.since_start.seconds()};
}

bool asks_for(const Config& config, std::string_view format) {
  return std::ranges::find(config.log_formats, format) != config.log_formats.end();
}

/// What this rank's clock shows more than rank 0's, in seconds: processes of one host read the same
/// clock; of others the median of what they show when all leave a barrier, some of its time wrong.
double clock_offset(const Session& session) {
  constexpr int kRounds = 9;
  std::vector<double> offsets;
  for (int i = 0; i < kRounds; ++i) {
    session.communicator->barrier();
    const auto clocks = session.communicator->gather(fmt::format("{:.17g}", Timeline::now()));
    const auto rank = static_cast<std::size_t>(session.communicator->rank());
    offsets.push_back(std::stod(clocks[rank]) - std::stod(clocks.front()));
  }
  std::ranges::sort(offsets);
  const bool same_host = session.place().host == session.plan.ranks.front().host;
  return same_host ? 0 : offsets[kRounds / 2];
}

void check_timeline(const Config& config, const std::filesystem::path& folder) {
  const std::filesystem::path path = std::filesystem::absolute(config.timeline);
  std::error_code ignored;
  const bool own = std::filesystem::equivalent(path.parent_path(), folder, ignored) &&
                   std::ranges::find(kRunFiles, path.filename()) != std::end(kRunFiles);
  if (!own && (config.overwrite || !std::filesystem::is_regular_file(path, ignored))) return;
  fail(ExitCode::usage,
       fmt::format("--timeline {}: {}; take another name{}", config.timeline,
                   own ? "the run writes a file of its own there" : "is there already",
                   own ? "" : ", or --overwrite"));
}

}  // namespace

std::unique_ptr<Reporter> make_reporter(const Session& session, const Config& config,
                                        const TrainingChoices& choices, int classes,
                                        const Program& program, const BatchPlan& train,
                                        std::size_t validation_images,
                                        const std::filesystem::path& folder) {
  if (!session.leads()) return all_of({});
  Verbosity shown = verbosity(config);
  // Lines for programs need a line of their own, which a bar that is redrawn would not leave them.
  const bool for_programs = asks_for(config, "tf_cnn_benchmarks");
  if (for_programs && shown == Verbosity::bar) shown = Verbosity::lines;
  const RunFacts facts = facts_of(session, config, choices, classes, train, validation_images);
  std::vector<std::unique_ptr<Reporter>> reporters;
  reporters.push_back(console_reporter(stdout, shown, session.plan.crowding > 1));
  if (shown == Verbosity::lines && !on_a_screen()) {
    reporters.push_back(progress_reporter(stderr));
  }
  reporters.push_back(json_lines_reporter(folder / "metrics.jsonl", config.log_every));
  reporters.push_back(tensorboard_reporter(folder, session.machine.host, config.log_every));
  reporters.push_back(csv_reporter(folder / "training.csv"));
  reporters.push_back(history_reporter(folder / "history.json"));
  if (asks_for(config, "mlperf")) {
    reporters.push_back(mlperf_reporter(folder / kMlperfName, facts));
  }
  if (asks_for(config, "dawnbench")) reporters.push_back(dawnbench_reporter(folder, facts));
  if (for_programs) {
    reporters.push_back(benchmark_lines_reporter(stdout, facts, config.log_every));
  }
  if (config.profile) {
    reporters.push_back(profile_reporter([&program] { return program.layer_times(); },
                                         shown == Verbosity::silent ? nullptr : stdout,
                                         folder / kProfileName));
  }
  return all_of(std::move(reporters));
}

Timeline make_timeline(const Session& session, const Config& config,
                       const std::filesystem::path& folder) {
  const int ranks = session.communicator->size();
  if (config.timeline.empty()) return Timeline(StepRange{}, ranks);
  if (session.leads()) {
    check_timeline(config, folder);
    write_file(config.timeline, timeline_json({}, {}));
  }
  return Timeline(config.timeline_steps, ranks);
}

void write_timeline(const Session& session, const Config& config, const Timeline& timeline) {
  if (!timeline.wanted()) return;
  const auto texts = session.communicator->gather(timeline_text(timeline, clock_offset(session)));
  if (!session.leads()) return;
  std::vector<std::string> hosts;
  for (const RankPlan& plan : session.plan.ranks) hosts.push_back(plan.host);
  write_file(config.timeline, timeline_json(texts, hosts));
  say(session,
      "Timeline: " + config.timeline + " (open it in https://ui.perfetto.dev or chrome://tracing)");
}

}  // namespace cputrain
