#include "cli/commands/data_question.h"

#include <fmt/format.h>

namespace cputrain::cli {

void ask_for_data(const job::Session& session, const job::TrainingFlags& flags) {
  if (!flags.data.empty()) return;
  job::say(
      session,
      fmt::format("No --data: {} synthetic images in the paper's shape. Was that meant? --data "
                  "FOLDER takes yours, a folder of images per class; --data synthetic says yes",
                  flags.task.evaluates ? "evaluating on" : "training on"));
}

}  // namespace cputrain::cli
