#include "cli/commands/data_question.h"

#include <fmt/format.h>

namespace cputrain::cli {

void ask_for_data(const training::Session& session, const Config& config) {
  if (!config.data.empty()) return;
  training::say(
      session,
      fmt::format("No --data: {} synthetic images in the paper's shape. Was that meant? --data "
                  "FOLDER takes yours, a folder of images per class; --data synthetic says yes",
                  config.command == "eval" ? "evaluating on" : "training on"));
}

}  // namespace cputrain::cli
