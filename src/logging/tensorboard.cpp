// What Keras' TensorBoard callback writes: run folders train/ and validation/, scalars by epoch
// (from 0) and by batch (from 1).

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "logging/event_file.h"
#include "logging/log_file.h"
#include "logging/reporters.h"
#include "system/clock.h"

namespace cputrain::logging {
namespace {

class TensorBoard final : public RunReporter {
 public:
  TensorBoard(std::filesystem::path folder, std::string host, std::size_t log_every,
              const LogPlace& place, system::WriteQueue* queue)
      : folder_(std::move(folder)),
        host_(std::move(host)),
        log_every_(log_every),
        steps_(place.progress.steps),
        queue_(queue),
        train_(std::make_shared<EventFile>(folder_ / "train", host_)),
        validation_(std::make_shared<std::optional<EventFile>>()) {}

  void step(const loop::StepRecord& r) override {
    steps_ = r.step;
    if (!is_logged(r, log_every_) || r.skipped) return;
    std::vector<Scalar> scalars{{"batch_loss", r.tally.mean_loss()}};
    add(scalars, "batch_accuracy", r.tally.accuracy());
    scalars.push_back({"batch_steps_per_second", r.seconds > 0 ? 1 / r.seconds : 0});
    write_train(static_cast<std::int64_t>(r.step), scalars);
  }

  void epoch(const loop::EpochRecord& r) override {
    std::vector<Scalar> scalars = epoch_scalars(r.train, "epoch_");
    scalars.push_back({"epoch_learning_rate", r.learning_rate});
    write_train(r.epoch - 1, scalars);
    if (r.validation) validated(r.epoch - 1, *r.validation, r.averaged);
  }

 private:
  static void add(std::vector<Scalar>& scalars, const std::string& name,
                  std::optional<double> value) {
    if (value) scalars.push_back({name, *value});
  }

  static std::vector<Scalar> epoch_scalars(const compute::Tally& tally, const std::string& prefix) {
    std::vector<Scalar> scalars{{prefix + "loss", tally.mean_loss()}};
    add(scalars, prefix + "accuracy", tally.accuracy());
    add(scalars, prefix + "top_5_accuracy", tally.top_five());
    return scalars;
  }

  void write_train(std::int64_t step, const std::vector<Scalar>& scalars) {
    std::string record = scalar_record(system::unix_seconds(), step, scalars);
    const std::size_t bytes = record.size();
    write_by(queue_, bytes, [file = train_, record = std::move(record)] { file->append(record); });
  }

  void validated(int epoch, const compute::Tally& tally,
                 const std::optional<compute::Tally>& averaged) {
    std::vector<Scalar> by_epoch = epoch_scalars(tally, "epoch_");
    if (averaged)
      std::ranges::move(epoch_scalars(*averaged, "epoch_ema_"), std::back_inserter(by_epoch));
    std::vector<Scalar> by_step{{"evaluation_loss_vs_iterations", tally.mean_loss()}};
    add(by_step, "evaluation_accuracy_vs_iterations", tally.accuracy());
    const double now = system::unix_seconds();
    std::string records = scalar_record(now, epoch, by_epoch) +
                          scalar_record(now, static_cast<std::int64_t>(steps_), by_step);
    const std::size_t bytes = records.size();
    write_by(queue_, bytes,
             [file = validation_, folder = folder_ / "validation", host = host_,
              records = std::move(records)] {
               if (!*file) file->emplace(folder, host);
               (*file)->append(records);
             });
  }

  std::filesystem::path folder_;
  std::string host_;
  std::size_t log_every_;
  std::uint64_t steps_;  ///< made so far
  system::WriteQueue* queue_;
  std::shared_ptr<EventFile> train_;
  std::shared_ptr<std::optional<EventFile>> validation_;  ///< from the first evaluation on
};

}  // namespace

std::unique_ptr<RunReporter> tensorboard_reporter(const std::filesystem::path& folder,
                                                  const std::string& host, std::size_t log_every,
                                                  const LogPlace& place,
                                                  system::WriteQueue* queue) {
  return std::make_unique<TensorBoard>(folder, host, log_every, place, queue);
}

}  // namespace cputrain::logging
