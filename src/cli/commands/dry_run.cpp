#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "core/text.h"
#include "core/version.h"
#include "system/print.h"
#include "training/run/run_folder.h"

namespace cputrain::commands {

using Json = nlohmann::ordered_json;

namespace {

std::string in_bytes(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// The gradients that learn, once a step; of sharded layers each node has one, nothing to reduce
/// where it is the only one.
std::size_t reduced_bytes(const training::Session& session,
                          const training::CompiledTraining& compiled) {
  const compute::ParameterLayout& layout = compiled.program->layout();
  std::size_t elements = layout.gradient_size;
  for (const compute::Parameter& parameter : compute::sharded_parameters(layout)) {
    if (session.nodes.nodes() == 1) elements -= parameter.range.size();
  }
  return elements * size_of(layout.dtype);
}

Json memory_json(const training::Session& session, const training::TrainingMemory& memory) {
  Json ranks = Json::array(), nodes = Json::array();
  for (std::size_t i = 0; i < memory.ranks.size(); ++i) {
    const training::RankMemory& rank = memory.ranks[i];
    ranks.push_back({{"rank", i},
                     {"host", session.plan.ranks[i].host},
                     {"weights", rank.weights},
                     {"gradients", rank.gradients},
                     {"optimizer_state", rank.state},
                     {"workspace", rank.workspace},
                     {"batches_in_flight", rank.batches},
                     {"checkpoint_copy", rank.snapshot},
                     {"checkpoint_parts_of_ranks", rank.snapshot_host},
                     {"array_being_written", rank.written},
                     {"start", rank.start},
                     {"process", rank.process},
                     {"threads", rank.threads},
                     {"total", rank.total()}});
    if (rank.elsewhere > 0) {
      ranks.back()["weights_copy"] = rank.copy;
      ranks.back()["images_on_device"] = rank.images;
      ranks.back()["nccl_estimate"] = rank.library;
      ranks.back()["backend_memory"] = rank.elsewhere;
    }
  }
  for (const training::NodeCapacity& capacity : memory.capacities) {
    Json node{{"host", capacity.host},
              {"ranks", capacity.ranks},
              {"image_cache", memory.shared.cache},
              {"image_cache_folder", capacity.image_folder},
              {"image_file", memory.shared.file},
              {"weights", memory.shared.weights},
              {"total", memory.in_all(capacity)}};
    node["available"] = capacity.available ? Json(*capacity.available) : Json(nullptr);
    if (capacity.backend_available) node["backend_memory_available"] = *capacity.backend_available;
    nodes.push_back(std::move(node));
  }
  return {{"ranks", ranks}, {"nodes", nodes}};
}

Json plan_json(const training::Training& training) {
  const training::Session& session = training.session();
  const training::TrainingSpec& spec = training.plan().spec;
  const data::BatchPlan& plan = training.batches().train;
  const training::CompiledTraining& compiled = training.compiled();
  return {{"cputrain", kVersion},
          {"model",
           {{"name", spec.model->name}, {"parameters", training.plan().graph.parameter_count()}}},
          {"ranks", session.communicator->size()},
          {"placement", session.placement},
          {"map", training::placement_json(session.plan)},
          {"batch", spec.batch},
          {"micro_batch", plan.micro_batch()},
          {"images_per_rank", training::images_by_rank(plan)},
          {"steps_per_epoch", plan.steps()},
          {"epochs", spec.epochs},
          {"steps", training::all_steps(plan, spec.epochs, spec.flags.steps)},
          {"bytes_reduced_per_step", reduced_bytes(session, compiled)},
          {"memory", memory_json(session, compiled.memory)}};
}

/// "(gradients 52.9 MB, workspace 258 MB)": what there is.
std::string parts_text(const training::RankMemory& rank) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, std::size_t bytes) {
    if (bytes) parts.push_back(fmt::format("{} {}", name, in_bytes(bytes)));
  };
  add("weights", rank.weights);
  add("gradients", rank.gradients);
  add("optimizer state", rank.state);
  add("workspace", rank.workspace);
  add("copy of the weights", rank.copy);
  add("copy for checkpoints", rank.snapshot + rank.snapshot_host);
  add("array being written", rank.written);
  add("batches in flight", rank.batches);
  add("images on the device", rank.images);
  add("NCCL (estimated)", rank.library);
  add("its start", rank.start);
  add("the process itself", rank.process);
  add("its threads", rank.threads);
  const std::string text = "(" + join(parts, ", ") + ")";
  if (rank.elsewhere == 0) return text;
  return text + ", of which " + in_bytes(rank.elsewhere) + " in the backend's memory";
}

/// One line for ranks that need the same, to the digits that are shown.
void print_rank_memory(const std::vector<training::RankMemory>& ranks) {
  const auto text = [](const training::RankMemory& rank) {
    return in_bytes(rank.total()) + " " + parts_text(rank);
  };
  for (std::size_t first = 0; first < ranks.size();) {
    const std::string shown = text(ranks[first]);
    std::size_t next = first + 1;
    while (next < ranks.size() && text(ranks[next]) == shown) ++next;
    const std::string who = next == first + 1 ? fmt::format("rank {}", first)
                                              : fmt::format("ranks {}-{}, each", first, next - 1);
    system::print("  {}: {}\n", who, shown);
    first = next;
  }
}

void print_node_memory(const training::TrainingMemory& memory) {
  for (const training::NodeCapacity& capacity : memory.capacities) {
    std::string once = "image cache " + in_bytes(memory.shared.cache);
    if (memory.shared.file > 0) {
      once +=
          fmt::format(", {} in a file in {}", in_bytes(memory.shared.file), capacity.image_folder);
    } else if (!capacity.image_folder.empty()) {
      once += fmt::format(" (in a file in {}, /dev/shm is too small)", capacity.image_folder);
    }
    if (memory.shared.weights) once += ", weights " + in_bytes(memory.shared.weights);
    system::print("  host {}: {} in all, once for its {}: {}; {} more to be had\n", capacity.host,
                  in_bytes(memory.in_all(capacity)), counted(capacity.ranks.size(), "rank"), once,
                  capacity.available ? in_bytes(*capacity.available) : "unknown");
  }
}

void print_plan(const training::Training& training) {
  const training::Session& session = training.session();
  const training::TrainingSpec& spec = training.plan().spec;
  const data::BatchPlan& plan = training.batches().train;
  const training::CompiledTraining& compiled = training.compiled();
  system::print("Placement:\n");
  for (const std::string& line : session.placement) system::print("  {}\n", line);
  for (const std::string& line : placement::map_of(session.plan)) system::print("  {}\n", line);
  system::print("Memory:\n");
  print_rank_memory(compiled.memory.ranks);
  print_node_memory(compiled.memory);
  const std::vector<std::size_t> images = training::images_by_rank(plan);
  const auto [least, most] = std::ranges::minmax(images);
  system::print("Steps: batch {} ({} per rank, {} at once), {} per epoch, {} in all\n", spec.batch,
                (least == most ? "" : fmt::format("{} to ", least)) + counted(most, "image"),
                plan.micro_batch(), counted(plan.steps(), "step"),
                with_commas(training::all_steps(plan, spec.epochs, spec.flags.steps)));
  system::print("Model {}: {} parameters; {} of gradients are reduced in each step over {}\n",
                spec.model->name, with_commas(training.plan().graph.parameter_count()),
                in_bytes(reduced_bytes(session, compiled)), counted(images.size(), "rank"));
}

}  // namespace

void print_dry_run(const training::Training& training, const std::string& json_file) {
  if (!training.session().leads()) return;
  if (json_file != "-") print_plan(training);
  training::write_json(training.session(), json_file, plan_json(training));
}

}  // namespace cputrain::commands
