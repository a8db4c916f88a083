#include <array>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "runfiles/metrics.h"
#include "scaling/cells/run_figures.h"
#include "scaling/report/scaling_table.h"
#include "scaling/report/trainings/runs_document.h"
#include "tests/fuzz/fuzzer.h"
#include "training/weights/named_weights.h"

namespace cputrain::testing::run_fuzzer {
namespace {

constexpr const char* kSettings =
    R"({"model": "dogcat", "data": "/d/photos", "image-size": 64, "batch": "20", "epochs": 9,
        "limit-val": "7", "seed": 7, "optimizer": "sgd", "lr": 0.01, "balanced": "true"})";
constexpr const char* kEnvironment =
    R"({"started": "2026-11-25T22:40:39+0000", "ranks": 2, "threads_of_rank_0": 3,
        "version": "1.0", "libraries": ["oneDNN 2.6.3"],
        "machine": {"cpu": "EPYC", "cores": 4, "hardware_threads": 8, "memory_bytes": 1e9}})";
constexpr const char* kMetrics =
    R"({"type":"step","step":1,"epoch":1,"images":20,"images_seen":20,"loss":0.7,"accuracy":0.5,"seconds":2}
{"type":"step","step":2,"epoch":1,"images":20,"images_seen":40,"loss":0.6,"accuracy":0.5,"seconds":1}
{"type":"epoch","epoch":1,"steps":2,"images":40,"seconds":3,"loss":0.65,"val_loss":0.6,"val_accuracy":0.8,)"
    R"("val_images":7,"from_features":3,"val_seconds":1,"stolen":0.1,"cpu_wait":0.1,)"
    R"("budget":{"input_wait":0,"forward":1,"backward":1,"allreduce_exposed":0.5,"straggler_wait":0.25,)"
    R"("optimizer":0.125,"other":0.125},)"
    R"("settled":{"steps":1,"seconds":1,"budget":{"input_wait":0,"forward":1,"backward":0,)"
    R"("allreduce_exposed":0,"straggler_wait":0,"optimizer":0,"other":0}}}
{"type":"resume","step":2,"epoch":2}
{"type":"summary","outcome":"finished","seconds":23,"loss":0.65,"accuracy":0.5,"time_to_accuracy":{"seconds":3}}
)";
constexpr const char* kEvaluations =
    R"({"weights":"best.safetensors","data":"photos","part":"test","images":40,"loss":0.25,"accuracy":0.5}
)";
constexpr const char* kLimits = R"({"fma_gflops": 100, "triad_gbs": 20})";

constexpr std::array<std::pair<const char*, const char*>, 5> kFiles{
    {{"config.json", kSettings},
     {"environment.json", kEnvironment},
     {"limits.json", kLimits},
     {"metrics.jsonl", kMetrics},
     {"evaluations.jsonl", kEvaluations}}};

/// Reads a run of which these files are hostile: nothing is refused as a whole.
void read_run(const std::string& name, std::initializer_list<const char*> hostile,
              const std::string& text) {
  const auto folder = own_folder() / name;
  if (!std::filesystem::exists(folder)) {
    for (const auto& [file, good] : kFiles) own_file(name + "/" + file, good);
  }
  for (const char* file : hostile) own_file(name + "/" + file, text);
  const report::RunList list{{report::read_run(folder)}};
  report::markdown(report::runs_document(list));
  report::runs_csv(list);
  json_text(report::runs_json(list));
  json_text(report::run_curves_json(list));
  training::data_of_run(folder);
  runfiles::is_finished(folder);
  const cells::Cell cell{.cpus = 2, .batch = 20, .ranks = 2};
  const cells::EpochSize epoch{.images = 40};
  cells::scaled_figures(folder, cell, epoch, {.measured = 5});
  cells::unsettled_steps(folder, cell, epoch);
  cells::Cell measured = cell;
  if (const auto figures = cells::measured_figures(folder)) {
    cells::combine(measured, {*figures, *figures}, 40, 1e9);
  }
}

std::vector<std::string> seeds() {
  return {kSettings, kEnvironment, kMetrics, kEvaluations, kLimits};
}

/// As files of settings and as logs of a run. JSON is taken, and a log of which a line is one of a
/// run's.
bool takes(const std::string& text) {
  read_run("run", {"config.json", "environment.json", "limits.json"}, text);
  read_run("logged", {"metrics.jsonl", "evaluations.jsonl"}, text);
  try {
    const nlohmann::json json = parse_strict_json(text);
    is_taken([&] { cells::machine_of_run(json, "environment.json"); });
    return true;
  } catch (const std::runtime_error&) {
    return text.starts_with("{\"type\":\"step\"");
  }
}

const Fuzzer kFuzzer{"run", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::run_fuzzer
