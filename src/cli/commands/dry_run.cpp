#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/commands/commands.h"
#include "core/text.h"
#include "core/version.h"
#include "system/print.h"
#include "training/run/run_folder.h"

namespace cputrain::commands {

using Json = nlohmann::ordered_json;

namespace {

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

/// A part of a rank's memory, as JSON and as a line have it.
struct MemoryPart {
  const char *key, *words;
  std::size_t training::RankMemory::*bytes;
  bool of_devices = false;  ///< only where arrays lie in a memory that is not the host's
};

constexpr std::array kMemoryParts{
    MemoryPart{"weights", "weights", &training::RankMemory::weights},
    MemoryPart{"gradients", "gradients", &training::RankMemory::gradients},
    MemoryPart{"optimizer_state", "optimizer state", &training::RankMemory::state},
    MemoryPart{"workspace", "workspace", &training::RankMemory::workspace},
    MemoryPart{"weights_copy", "copy of the weights", &training::RankMemory::copy, true},
    MemoryPart{"checkpoint_copy", "copy for checkpoints", &training::RankMemory::snapshot},
    MemoryPart{"checkpoint_parts_of_ranks", "the ranks' parts of it",
               &training::RankMemory::snapshot_host},
    MemoryPart{"array_being_written", "array being written", &training::RankMemory::written},
    MemoryPart{"batches_in_flight", "batches in flight", &training::RankMemory::batches},
    MemoryPart{"images_on_device", "images on the device", &training::RankMemory::images, true},
    MemoryPart{"nccl_estimate", "NCCL (estimated)", &training::RankMemory::library, true},
    MemoryPart{"start", "its start", &training::RankMemory::start},
    MemoryPart{"process", "the process itself", &training::RankMemory::process},
    MemoryPart{"threads", "its threads", &training::RankMemory::threads},
};

Json memory_json(const training::Session& session, const training::TrainingMemory& memory) {
  Json ranks = Json::array(), nodes = Json::array();
  for (std::size_t i = 0; i < memory.ranks.size(); ++i) {
    const training::RankMemory& rank = memory.ranks[i];
    Json json{{"rank", i}, {"host", session.plan.ranks[i].host}};
    for (const MemoryPart& part : kMemoryParts) {
      if (!part.of_devices || rank.elsewhere > 0) json[part.key] = rank.*part.bytes;
    }
    json["total"] = rank.total();
    if (rank.elsewhere > 0) json["backend_memory"] = rank.elsewhere;
    ranks.push_back(std::move(json));
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

/// "421 MB (gradients 52.9 MB, workspace 258 MB)": what there is.
std::string memory_text(const training::RankMemory& rank) {
  std::vector<std::string> parts;
  for (const MemoryPart& part : kMemoryParts) {
    if (rank.*part.bytes == 0) continue;
    parts.push_back(fmt::format("{} {}", part.words, bytes_text(rank.*part.bytes)));
  }
  const std::string text = bytes_text(rank.total()) + " (" + join(parts, ", ") + ")";
  if (rank.elsewhere == 0) return text;
  return text + ", of which " + bytes_text(rank.elsewhere) + " in the backend's memory";
}

/// Whether each part differs by so little that nobody's plans depend on it, such as pages of the
/// program that one process holds and another does not.
bool are_alike(const training::RankMemory& a, const training::RankMemory& b) {
  constexpr double kLittle = 1e6, kShare = 0.05;  // bytes, or a share of the larger one
  return a.elsewhere == b.elsewhere &&
         std::ranges::all_of(kMemoryParts, [&](const MemoryPart& part) {
           const auto [less, more] = std::minmax(a.*part.bytes, b.*part.bytes);
           return static_cast<double>(more - less) <=
                  std::max(kLittle, kShare * static_cast<double>(more));
         });
}

/// One line for neighbours that need about the same: the most that one of them does.
void print_rank_memory(std::span<const training::RankMemory> ranks) {
  for (std::size_t first = 0; first < ranks.size();) {
    training::RankMemory most = ranks[first];
    std::size_t next = first + 1;
    for (; next < ranks.size() && are_alike(ranks[first], ranks[next]); ++next) {
      for (const MemoryPart& part : kMemoryParts) {
        most.*part.bytes = std::max(most.*part.bytes, ranks[next].*part.bytes);
      }
    }
    const std::string who = next == first + 1
                                ? fmt::format("rank {}", first)
                                : fmt::format("ranks {} to {}, each at most", first, next - 1);
    system::print("  {}: {}\n", who, memory_text(most));
    first = next;
  }
}

void print_node_memory(const training::TrainingMemory& memory) {
  for (const training::NodeCapacity& capacity : memory.capacities) {
    std::string once = "image cache " + bytes_text(memory.shared.cache);
    if (memory.shared.file > 0) {
      once += fmt::format(", {} in a file in {}", bytes_text(memory.shared.file),
                          capacity.image_folder);
    } else if (!capacity.image_folder.empty()) {
      once += fmt::format(" (in a file in {}, /dev/shm is too small)", capacity.image_folder);
    }
    if (memory.shared.weights) once += ", weights " + bytes_text(memory.shared.weights);
    system::print("  host {}: {} in all, once for its {}: {}; {} more to be had\n", capacity.host,
                  bytes_text(memory.in_all(capacity)), counted(capacity.ranks.size(), "rank"), once,
                  capacity.available ? bytes_text(*capacity.available) : "unknown");
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
  const auto at_once = static_cast<std::size_t>(plan.micro_batch());  // validation may have more
  system::print("Steps: batch {} ({} per rank, {} at once), {} per epoch, {} in all\n", spec.batch,
                (least == most ? "" : fmt::format("{} to ", least)) + counted(most, "image"),
                at_once < most ? std::to_string(at_once) : "all", counted(plan.steps(), "step"),
                with_commas(training::all_steps(plan, spec.epochs, spec.flags.steps)));
  system::print("Model {}: {} parameters; {} of gradients are reduced in each step over {}\n",
                spec.model->name, with_commas(training.plan().graph.parameter_count()),
                bytes_text(reduced_bytes(session, compiled)), counted(images.size(), "rank"));
}

}  // namespace

void print_dry_run(const training::Training& training, const std::string& json_file) {
  if (!training.session().leads()) return;
  if (json_file != "-") print_plan(training);
  training::write_json(training.session(), json_file, plan_json(training));
}

}  // namespace cputrain::commands
