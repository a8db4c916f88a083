#include "logging/json_lines.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "logging/log_file.h"
#include "logging/reporters.h"
#include "system/bounded_file.h"

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

/// Null where it is not known, as the accuracy beside a loss that is not finite.
Json known(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json epoch_json(const loop::EpochRecord& r) {
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
  if (r.averaged) {
    put(line, "ema_val_loss", r.averaged->mean_loss());
    line["ema_val_accuracy"] = known(r.averaged->accuracy());
    if (r.averaged->top_five()) line["ema_val_top_5_accuracy"] = *r.averaged->top_five();
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
  if (r.skipped > 0) line["skipped"] = r.skipped;
  if (!r.kernels.empty()) line["kernels"] = r.kernels;
  return line;
}

/// The last epoch's line of a file that goes on; null where there is none.
Json last_epoch_of(const std::filesystem::path& path) {
  Json last;
  for_epoch_lines(path, [&](const nlohmann::json& line) { last = Json(line); });
  return last;
}

class JsonLines final : public RunReporter {
 public:
  JsonLines(const std::filesystem::path& path, std::size_t log_every, const LogPlace& place,
            system::WriteQueue* queue)
      : last_epoch_(place.goes_on() ? last_epoch_of(path) : Json()),
        file_(path, place.begin(), queue),
        log_every_(log_every),
        images_before_(place.progress.images) {}

  void resumed(const ResumeRecord& r) override {
    const loop::Progress& at = r.progress;
    Json line{{"type", "resume"},       {"step", at.steps},
              {"epoch", at.epochs + 1}, {"made", at.begun ? at.begun->steps : 0},
              {"ranks", r.ranks},       {"checkpoint", r.checkpoint}};
    if (!at.tuned_methods.empty()) line["kernels"] = at.tuned_methods;
    if (!at.left_out.empty()) line["left_out"] = at.left_out;
    if (r.lost_seconds) line["lost_seconds"] = *r.lost_seconds;
    file_.write_line(json_text(line));
  }

  void step(const loop::StepRecord& r) override {
    if (!is_logged(r, log_every_)) return;
    Json line{{"type", "step"},
              {"step", r.step},
              {"epoch", r.epoch},
              {"images", static_cast<std::uint64_t>(r.tally.images)},
              {"images_seen", images_before_ + static_cast<std::uint64_t>(r.epoch_tally.images)}};
    if (r.skipped) {
      line["skipped"] = true;
      line["loss"] = nullptr;
    } else {
      put(line, "loss", r.tally.mean_loss());
    }
    line["accuracy"] = known(r.tally.accuracy());
    line["lr"] = r.learning_rate;
    line["seconds"] = r.seconds;
    if (r.trying) line["trying"] = true;
    file_.write_line(json_text(line));
  }

  void epoch(const loop::EpochRecord& r) override {
    images_before_ += static_cast<std::uint64_t>(r.train.images);
    last_epoch_ = epoch_json(r);
    file_.write_line(json_text(last_epoch_));
  }

  void summary(const SummaryRecord& r) override {
    const loop::Progress& end = r.result.progress;
    Json line{{"type", "summary"},      {"outcome", r.result.stopped ? "interrupted" : "finished"},
              {"steps", end.steps},     {"epochs", end.epochs},
              {"seconds", end.seconds}, {"training_seconds", end.training_seconds}};
    for (const char* key : kEpochFigures) {
      if (last_epoch_.contains(key)) line[key] = last_epoch_[key];
    }
    if (end.best.epoch > 0) {
      line["best_epoch"] = end.best.epoch;
      line["best_loss"] = end.best.loss;
      line["best_accuracy"] = known(r.best_accuracy);
      line["monitor"] =
          word_of(end.best.accuracy ? optim::Monitor::accuracy : optim::Monitor::loss);
    }
    if (r.result.early_stopped) line["early_stopped"] = true;
    if (r.target_accuracy) line["target_accuracy"] = *r.target_accuracy;
    if (end.reached) {
      line["time_to_accuracy"] = {{"accuracy", end.reached->accuracy},
                                  {"epoch", end.reached->epoch},
                                  {"seconds", end.reached->seconds}};
    } else if (r.target_accuracy) {
      line["time_to_accuracy"] = nullptr;
    }
    if (r.memory) {
      line["peak_rank_bytes"] = r.memory->rank_bytes;
      line["peak_node_bytes"] = r.memory->node_bytes;
      if (r.memory->device_bytes) line["peak_device_bytes"] = *r.memory->device_bytes;
    }
    line["weights_hash"] = r.weights_hash;
    line["weights"] = r.weights_file;
    line["program"] = {{"seconds", r.program.all},
                       {"start_up", r.program.start_up},
                       {"training", r.program.training},
                       {"evaluation", r.program.evaluation},
                       {"other", r.program.other()}};
    line["checkpoint_seconds"] = r.checkpoint_seconds;
    if (!r.training.empty()) line["training"] = Json::parse(r.training);
    file_.write_line(json_text(line));
  }

 private:
  Json last_epoch_;  ///< the line of the last epoch that has ended, of an earlier part, too
  LogFile file_;
  std::size_t log_every_;
  std::uint64_t images_before_;  ///< in epochs that have ended
};

}  // namespace

std::unique_ptr<RunReporter> json_lines_reporter(const std::filesystem::path& path,
                                                 std::size_t log_every, const LogPlace& place,
                                                 system::WriteQueue* queue) {
  return std::make_unique<JsonLines>(path, log_every, place, queue);
}

void for_epoch_lines(const std::filesystem::path& path,
                     const std::function<void(const nlohmann::json& line)>& look) {
  constexpr system::BoundedLines::Limits kLimits{.file = std::uintmax_t{1} << 32,
                                                 .line = 1 << 20};  // far more than is written
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  try {
    system::BoundedLines lines(path, kLimits);
    while (const auto text = lines.next()) {
      const auto line = nlohmann::json::parse(*text, nullptr, false);
      if (line.is_object() && line.value("type", nlohmann::json()) == "epoch") look(line);
    }
  } catch (const std::runtime_error&) {  // what cannot be read is not there
  }
}

}  // namespace cputrain::logging
