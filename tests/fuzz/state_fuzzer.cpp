#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/state_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "tests/fuzz/fuzzer.h"
#include "training/run/run_logs.h"

namespace cputrain::testing::state_fuzzer {
namespace {

using Json = nlohmann::ordered_json;

std::string state_text(const loop::Progress& progress) {
  return json_text(Json{{"format", checkpoint::kStateFormat},
                        {"progress", checkpoint::to_json(progress)},
                        {"findings_of", "cpu: avx512"},
                        {"ranks", 2},
                        {"logs", {{"metrics.jsonl", 1234}, {"train/events.out.tfevents.1", 5}}}},
                   1);
}

std::vector<std::string> seeds() {
  loop::Progress mid_epoch;
  mid_epoch.steps = 1234;
  mid_epoch.epochs = 7;
  mid_epoch.begun = loop::EpochSums{.steps = 34, .skipped = 1, .from_features = 9};
  mid_epoch.begun->train.loss = std::nan("");
  mid_epoch.best = {.loss = 0.25, .epoch = 5};
  mid_epoch.patience = {.loss = 0.375, .waited = 2};
  mid_epoch.reached = loop::TimeToAccuracy{};
  mid_epoch.left_out = {17, 99};
  mid_epoch.tuned_methods = "conv1 winograd";
  mid_epoch.last_rate = std::numeric_limits<double>::denorm_min();
  loop::Progress by_accuracy = mid_epoch;
  by_accuracy.best.accuracy = 0.875;
  by_accuracy.patience.accuracy = 0.75;
  by_accuracy.plateau.best_accuracy = 0.5;
  return {state_text({}), state_text(mid_epoch), state_text(by_accuracy)};
}

bool takes(const std::string& text) {
  return is_taken([&] {
    const Json state = checkpoint::parse_state(text);
    if (const auto logs = state.find("logs"); logs != state.end()) {
      // Where there are no logs nothing is cut: the names and numbers are looked at.
      is_taken([&] { training::cut_logs("/nonexistent", *logs); });
    }
    const loop::Progress progress = checkpoint::progress_of_state(state);
    const std::string again = json_text(checkpoint::to_json(progress));
    const auto back = checkpoint::progress_of(Json::parse(again));
    promise(json_text(checkpoint::to_json(back)) == again, "every number comes back");
  });
}

const Fuzzer kFuzzer{"state", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::state_fuzzer
