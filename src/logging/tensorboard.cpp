// What Keras' TensorBoard callback writes: run folders train/ and validation/, scalars by epoch
// (from 0) and by batch (from 1).

#include <optional>
#include <vector>

#include "logging/event_file.h"
#include "logging/reporters.h"

namespace cputrain::logging {
namespace {

class TensorBoard final : public Reporter {
 public:
  TensorBoard(std::filesystem::path folder, std::string host, std::size_t log_every,
              const LogPlace& place)
      : folder_(std::move(folder)),
        host_(std::move(host)),
        log_every_(log_every),
        steps_(place.steps),
        train_(folder_ / "train", host_) {}

  void begin_epoch(const EpochStart&) override {}

  void step(const StepRecord& r) override {
    steps_ = r.step;
    if (log_every_ == 0 || r.step % log_every_ != 0 || r.skipped) return;
    std::vector<Scalar> scalars{{"batch_loss", r.tally.mean_loss()}};
    add(scalars, "batch_accuracy", r.tally.accuracy());
    scalars.push_back({"batch_steps_per_second", r.seconds > 0 ? 1 / r.seconds : 0});
    train_.write(static_cast<std::int64_t>(r.step), scalars);
  }

  void epoch(const EpochRecord& r) override {
    std::vector<Scalar> scalars = epoch_scalars(r.train);
    scalars.push_back({"epoch_learning_rate", r.learning_rate});
    train_.write(r.epoch - 1, scalars);
    if (r.validation) validated(r.epoch - 1, *r.validation);
  }

  void summary(const SummaryRecord&) override {}

 private:
  static void add(std::vector<Scalar>& scalars, const char* name, std::optional<double> value) {
    if (value) scalars.push_back({name, *value});
  }

  static std::vector<Scalar> epoch_scalars(const compute::Tally& tally) {
    std::vector<Scalar> scalars{{"epoch_loss", tally.mean_loss()}};
    add(scalars, "epoch_accuracy", tally.accuracy());
    add(scalars, "epoch_top_5_accuracy", tally.top_five());
    return scalars;
  }

  void validated(int epoch, const compute::Tally& tally) {
    if (!validation_) validation_.emplace(folder_ / "validation", host_);
    std::vector<Scalar> by_step{{"evaluation_loss_vs_iterations", tally.mean_loss()}};
    add(by_step, "evaluation_accuracy_vs_iterations", tally.accuracy());
    validation_->write(epoch, epoch_scalars(tally));
    validation_->write(static_cast<std::int64_t>(steps_), by_step);
  }

  std::filesystem::path folder_;
  std::string host_;
  std::size_t log_every_;
  std::uint64_t steps_;  ///< made so far
  EventFile train_;
  std::optional<EventFile> validation_;  ///< from the first evaluation on
};

}  // namespace

std::unique_ptr<Reporter> tensorboard_reporter(const std::filesystem::path& folder,
                                               const std::string& host, std::size_t log_every,
                                               const LogPlace& place) {
  return std::make_unique<TensorBoard>(folder, host, log_every, place);
}

}  // namespace cputrain::logging
