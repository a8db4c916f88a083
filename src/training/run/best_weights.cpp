#include "training/run/best_weights.h"

#include <fmt/format.h>

#include "training/run/run_folder.h"

namespace cputrain::training {
namespace {

/// Whether the checkpoint has the best weights so far. Without them a file in the run's folder may
/// be of an epoch that is to be made anew: it goes where others are to take its place.
bool restore_best(const std::filesystem::path& run, const std::filesystem::path& checkpoint,
                  bool keeps_best) {
  const std::filesystem::path from = checkpoint / checkpoint::kBestName, to = run / kBestName;
  std::error_code ignored;
  const bool known = std::filesystem::exists(from, ignored);
  if (known) {
    copy_durably(from, to);
  } else if (keeps_best) {
    std::filesystem::remove(to, ignored);
  }
  return known;
}

}  // namespace

bool take_up_best(const Training& training, const std::filesystem::path& run,
                  const std::filesystem::path& checkpoint, loop::Progress& progress) {
  const Session& session = training.session();
  const SafetyFlags& safety = training.plan().spec.flags.safety;
  const int mine = session.leads() && restore_best(run, checkpoint, safety.keeps_best()) ? 1 : 0;
  const bool known = comm::gather_values(*session.communicator, mine).front() == 1;
  if (progress.best.epoch == 0 || known == safety.keeps_best()) return known;
  if (known) {
    say(session, fmt::format("{} stays that of epoch {}: later ones are not compared with it "
                             "without --save-best",
                             kBestName, progress.best.epoch));
    return true;
  }
  say(session,
      fmt::format("The best weights so far, of epoch {} (val_loss {:.4f}), were not kept: --{} "
                  "begins anew with the epochs from here on",
                  progress.best.epoch, progress.best.loss,
                  safety.save_best ? "save-best" : "early-stopping"));
  progress.best = {};
  progress.patience = {};
  return false;
}

void say_missing_best(const Session& session, const std::filesystem::path& run,
                      const SafetyFlags& safety) {
  std::error_code ignored;
  if (!session.leads() || !safety.keeps_best()) return;
  if (std::filesystem::exists(run / kBestName, ignored)) return;
  warn(session, fmt::format("there is no {} in {}: the run ended without best weights; more "
                            "--epochs keep those of the epochs that follow",
                            kBestName, run.string()));
}

}  // namespace cputrain::training
