#include "training/run/best_weights.h"

#include <fmt/format.h>

#include "system/files.h"
#include "training/run/run_folder.h"

namespace cputrain::training {
namespace {

/// Whether the checkpoint has the best weights so far. Without them a file in the run's folder may
/// be of an epoch that is to be made anew: it goes where others are to take its place.
bool restore_best(const std::filesystem::path& run, const std::filesystem::path& checkpoint,
                  bool replaced) {
  const std::filesystem::path from = checkpoint / checkpoint::kBestName, to = run / kBestName;
  std::error_code ignored;
  const bool known = std::filesystem::exists(from, ignored);
  if (known) {
    system::copy_durably(from, to);
  } else if (replaced) {
    std::filesystem::remove(to, ignored);
  }
  return known;
}

/// Says why the search begins anew: they were not kept, or were the best by another figure.
void say_begins_anew(const Session& session, const loop::BestEpoch& best, bool kept,
                     const SafetyFlags& safety) {
  const auto before = best.accuracy ? optim::Monitor::accuracy : optim::Monitor::loss;
  const std::string why = kept ? fmt::format("chosen by {}", word_of(before)) : "not kept";
  const std::string flag = kept               ? fmt::format("monitor {}", word_of(safety.monitor))
                           : safety.save_best ? "save-best"
                                              : "early-stopping";
  say(session, fmt::format("The best weights so far, of epoch {} (val_loss {:.4f}), were {}: --{} "
                           "begins anew with the epochs from here on",
                           best.epoch, best.loss, why, flag));
}

}  // namespace

bool take_up_best(const Training& training, const std::filesystem::path& run,
                  const std::filesystem::path& checkpoint, loop::Progress& progress) {
  const Session& session = training.session();
  const SafetyFlags& safety = training.plan().spec.flags.safety;
  // Where the search has just begun anew, the file is the best of before until an epoch is better.
  const bool replaced = safety.keeps_best() && progress.best.epoch > 0;
  const int mine = session.leads() && restore_best(run, checkpoint, replaced) ? 1 : 0;
  const bool known = comm::gather_values(*session.communicator, mine).front() == 1;
  if (progress.best.epoch == 0) return known;
  if (known && !safety.keeps_best()) {
    say(session, fmt::format("{} stays that of epoch {}: later ones are not compared with it "
                             "without --save-best",
                             kBestName, progress.best.epoch));
    if (progress.best.is_by(safety.monitor)) return true;
  } else if (known == safety.keeps_best() && progress.best.is_by(safety.monitor)) {
    return known;
  }
  if (safety.keeps_best()) say_begins_anew(session, progress.best, known, safety);
  progress.best = {};
  progress.patience = {};
  return known;
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
