#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "cli/flags/given_flags.h"
#include "scaling/commands/commands.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::config_fuzzer {
namespace {

const cli::CommandLineChoices kChoices{
    .backends = {{"cpu", {Precision::f32, Precision::bf16}},
                 {"reference", {Precision::f32, Precision::f64}}},
    .commands = {commands::make_train, commands::make_sweep,
                 [] { return commands::make_simulate({}); }}};

/// Settings of trainings, of a sweep and of a simulation.
std::vector<std::string> seeds() {
  return {
      R"({"model": "dogcat", "batch": 32, "lr": "0.1", "schedule": "cosine", "warmup-epochs": 1,
          "augment": "flip,crop:4", "reproducible": true, "checkpoint-every": "7",
          "data": "synthetic:100"})",
      R"({"allreduce": "ring", "compress": "topk:0.1", "bucket-mb": 4, "precision": "bf16",
          "optimizer": "lamb", "lr-scale": "sqrt", "base-batch": 256, "on-nan": "skip"})",
      R"({"np": "1,2", "batch": "8,16", "threads": "1", "backend": "cpu", "steps": 3,
          "allreduce": "auto,ring"})",
      R"({"platform": "here", "np": "1,2,4", "batch-per-rank": "8", "costs": "costs.json"})"};
}

/// As the file of --config of three commands.
bool takes(const std::string& text) {
  const std::string path = own_file("config.json", text);
  // The flags of a command take milliseconds to declare.
  if (!is_taken([&] { cli::read_settings(path); }, ExitCode::usage)) return false;
  bool taken = false;
  for (const char* command : {"train", "sweep", "simulate"}) {
    taken |= is_taken(
        [&] {
          cli::parse_command_line({command, "--config", path}, {}, kChoices);
        },
        ExitCode::usage);
  }
  return taken;
}

const Fuzzer kFuzzer{"config", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::config_fuzzer
