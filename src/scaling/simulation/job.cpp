#include "scaling/simulation/job.h"

#include <nlohmann/json.hpp>

#include "core/budget_json.h"
#include "core/json_text.h"
#include "scaling/simulation/json_file.h"
#include "system/files.h"

namespace cputrain::simulation {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMost = 1'000'000'000;

}  // namespace

void write_job(const std::filesystem::path& file, const SimulationJob& job) {
  const Json json{{"ranks", job.ranks},
                  {"threads", job.threads},
                  {"arguments", job.arguments},
                  {"platform", to_json(job.platform)},
                  {"costs", to_json(job.costs)},
                  {"classes", job.classes},
                  {"images_per_epoch", job.images_per_epoch},
                  {"validation_images", job.validation_images},
                  {"steps", job.steps},
                  {"repeats", job.repeats},
                  {"seed", job.seed},
                  {"result", job.result}};
  system::write_own_file(file, json_text(json) + "\n");
}

SimulationJob read_job(const std::filesystem::path& file) {
  const nlohmann::json json = read_json_file(file);
  const JsonObject object(json, file.string());
  SimulationJob job;
  job.ranks = object.whole("ranks", 1, 1'000'000);
  job.threads = object.whole("threads", 1, 65536);
  job.arguments = object.texts("arguments", 1000);
  job.platform = platform_from_json(object.required("platform"), file.string());
  job.costs = costs_from_json(object.required("costs"), file.string());
  job.classes = object.whole("classes", 1, 65536);
  job.images_per_epoch = static_cast<std::size_t>(object.whole("images_per_epoch", 1, kMost));
  job.validation_images = static_cast<std::size_t>(object.whole("validation_images", 0, kMost));
  job.steps = object.whole("steps", 1, kMost);
  job.repeats = object.whole("repeats", 1, kMost);
  job.seed = static_cast<std::uint64_t>(object.real("seed", 0, 9e18));
  job.result = object.text("result");
  return job;
}

void write_result(const std::filesystem::path& file, const SimulationResult& result) {
  Json repeats = Json::array();
  for (const SimulatedSteps& steps : result.repeats) {
    repeats.push_back({{"seconds", steps.seconds},
                       {"memory_stall", steps.memory_stall},
                       {"budget", json_of(steps.budget)}});
  }
  const Json json{{"failure", result.failure},
                  {"exchange", result.exchange},
                  {"images_at_once", result.work.images_at_once},
                  {"sharded", result.work.sharded},
                  {"steps", result.steps},
                  {"images", result.images},
                  {"repeats", repeats}};
  system::write_own_file(file, json_text(json) + "\n");
}

SimulationResult read_result(const std::filesystem::path& file) {
  const nlohmann::json json = read_json_file(file);
  const JsonObject object(json, file.string());
  SimulationResult result;
  result.failure = object.text("failure");
  if (!result.failure.empty()) return result;
  result.exchange = object.text("exchange");
  result.work = {object.whole("images_at_once", 1, kMost), object.texts("sharded", 10'000)};
  result.steps = static_cast<std::size_t>(object.whole("steps", 1, kMost));
  result.images = static_cast<std::size_t>(object.whole("images", 1, kMost));
  for (const JsonObject& repeat : object.objects("repeats", 1'000'000)) {
    SimulatedSteps steps{repeat.real("seconds", 0, 1e15), {}, repeat.real("memory_stall", 0, 1e15)};
    const JsonObject budget = repeat.object("budget");
    for (const BudgetPart& part : kBudgetParts) {
      steps.budget.*part.seconds = budget.real(part.name, -1e15, 1e15);
    }
    result.repeats.push_back(steps);
  }
  return result;
}

}  // namespace cputrain::simulation
