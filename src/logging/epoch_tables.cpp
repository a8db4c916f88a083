// Keras' records of a training by epoch: CSVLogger's training.csv and fit's History as JSON.

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/json_text.h"
#include "core/text.h"
#include "logging/log_file.h"
#include "logging/reporters.h"
#include "runfiles/metrics.h"
#include "system/files.h"

namespace cputrain::logging {
namespace {

/// Keras' names and figures of an epoch, sorted by name as CSVLogger has them; nothing for an
/// accuracy beside a loss that is NaN or infinite.
using Logs = std::map<std::string, std::optional<double>>;

/// Keras has it where a callback sets the rate: what the epoch ended with.
constexpr const char* kRate = "learning_rate";
constexpr const char *kValidation = "val_", *kAveraged = "ema_val_";

void add(Logs& logs, const std::string& prefix, const compute::Tally& tally) {
  logs[prefix + "loss"] = tally.mean_loss();
  logs[prefix + "accuracy"] = tally.accuracy();
  if (tally.ranked > 0) logs[prefix + "top_5_accuracy"] = tally.top_five();
}

void add(Logs& logs, const std::string& prefix, const runfiles::Figures& figures) {
  logs[prefix + "loss"] = figures.loss;
  logs[prefix + "accuracy"] = figures.accuracy;
  if (figures.top_5_accuracy) logs[prefix + "top_5_accuracy"] = figures.top_5_accuracy;
}

/// Figures of an epoch, or of its line in metrics.jsonl.
template <class Epoch>
Logs logs_of(const Epoch& epoch) {
  Logs logs;
  add(logs, "", epoch.train);
  if (epoch.validation) add(logs, kValidation, *epoch.validation);
  if (epoch.averaged) add(logs, kAveraged, *epoch.averaged);
  logs[kRate] = epoch.learning_rate;
  return logs;
}

/// Python's csv dialect "excel": commas, lines that end in CRLF. Epochs count from 0.
class Csv final : public RunReporter {
 public:
  Csv(const std::filesystem::path& path, bool validation, bool averaged, const LogPlace& place,
      system::WriteQueue* queue)
      : validation_(validation),
        averaged_(averaged),
        columns_(place.goes_on() ? columns_of(path) : std::vector<std::string>()),
        file_(path, place.begin(), queue) {}

  void epoch(const loop::EpochRecord& r) override {
    const auto logs = logs_of(r);
    if (columns_.empty()) {
      columns_ = columns_for(r);
      write("epoch", columns_);
    }
    std::vector<std::string> values;
    for (const std::string& name : columns_) {
      const auto found = logs.find(name);  // not each epoch is evaluated
      const bool known = found != logs.end() && found->second;
      values.push_back(known ? fmt::format("{}", *found->second) : "NA");
    }
    write(std::to_string(r.epoch - 1), values);
  }

 private:
  /// Those of all epochs, as Keras 3 has them: the first one need not be evaluated. What came later
  /// to this program is last, so that columns of before keep their places.
  std::vector<std::string> columns_for(const loop::EpochRecord& first) const {
    loop::EpochRecord all = first;
    all.validation = all.averaged = std::nullopt;
    std::vector<std::string> trained, columns;
    for (const auto& [name, value] : logs_of(all)) {
      if (name != kRate) trained.push_back(name);
    }
    const auto add = [&](const std::string& prefix) {
      for (const std::string& name : trained) columns.push_back(prefix + name);
    };
    add("");
    if (validation_ || first.validation) add(kValidation);
    columns.emplace_back(kRate);
    if (averaged_ || first.averaged) add(kAveraged);
    return columns;
  }

  /// Those that a file which goes on has; none of another file, which then gets them.
  static std::vector<std::string> columns_of(const std::filesystem::path& path) {
    if (!has_lines(path)) return {};
    std::string line;
    std::ifstream file(path);
    if (!std::getline(file, line) || !line.starts_with("epoch,") || !line.ends_with('\r'))
      return {};
    line.pop_back();
    std::vector<std::string> columns = split(line, ',');
    columns.erase(columns.begin());
    return columns;
  }

  void write(const std::string& first, const std::vector<std::string>& rest) {
    file_.write_line(first + "," + join(rest, ",") + "\r");
  }

  bool validation_, averaged_;        ///< some epochs are evaluated so
  std::vector<std::string> columns_;  ///< from the first epoch on
  LogFile file_;
};

/// {"loss": [...], "accuracy": [...], ...}: a figure an epoch, the file written anew after each.
class History final : public RunReporter {
 public:
  History(std::filesystem::path path, const std::filesystem::path& metrics,
          system::WriteQueue* queue)
      : path_(std::move(path)), queue_(queue) {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);  // an earlier run's, or later than the place
    if (metrics.empty()) return;
    for (const auto& line : runfiles::read_metrics(metrics).epochs) {
      add(logs_of(line));
    }
    if (!history_.empty()) save();
  }

  void epoch(const loop::EpochRecord& r) override {
    add(logs_of(r));
    save();
  }

 private:
  /// The newest text. One that still waits for storage gives way to it: the whole history of each
  /// epoch would soon fill the queue.
  struct Waiting {
    std::mutex mutex{};
    std::optional<std::string> text{};

    std::string take() {
      const std::lock_guard lock(mutex);
      return *std::exchange(text, std::nullopt);
    }
  };

  void add(const Logs& logs) {
    for (const auto& [name, value] : logs) {
      const bool known = value && std::isfinite(*value);
      history_[name].push_back(known ? nlohmann::json(*value) : nlohmann::json());
    }
  }

  void save() const {
    std::string text = json_text(history_) + "\n";
    const std::size_t bytes = text.size();
    {
      const std::lock_guard lock(waiting_->mutex);
      if (std::exchange(waiting_->text, std::move(text))) return;  // its write is asked for
    }
    write_by(queue_, bytes, [path = path_, waiting = waiting_] {
      system::AtomicFile file(path);
      file.write(waiting->take());
      file.commit(system::Durability::process);
    });
  }

  std::filesystem::path path_;
  system::WriteQueue* queue_;
  nlohmann::json history_ = nlohmann::json::object();
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
};

}  // namespace

std::unique_ptr<RunReporter> csv_reporter(const std::filesystem::path& path, bool validation,
                                          bool averaged, const LogPlace& place,
                                          system::WriteQueue* queue) {
  return std::make_unique<Csv>(path, validation, averaged, place, queue);
}

std::unique_ptr<RunReporter> history_reporter(const std::filesystem::path& path,
                                              const std::filesystem::path& metrics,
                                              system::WriteQueue* queue) {
  return std::make_unique<History>(path, metrics, queue);
}

}  // namespace cputrain::logging
