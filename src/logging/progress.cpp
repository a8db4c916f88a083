// A line of progress every 30 s, for logs in which no bar is drawn.

#include <fmt/format.h>

#include <utility>

#include "core/text.h"
#include "logging/reporters.h"
#include "system/output.h"
#include "system/print.h"

namespace cputrain::logging {
namespace {

class ProgressLines final : public RunReporter {
 public:
  ProgressLines(std::FILE* stream, std::function<double()> now)
      : stream_(stream), now_(std::move(now)), pace_(now_) {}

  void begin_epoch(const loop::EpochStart& start) override {
    start_ = start;
    began_ = now_();
    validation_began_.reset();
  }

  void step(const loop::StepRecord& r) override {
    validation_began_.reset();
    // What was made before the training went on took no time of this clock.
    if (r.step_in_epoch == start_.made + 1) {
      images_before_ =
          start_.made == 0 ? 0 : r.epoch_tally.images - (r.skipped ? 0 : r.tally.images);
    }
    if (!pace_.due()) return;
    const double seconds = now_() - began_;
    const double images = r.epoch_tally.images - images_before_;
    const auto accuracy = r.epoch_tally.accuracy();  // none beside a loss that is not finite
    print(fmt::format(
        "step {}/{} - ETA: {} - loss: {:.4f}{} - img/s: {:.1f}", r.step_in_epoch, start_.steps,
        eta(r.step_in_epoch - start_.made, start_.steps - start_.made, seconds),
        r.epoch_tally.mean_loss(), accuracy ? fmt::format(" - accuracy: {:.4f}", *accuracy) : "",
        seconds > 0 ? images / seconds : 0));
  }

  void validating(std::size_t images, std::size_t all) override {
    if (!validation_began_) validation_began_ = now_();
    if (!pace_.due()) return;
    print(fmt::format("validation {}/{} - ETA: {}", with_commas(images), with_commas(all),
                      eta(images, all, now_() - *validation_began_)));
  }

  void epoch(const loop::EpochRecord&) override { validation_began_.reset(); }

 private:
  static std::string eta(std::size_t done, std::size_t all, double seconds) {
    if (done == 0 || done > all) return "unknown";
    return eta_text(seconds * static_cast<double>(all - done) / static_cast<double>(done));
  }

  void print(const std::string& what) {
    const std::string epoch = start_.epochs ? fmt::format("{}/{}", start_.epoch, *start_.epochs)
                                            : std::to_string(start_.epoch);
    system::put(stream_, fmt::format("Epoch {} - {}\n", epoch, what));
  }

  std::FILE* stream_;
  std::function<double()> now_;
  system::LogPace pace_;
  loop::EpochStart start_;
  double began_ = 0;                        ///< the epoch
  double images_before_ = 0;                ///< those before, where it goes on
  std::optional<double> validation_began_;  ///< while it runs
};

}  // namespace

std::unique_ptr<RunReporter> progress_reporter(std::FILE* stream, std::function<double()> now) {
  return std::make_unique<ProgressLines>(stream, std::move(now));
}

}  // namespace cputrain::logging
