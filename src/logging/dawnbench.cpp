// DAWNBench's two files: a table of "epoch, hours, top-1 accuracy in percent (and top-5 where there
// are more than five classes)", one line an evaluated epoch, and what ran, beside it.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "core/version.h"
#include "logging/log_file.h"
#include "logging/reporters.h"
#include "system/files.h"

namespace cputrain::logging {
namespace {

class DawnBench final : public Reporter {
 public:
  DawnBench(const std::filesystem::path& folder, const RunFacts& facts, const LogPlace& place,
            system::WriteQueue* queue)
      : file_(folder / "dawnbench.tsv", place.begin(), queue),
        many_classes_(facts.classes > 5),
        seconds_(place.training_seconds) {
    if (has_lines(folder / "dawnbench.tsv")) return;
    const nlohmann::ordered_json json{
        {"version", "v1.0"},
        {"author", ""},
        {"authorEmail", ""},
        {"framework", fmt::format("cputrain {}", kVersion)},
        {"model", facts.model},
        {"hardware", facts.platform},
        {"timestamp", fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr)))},
        {"misc", {{"batch", facts.batch}, {"ranks", facts.ranks}, {"seed", facts.seed}}}};
    system::write_own_file(folder / "dawnbench.json", json_text(json, 2) + "\n");
    file_.write_line(many_classes_ ? "epoch\thours\ttop1Accuracy\ttop5Accuracy"
                                   : "epoch\thours\ttop1Accuracy");
  }

  void begin_epoch(const EpochStart&) override {}
  void step(const StepRecord&) override {}
  void summary(const SummaryRecord&) override {}

  /// Hours of training; evaluations are not in them.
  void epoch(const EpochRecord& r) override {
    seconds_ += r.seconds;
    const auto accuracy = r.validation ? r.validation->accuracy() : std::nullopt;
    if (!accuracy) return;
    std::string line = fmt::format("{}\t{:.9f}\t{:.4f}", r.epoch, seconds_ / 3600, 100 * *accuracy);
    if (many_classes_) line += fmt::format("\t{:.4f}", 100 * r.validation->top_five().value_or(0));
    file_.write_line(line);
  }

 private:
  LogFile file_;
  bool many_classes_;
  double seconds_;  ///< of training
};

}  // namespace

std::unique_ptr<Reporter> dawnbench_reporter(const std::filesystem::path& folder,
                                             const RunFacts& facts, const LogPlace& place,
                                             system::WriteQueue* queue) {
  return std::make_unique<DawnBench>(folder, facts, place, queue);
}

}  // namespace cputrain::logging
