#include "logging/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <system_error>

#include "core/hash.h"
#include "event.pb.h"  // which protoc makes of event.proto
#include "logging/log_file.h"
#include "logging/reporters.h"
#include "system/clock.h"

namespace cputrain::logging {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMark = "tfevents";

template <class T>
std::string little_endian(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string record(std::string_view event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(event) +
         little_endian(masked_crc32c(event));
}

/// A name that no file has yet: two files of one process may begin within one second.
std::filesystem::path new_path(const std::filesystem::path& folder, const std::string& host) {
  system::make_own_folder(folder);
  for (int number = 0;; ++number) {
    auto path = folder / fmt::format("events.out.{}.{}.{}.{}.{}", kMark,
                                     static_cast<std::int64_t>(system::unix_seconds()), host,
                                     ::getpid(), number);
    if (!system::is_present(path)) return path;
  }
}

using Scalars = std::vector<std::pair<std::string, double>>;  // values by tag

/// What Keras' TensorBoard callback writes: run folders train/ and validation/, scalars by epoch
/// (from 0) and by batch (from 1).
class TensorBoard final : public RunReporter {
 public:
  TensorBoard(std::filesystem::path folder, std::string host, std::size_t log_every,
              const LogPlace& place, system::WriteQueue* queue)
      : folder_(std::move(folder)),
        host_(std::move(host)),
        log_every_(log_every),
        steps_(place.progress.steps),
        queue_(queue),
        train_(new_event_file(folder_ / "train", host_)) {}

  void step(const loop::StepRecord& r) override {
    steps_ = r.step;
    if (!is_logged(r, log_every_) || r.skipped) return;
    Scalars scalars{{"batch_loss", r.tally.mean_loss()}};
    add(scalars, "batch_accuracy", r.tally.accuracy());
    scalars.push_back({"batch_steps_per_second", r.seconds > 0 ? 1 / r.seconds : 0});
    write_train(static_cast<std::int64_t>(r.step), scalars);
  }

  void epoch(const loop::EpochRecord& r) override {
    Scalars scalars = epoch_scalars(r.train, "epoch_");
    scalars.push_back({"epoch_learning_rate", r.learning_rate});
    write_train(r.epoch - 1, scalars);
    if (r.validation) validated(r.epoch - 1, *r.validation, r.averaged);
  }

 private:
  static void add(Scalars& scalars, const std::string& name, std::optional<double> value) {
    if (value) scalars.push_back({name, *value});
  }

  static Scalars epoch_scalars(const compute::Tally& tally, const std::string& prefix) {
    Scalars scalars{{prefix + "loss", tally.mean_loss()}};
    add(scalars, prefix + "accuracy", tally.accuracy());
    add(scalars, prefix + "top_5_accuracy", tally.top_five());
    return scalars;
  }

  void write_train(std::int64_t step, const Scalars& scalars) {
    std::string record = scalar_record(system::unix_seconds(), step, scalars);
    const std::size_t bytes = record.size();
    write_by(queue_, bytes, [file = train_, record = std::move(record)] { file->append(record); });
  }

  void validated(int epoch, const compute::Tally& tally,
                 const std::optional<compute::Tally>& averaged) {
    Scalars by_epoch = epoch_scalars(tally, "epoch_");
    if (averaged)
      std::ranges::move(epoch_scalars(*averaged, "epoch_ema_"), std::back_inserter(by_epoch));
    Scalars by_step{{"evaluation_loss_vs_iterations", tally.mean_loss()}};
    add(by_step, "evaluation_accuracy_vs_iterations", tally.accuracy());
    const double now = system::unix_seconds();
    std::string records = scalar_record(now, epoch, by_epoch) +
                          scalar_record(now, static_cast<std::int64_t>(steps_), by_step);
    const std::size_t bytes = records.size();
    write_by(queue_, bytes,
             [file = validation_, folder = folder_ / "validation", host = host_,
              records = std::move(records)] {
               if (!*file) *file = new_event_file(folder, host);
               (*file)->append(records);
             });
  }

  std::filesystem::path folder_;
  std::string host_;
  std::size_t log_every_;
  std::uint64_t steps_;  ///< made so far
  system::WriteQueue* queue_;
  std::shared_ptr<system::GrowingFile> train_;
  /// From the first evaluation on.
  std::shared_ptr<std::unique_ptr<system::GrowingFile>> validation_ =
      std::make_shared<std::unique_ptr<system::GrowingFile>>();
};

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string version_record(double wall_time) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  return record(event.SerializeAsString());
}

std::string scalar_record(double wall_time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  tensorboard::Summary& summary = *event.mutable_summary();
  for (const auto& [tag, number] : scalars) {
    tensorboard::Summary::Value& value = *summary.add_value();
    value.set_tag(tag);
    value.set_simple_value(static_cast<float>(number));
  }
  return record(event.SerializeAsString());
}

std::unique_ptr<system::GrowingFile> new_event_file(const std::filesystem::path& folder,
                                                    const std::string& host) {
  auto file = std::make_unique<system::GrowingFile>(new_path(folder, host));
  file->append(version_record(system::unix_seconds()));
  return file;
}

void remove_event_files(const std::filesystem::path& folder) {
  std::error_code ignored;  // what cannot be removed stays: the new run is what counts
  if (std::filesystem::is_symlink(folder, ignored)) return;  // it leads elsewhere
  for (const std::string& name : system::names_in(folder)) {
    if (name.find(kMark) != std::string::npos) std::filesystem::remove(folder / name, ignored);
  }
}

std::unique_ptr<RunReporter> tensorboard_reporter(const std::filesystem::path& folder,
                                                  const std::string& host, std::size_t log_every,
                                                  const LogPlace& place,
                                                  system::WriteQueue* queue) {
  return std::make_unique<TensorBoard>(folder, host, log_every, place, queue);
}

}  // namespace cputrain::logging
