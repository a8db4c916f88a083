#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/budget_json.h"
#include "core/json_text.h"
#include "logging/reporters.h"
#include "system/files.h"

namespace cputrain::logging {
namespace {

using Json = nlohmann::ordered_json;

/// NaN and infinities are not JSON: null, and a mark beside it.
void put(Json& object, const char* key, double value) {
  if (std::isfinite(value)) {
    object[key] = value;
  } else {
    object[key] = nullptr;
    object["nan"] = true;
  }
}

/// Null where it is not known, as the accuracy of a loss that is no number.
Json known(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json epoch_json(const EpochRecord& r) {
  Json line{{"type", "epoch"},
            {"epoch", r.epoch},
            {"steps", r.steps},
            {"images", static_cast<std::uint64_t>(r.train.images)},
            {"seconds", r.seconds},
            {"images_per_second", r.seconds > 0 ? r.train.images / r.seconds : 0}};
  put(line, "loss", r.train.mean_loss());
  line["accuracy"] = known(r.train.accuracy());
  if (r.train.top_five()) line["top_5_accuracy"] = *r.train.top_five();
  if (r.validation) {
    put(line, "val_loss", r.validation->mean_loss());
    line["val_accuracy"] = known(r.validation->accuracy());
    if (r.validation->top_five()) line["val_top_5_accuracy"] = *r.validation->top_five();
    line["val_seconds"] = r.validation_seconds;
  }
  line["lr"] = r.learning_rate;
  line["budget"] = json_of(r.budget);
  line["settled"] = {{"steps", r.settled.steps},
                     {"seconds", r.settled.seconds},
                     {"budget", json_of(r.settled.budget)}};
  if (r.straggler) {
    line["straggler"] = {{"rank", r.straggler->rank},
                         {"host", r.straggler->host},
                         {"seconds", r.straggler->seconds}};
  }
  line["stolen"] = known(r.stolen);
  line["cpu_wait"] = known(r.cpu_wait);
  return line;
}

class JsonLines final : public Reporter {
 public:
  JsonLines(const std::filesystem::path& path, std::size_t log_every)
      : file_(path), log_every_(log_every) {}

  void begin_epoch(const EpochStart&) override {}

  void step(const StepRecord& r) override {
    if (log_every_ == 0 || r.step % log_every_ != 0) return;
    Json line{{"type", "step"},
              {"step", r.step},
              {"epoch", r.epoch},
              {"images", static_cast<std::uint64_t>(r.tally.images)},
              {"images_seen", images_before_ + static_cast<std::uint64_t>(r.epoch_tally.images)}};
    put(line, "loss", r.tally.mean_loss());
    line["accuracy"] = known(r.tally.accuracy());
    line["lr"] = r.learning_rate;
    line["seconds"] = r.seconds;
    if (r.trying) line["trying"] = true;
    file_.write_line(json_text(line));
  }

  void epoch(const EpochRecord& r) override {
    images_before_ += static_cast<std::uint64_t>(r.train.images);
    file_.write_line(json_text(epoch_json(r)));
  }

  void summary(const SummaryRecord& r) override {
    Json line{{"type", "summary"},    {"outcome", r.outcome},
              {"steps", r.steps},     {"epochs", r.epochs},
              {"seconds", r.seconds}, {"training_seconds", r.training_seconds}};
    if (r.last) {
      const Json last = epoch_json(*r.last);
      for (const char* key : {"loss", "accuracy", "top_5_accuracy", "val_loss", "val_accuracy",
                              "val_top_5_accuracy"}) {
        if (last.contains(key)) line[key] = last[key];
      }
    }
    if (r.target_accuracy) line["target_accuracy"] = *r.target_accuracy;
    if (r.reached) {
      line["time_to_accuracy"] = {{"accuracy", r.reached->accuracy},
                                  {"epoch", r.reached->epoch},
                                  {"seconds", r.reached->seconds}};
    } else if (r.target_accuracy) {
      line["time_to_accuracy"] = nullptr;
    }
    line["weights_hash"] = r.weights_hash;
    line["weights"] = r.weights_file;
    file_.write_line(json_text(line));
  }

 private:
  system::LineFile file_;
  std::size_t log_every_;
  std::uint64_t images_before_ = 0;  ///< of epochs that have ended
};

}  // namespace

std::unique_ptr<Reporter> json_lines_reporter(const std::filesystem::path& path,
                                              std::size_t log_every) {
  return std::make_unique<JsonLines>(path, log_every);
}

}  // namespace cputrain::logging
