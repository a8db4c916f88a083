#include "scaling/simulation/job.h"

#include "core/json_fields.h"
#include "core/json_text.h"
#include "system/files.h"

namespace cputrain::simulation {
namespace {

constexpr int kMost = 1'000'000'000;

void describe_job(JsonMembers& f, SimulationJob& job) {
  f.need("ranks", job.ranks, 1, 1'000'000);
  f.need("threads", job.threads, 1, 65536);
  f.need("arguments", job.arguments, 1000);
  f.object("platform", job.platform, fields_of_platform);
  f.object("costs", job.costs, fields_of_costs);
  f.need("classes", job.classes, 1, 65536);
  f.need("images_per_epoch", job.images_per_epoch, 1, kMost);
  f.need("validation_images", job.validation_images, 0, kMost);
  f.need("steps", job.steps, 1, kMost);
  f.need("repeats", job.repeats, 1, kMost);
  f.need("seed", job.seed, 0, INT64_MAX);
  f.need("result", job.result);
}

void describe_steps(JsonMembers& f, SimulatedSteps& steps) {
  f.need("seconds", steps.seconds, 0, 1e15);
  f.need("memory_stall", steps.memory_stall, 0, 1e15);
  f.object("budget", steps.budget, fields_of_budget);
}

void describe_result(JsonMembers& f, SimulationResult& result) {
  f.need("failure", result.failure);
  if (!result.failure.empty()) return;
  f.need("exchange", result.exchange);
  f.need("images_at_once", result.work.images_at_once, 1, kMost);
  f.need("sharded", result.work.sharded, 10'000);
  f.need("steps", result.steps, 1, kMost);
  f.need("images", result.images, 1, kMost);
  f.objects("repeats", result.repeats, 1, 1'000'000, describe_steps);
}

template <class T, class Describe>
T read(const std::filesystem::path& file, const Describe& describe) {
  const nlohmann::json json = read_file(file);
  return value_of<T>({json, file.string(), kFileRemedy}, describe);
}

}  // namespace

void write_job(const std::filesystem::path& file, const SimulationJob& job) {
  system::write_own_file(file, json_text(json_of(job, describe_job)) + "\n");
}

SimulationJob read_job(const std::filesystem::path& file) {
  return read<SimulationJob>(file, describe_job);
}

void write_result(const std::filesystem::path& file, const SimulationResult& result) {
  system::write_own_file(file, json_text(json_of(result, describe_result)) + "\n");
}

SimulationResult read_result(const std::filesystem::path& file) {
  return read<SimulationResult>(file, describe_result);
}

}  // namespace cputrain::simulation
