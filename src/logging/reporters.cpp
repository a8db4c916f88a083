#include "logging/reporters.h"

#include "system/files.h"

namespace cputrain::logging {
namespace {

class AllOf final : public Reporter {
 public:
  explicit AllOf(std::vector<std::unique_ptr<Reporter>> parts) : parts_(std::move(parts)) {}
  void resumed(const ResumeRecord& r) override {
    for (const auto& part : parts_) part->resumed(r);
  }
  void begin_epoch(const train::EpochStart& r) override {
    for (const auto& part : parts_) part->begin_epoch(r);
  }
  void step(const train::StepRecord& r) override {
    for (const auto& part : parts_) part->step(r);
  }
  void validating(std::size_t images, std::size_t all) override {
    for (const auto& part : parts_) part->validating(images, all);
  }
  void epoch(const train::EpochRecord& r) override {
    for (const auto& part : parts_) part->epoch(r);
  }
  void summary(const SummaryRecord& r) override {
    for (const auto& part : parts_) part->summary(r);
  }

 private:
  std::vector<std::unique_ptr<Reporter>> parts_;
};

}  // namespace

bool has_lines(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return !error && bytes > 0 && system::is_own_file(path);
}

std::unique_ptr<Reporter> all_of(std::vector<std::unique_ptr<Reporter>> parts) {
  return std::make_unique<AllOf>(std::move(parts));
}

}  // namespace cputrain::logging
