#include "logging/reporters.h"

#include <system_error>
#include <utility>

namespace cputrain::logging {
namespace {

class AllOf final : public RunReporter {
 public:
  explicit AllOf(std::vector<std::unique_ptr<RunReporter>> parts) : parts_(std::move(parts)) {}
  void resumed(const LogPlace& place, int ranks, const std::string& checkpoint) override {
    for (const auto& part : parts_) part->resumed(place, ranks, checkpoint);
  }
  void begin_epoch(const loop::EpochStart& r) override {
    for (const auto& part : parts_) part->begin_epoch(r);
  }
  void step(const loop::StepRecord& r) override {
    for (const auto& part : parts_) part->step(r);
  }
  void validating(std::size_t images, std::size_t all) override {
    for (const auto& part : parts_) part->validating(images, all);
  }
  void epoch(const loop::EpochRecord& r) override {
    for (const auto& part : parts_) part->epoch(r);
  }
  void rate_changed(int epoch, double rate) override {
    for (const auto& part : parts_) part->rate_changed(epoch, rate);
  }
  void summary(const SummaryRecord& r) override {
    for (const auto& part : parts_) part->summary(r);
  }

 private:
  std::vector<std::unique_ptr<RunReporter>> parts_;
};

}  // namespace

bool has_lines(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return !error && bytes > 0 && system::is_own_file(path);
}

std::unique_ptr<RunReporter> all_of(std::vector<std::unique_ptr<RunReporter>> parts) {
  return std::make_unique<AllOf>(std::move(parts));
}

}  // namespace cputrain::logging
