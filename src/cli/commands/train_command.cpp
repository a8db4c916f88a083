#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/commands/dry_run.h"
#include "core/error.h"
#include "run/plan_lines.h"
#include "run/run_folder.h"
#include "run/run_logs.h"
#include "run/run_results.h"

namespace cputrain::cli {
namespace {

/// Trains on what is loaded; the exit code.
int train_loaded(job::TrainingJob& job, const std::filesystem::path& folder,
                 logging::Timeline& timeline) {
  const job::Session& session = job.session();
  const job::TrainingSpec& spec = job.plan().spec;
  system::SignalWatch& signals = *session.services.signals;
  run::say_plan(job);
  job.start();
  if (job.compiled().program->trying()) {
    job::say(session,
             "Convolutions try their algorithms in the first steps of epochs 1, 2, 3, 5, 9, ...");
  }
  run::RunResults results(job, folder);
  results.say_earlier();
  run::replace_run(session, job.plan(), folder);
  if (spec.flags.measure_limits) run::write_limits(session, folder);
  const auto reporter = run::make_reporter(job, folder);
  const auto armed = signals.arm([&results] { return results.save_and_say(); });
  try {
    const train::TrainResult result =
        job.run(*reporter, timeline, [&signals] { return signals.stop_requested(); });
    results.finish(result, *reporter);
    run::write_timeline(session, spec, timeline);
    job.check_replicas();
    session.communicator->barrier();  // nobody leaves before the weights are on disk
    return result.stopped ? signals.stop_code() : static_cast<int>(ExitCode::ok);
  } catch (const Error& error) {
    fail(error.code(), results.with_earlier(error.what()));
  }
}

}  // namespace

int run_train(const Config& config, const job::Services& services) {
  if (!config.json.empty() && !config.dry_run) {
    fail(ExitCode::usage, fmt::format("--json {}: a training writes metrics.jsonl into its folder; "
                                      "add --dry-run for the plan alone, or leave --json out",
                                      config.json));
  }
  const job::TrainingSpec spec = job::choose_training(config);
  const job::Session session = job::start_session(config, services);
  job::TrainingJob job = job::open_training(session, spec);
  job.compile();
  if (config.dry_run) {
    print_dry_run(job, config.json);
    return static_cast<int>(ExitCode::ok);
  }
  // The folder before the long work: a full disk or a wrong --out shows at once.
  const auto folder = run::open_run_folder(session, job.plan());
  logging::Timeline timeline = run::make_timeline(session, job.plan().spec, folder);
  job.load();
  return train_loaded(job, folder, timeline);
}

}  // namespace cputrain::cli
