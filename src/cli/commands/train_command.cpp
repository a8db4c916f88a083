#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/dry_run.h"
#include "core/error.h"
#include "run/plan_lines.h"
#include "run/run_folder.h"
#include "run/run_logs.h"
#include "run/run_results.h"

namespace cputrain {
namespace {

/// Trains on what is loaded; the exit code.
int train_loaded(TrainingJob& job, const std::filesystem::path& folder, Timeline& timeline) {
  const Session& session = job.session();
  const TrainingSpec& spec = job.plan().spec;
  SignalWatch& signals = *session.services.signals;
  say_plan(job);
  job.start();
  if (job.compiled().program->trying()) {
    say(session,
        "Convolutions try their algorithms in the first steps of epochs 1, 2, 3, 5, 9, ...");
  }
  RunResults results(job, folder);
  results.say_earlier();
  replace_run(session, job.plan(), folder);
  if (spec.flags.measure_limits) write_limits(session, folder);
  const auto reporter = make_reporter(job, folder);
  const auto armed = signals.arm([&results] { return results.save_and_say(); });
  try {
    const TrainResult result =
        job.run(*reporter, timeline, [&signals] { return signals.stop_requested(); });
    results.finish(result, *reporter);
    write_timeline(session, spec, timeline);
    job.check_replicas();
    session.communicator->barrier();  // nobody leaves before the weights are on disk
    return result.stopped ? signals.stop_code() : static_cast<int>(ExitCode::ok);
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
  const TrainingSpec spec = choose_training(config);
  const Session session = start_session(config, services);
  TrainingJob job = open_training(session, spec);
  job.compile();
  if (config.dry_run) {
    print_dry_run(job, config.json);
    return static_cast<int>(ExitCode::ok);
  }
  // The folder before the long work: a full disk or a wrong --out shows at once.
  const auto folder = open_run_folder(session, job.plan());
  Timeline timeline = make_timeline(session, job.plan().spec, folder);
  job.load();
  return train_loaded(job, folder, timeline);
}

}  // namespace cputrain
