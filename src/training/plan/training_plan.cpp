#include "training/plan/training_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "training/plan/micro_batch.h"
#include "training/plan/shard_dense.h"
#include "training/request/build_graph.h"
#include "training/request/choose_training.h"

namespace cputrain::training {
namespace {

/// What would make results depend on the number of ranks all the same.
void check_reproducible(const TrainingSpec& spec, const model::Graph& graph) {
  const auto refuse = [](const std::string& what, const std::string& why, const char* remedy) {
    fail(ExitCode::usage, fmt::format("--reproducible with {} ({}); {}", what, why, remedy));
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
    fail(ExitCode::usage, fmt::format("--sync-bn: {} has no batch normalization that learns (there "
                                      "is nothing to synchronise); leave it out",
                                      spec.flags.model));
  }
  if (spec.flags.micro_batch && *spec.flags.micro_batch < share) {
    fail(ExitCode::usage,
         fmt::format("--sync-bn with --micro-batch {}: a rank's share is {} (their statistics "
                     "need all of them at once); leave --micro-batch out, or use more ranks",
                     *spec.flags.micro_batch, counted(share, "image")));
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

}  // namespace

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

}  // namespace cputrain::training
