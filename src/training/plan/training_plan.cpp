#include "training/plan/training_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::training {
namespace {

/// Whether its output needs memory of its own.
bool is_kept(const model::Graph& graph, std::size_t index) {
  const auto facts = [&](std::size_t i) { return model::facts_of(graph.nodes()[i].layer); };
  if (index == 0 || facts(index).in_place) return false;
  const bool convolves = facts(index).has_kernel && !facts(index).reads_vector;
  if (!convolves) return true;
  std::size_t next = index + 1;
  while (next < graph.nodes().size() && facts(next).behind_pools) ++next;
  return next == graph.nodes().size() || !facts(next).pools_at_once;
}

/// Weights that no cache near a core holds.
bool has_large_dense(const model::Graph& graph) {
  constexpr std::size_t kLarge = 1 << 20;
  return std::ranges::any_of(graph.nodes(), [](const model::Graph::Node& node) {
    return model::facts_of(node.layer).reads_vector && node.parameters.front().size() >= kLarge;
  });
}

/// More than four ranks for each hardware thread try a large job on a small machine: what is short
/// is memory.
bool is_crowded(const Session& session) { return session.plan.crowding > 4; }

bool forced(const TrainingFlags& flags) { return flags.shard_dense.value_or(false); }

std::size_t kernel_size(const model::Graph::Node& node) { return node.parameters.front().size(); }

/// Dense layers that learn.
std::vector<const model::Graph::Node*> candidates(const model::Graph& graph) {
  std::vector<const model::Graph::Node*> nodes;
  for (const model::Graph::Node& node : graph.nodes()) {
    if (model::facts_of(node.layer).reads_vector && !node.frozen) nodes.push_back(&node);
  }
  return nodes;
}

/// Names of the layers to be sharded: those for which it pays; with --shard-dense the largest one
/// if it pays for none. None where nodes have one rank, or gradients go another way than slices
/// over shared memory. `usual_images` are those that a rank has at once in a step. Error(usage) on
/// all ranks alike where --shard-dense cannot be.
std::vector<std::string> layers_to_shard(const TrainingSpec& spec, const model::Graph& graph,
                                         const Session& session, int usual_images) {
  if (!spec.flags.shard_dense.value_or(true) || !sharding_obstacle(spec.flags).empty()) return {};
  if (!session.backend->memory().is_host()) {
    if (!forced(spec.flags)) return {};
    refuse_sharding(
        "a backend whose arrays do not lie in the host's memory, where ranks could share them");
  }
  const comm::NodeMap& map = session.nodes;
  const auto nodes = candidates(graph);
  if (nodes.empty() && forced(spec.flags))
    refuse_sharding("a model in which no dense layer learns");
  if (!map.even() && forced(spec.flags))
    refuse_sharding("nodes that have different numbers of ranks");
  if (!map.even() || map.local_size() < 2 || nodes.empty()) return {};
  const std::size_t images =
      static_cast<std::size_t>(usual_images) * static_cast<std::size_t>(map.local_size());
  std::vector<std::string> names;
  for (const model::Graph::Node* node : nodes) {
    const auto out = static_cast<std::size_t>(node->dst.channels);
    if (sharding_pays(kernel_size(*node) / out, out, map.local_size(), images)) {
      names.push_back(node->name);
    }
  }
  if (names.empty() && forced(spec.flags)) {
    names.push_back((*std::ranges::max_element(nodes, {}, [](const model::Graph::Node* node) {
                      return kernel_size(*node);
                    }))->name);
  }
  return names;
}

/// What would make results depend on the number of ranks all the same.
void check_reproducible(const TrainingSpec& spec, const model::Graph& graph) {
  const auto refuse = [](const std::string& what, const std::string& why, const char* remedy) {
    fail(ExitCode::usage, "--reproducible with {} ({}); {}", what, why, remedy);
  };
  if (spec.flags.sharding != data::Sharding::slices) {
    refuse(fmt::format("--sharding {}", word_of(spec.flags.sharding)),
           "which images a step has, or their order, would depend on the number of ranks",
           "leave --sharding out");
  }
  if (spec.flags.allreduce != comm::AllreduceChoice{}) {
    refuse(fmt::format("--allreduce {}", comm::to_text(spec.flags.allreduce)),
           "its order of additions depends on the number of ranks", "leave --allreduce out");
  }
  if (spec.flags.compress != exchange::Compression{}) {
    refuse(fmt::format("--compress {}", exchange::to_text(spec.flags.compress)),
           "what is rounded or kept back depends on the number of ranks", "leave --compress out");
  }
  if (graph.has_batch_norm()) {
    refuse("batch normalization that learns",
           "statistics are of the images that a rank computes at once",
           "freeze those layers, or use a model without them");
  }
}

void check_sync_bn(const TrainingSpec& spec, const model::Graph& graph, int share) {
  if (!spec.flags.sync_bn) return;
  if (!graph.has_batch_norm()) {
    fail(ExitCode::usage,
         "--sync-bn: {} has no batch normalization that learns (there is nothing to synchronise); "
         "leave it out",
         spec.flags.model);
  }
  if (spec.flags.micro_batch && *spec.flags.micro_batch < share) {
    fail(ExitCode::usage,
         "--sync-bn with --micro-batch {}: a rank's share is {} (their statistics need all of them "
         "at once); leave --micro-batch out, or use more ranks",
         *spec.flags.micro_batch, counted(share, "image"));
  }
}

std::optional<compute::ReproducibleChunks> chunks_of(const TrainingSpec& spec,
                                                     const Session& session) {
  constexpr int kChunk = 8;  // enough for Winograd's algorithm to pay, few enough for many ranks
  if (!spec.flags.reproducible) return {};
  int fewest = session.threads;
  for (const placement::RankPlan& plan : session.plan.ranks)
    fewest = std::min(fewest, plan.threads);
  return compute::ReproducibleChunks{spec.flags.micro_batch.value_or(kChunk), fewest};
}

/// Images of a batch on the rank that has most.
int largest_share(std::size_t batch, int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  return static_cast<int>(std::min<std::size_t>((batch + count - 1) / count, 1 << 30));
}

/// What was asked; where statistics cover a micro-batch, else the whole share; an even part of the
/// largest share of a batch that does not grow.
int choose_micro_batch(const TrainingSpec& spec, const model::Graph& graph,
                       const std::optional<compute::ReproducibleChunks>& chunks,
                       const Session& session, std::optional<std::size_t> rank_memory) {
  // Synchronised statistics are of all images of a batch, also of one that has grown.
  std::size_t batch = spec.batch;
  if (spec.flags.sync_bn) batch *= largest_growth(spec.plan);
  const int ranks = session.communicator->size();
  const int share = largest_share(batch, ranks);
  check_sync_bn(spec, graph, share);
  if (chunks) return chunks->images * chunks->lanes;
  if (graph.has_batch_norm() && !spec.flags.micro_batch) return share;
  const int most = training_micro_batch(spec.flags, session, graph, rank_memory);
  if (spec.flags.micro_batch || !spec.plan.growth.empty() || share <= most) return most;
  const int pieces = (share + most - 1) / most;  // alike, instead of a small last one
  return (share + pieces - 1) / pieces;
}

/// Why an epoch may have no step at all, and what to do.
std::string no_step_reason(const TrainingSpec& spec) {
  if (!spec.plan.drop_last) return "--sharding generator stops after 1/ranks of them";
  if (spec.flags.drop_last) return "--drop-last leaves out what fills no whole step";
  return fmt::format("{}'s recipe leaves out what fills no whole step, --no-drop-last keeps it",
                     spec.model->name);
}

}  // namespace

int micro_batch_size(const TrainingFlags& flags, const Session& session) {
  // A GPU wants many images to have work for all of its multiprocessors; its memory holds them.
  constexpr int kOfADevice = 128;
  if (session.device.chosen()) return flags.micro_batch.value_or(kOfADevice);
  // One thread gains nothing by more images. Several wait for each other once a layer, and each
  // keeps sums of gradients of its own, so they do better with more; kMost is for memory. Ranks
  // that share dense layers meet once a micro-batch, and should not too often.
  constexpr int kOfOneThread = 8, kOfEachThread = 14, kMost = 32, kOfOneOfSeveralRanks = 16;
  const int threads = session.most_threads;
  const int of_threads = threads == 1 ? kOfOneThread : std::min(kOfEachThread * threads, kMost);
  const int usual = session.communicator->size() == 1 ? of_threads : kOfOneOfSeveralRanks;
  constexpr int kImagesInACrowd = 4;
  const int standard = is_crowded(session) ? kImagesInACrowd : usual;
  return flags.micro_batch.value_or(std::max(standard, 2 * threads));
}

int training_micro_batch(const TrainingFlags& flags, const Session& session,
                         const model::Graph& graph, std::optional<std::size_t> rank_memory) {
  const int usual = micro_batch_size(flags, session);
  const bool device = session.device.chosen(), keeps_all = session.backend->name() == "reference";
  const bool gains = !keeps_all && !is_crowded(session) && has_large_dense(graph);
  if (flags.micro_batch || !(device || gains)) return usual;
  // dogcat on a core of a Zen 5: 8 images make 127 images/s, 16 128, 32 136, 64 138, 128 143.
  // Each of many threads wants some images of a pass.
  constexpr std::size_t kMost = 128, kOfEachThread = 8, kOnADevice = 256, kPartOfMemory = 4;
  // Weights, gradients, two states and a snapshot come first.
  const std::size_t parameters = 5 * graph.parameter_count() * sizeof(float);
  const std::size_t memory = rank_memory.value_or(std::numeric_limits<std::size_t>::max());
  const std::size_t of_images = (memory - std::min(memory, parameters)) / kPartOfMemory;
  std::size_t images =
      device ? kOnADevice
             : std::max(kMost, kOfEachThread * static_cast<std::size_t>(session.most_threads));
  while (images > 1 && images * activation_bytes(graph) > of_images) images /= 2;
  return std::max(usual, static_cast<int>(images));
}

std::size_t activation_bytes(const model::Graph& graph) {
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (is_kept(graph, i)) numbers += graph.nodes()[i].dst.size();
  }
  return 2 * numbers * sizeof(float);
}

bool sharding_pays(std::size_t in, std::size_t out, int ranks, std::size_t images) {
  constexpr std::size_t kWorthwhile = std::size_t{1} << 20;
  constexpr int kLeastRanks = 3;
  const auto count = static_cast<std::size_t>(ranks);
  if (ranks < kLeastRanks || in * out < kWorthwhile) return false;
  return 4 * (count - 1) * in * out > 4 * images * in + 3 * count * images * out;
}

TrainingPlan plan_training(const Session& session, TrainingSpec spec, int classes,
                           std::optional<std::size_t> rank_memory) {
  const int ranks = session.communicator->size();
  fit_to_ranks(spec, ranks);
  model::Graph graph = build_graph(spec, classes);
  const auto chunks = chunks_of(spec, session);
  const int micro_batch = choose_micro_batch(spec, graph, chunks, session, rank_memory);
  if (chunks) check_reproducible(spec, graph);
  const int usual_images = std::min(largest_share(spec.batch, ranks), micro_batch);
  auto sharded = layers_to_shard(spec, graph, session, usual_images);
  return {std::move(spec), classes, std::move(graph),  micro_batch,
          usual_images,    chunks,  std::move(sharded)};
}

void check_steps(const TrainingSpec& spec, const data::BatchPlan& plan) {
  std::vector<int> epochs{0};
  for (const data::BatchGrowth& growth : spec.plan.growth) {
    if (spec.flags.steps || growth.epochs < spec.epochs) epochs.push_back(growth.epochs);
  }
  for (const int epoch : epochs) {
    const data::BatchPlan of_epoch = plan.in_epoch(epoch);
    if (of_epoch.steps() > 0) continue;
    fail(ExitCode::usage,
         "steps of {} images leave none of the {} training images in epoch {} ({}); use a smaller "
         "--batch",
         of_epoch.global_batch() * static_cast<std::size_t>(spec.plan.accumulate), plan.samples(),
         epoch + 1, no_step_reason(spec));
  }
}

std::vector<int> BatchPlans::sizes() const {
  std::set<int> sizes;
  for (const int size : train.sizes()) sizes.insert(size);
  for (const int size : validation.sizes()) sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

BatchPlans cut_batches(const Session& session, const TrainingPlan& plan, std::size_t train_images,
                       std::size_t validation_images) {
  const int rank = session.communicator->rank(), ranks = session.communicator->size();
  const int at_once = plan.micro_batch;
  // A program has memory for the largest number of images; on a device that is what is short.
  const int usual = session.device.chosen()
                        ? plan.usual_images
                        : std::max(plan.usual_images, micro_batch_size(plan.spec.flags, session));
  const int evaluated_at_once = plan.chunks ? at_once : std::min(at_once, usual);
  const std::size_t evaluated =
      static_cast<std::size_t>(evaluated_at_once) * static_cast<std::size_t>(ranks);
  BatchPlans batches{
      data::BatchPlan(train_images, plan.spec.batch, at_once, rank, ranks, plan.spec.plan),
      data::BatchPlan(validation_images, evaluated, evaluated_at_once, rank, ranks,
                      {.sharding = plan.chunks ? data::Sharding::dealt : data::Sharding::slices})};
  check_steps(plan.spec, batches.train);
  return batches;
}

std::uint64_t all_steps(const data::BatchPlan& plan, int epochs,
                        std::optional<std::uint64_t> steps) {
  if (steps) return *steps;
  std::uint64_t count = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) count += plan.in_epoch(epoch).steps();
  return count;
}

std::vector<std::size_t> images_by_rank(const data::BatchPlan& plan) {
  std::vector<std::size_t> images;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const data::BatchPlan of_rank(plan.samples(), plan.global_batch(), plan.micro_batch(), rank,
                                  plan.ranks(), plan.options());
    std::size_t count = 0;
    for (int k = 0; k < of_rank.micro_batches(0); ++k) count += of_rank.piece(0, k).size();
    images.push_back(count);
  }
  return images;
}

}  // namespace cputrain::training
