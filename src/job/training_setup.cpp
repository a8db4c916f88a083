#include "job/training_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "job/recipe_choices.h"
#include "job/shard_dense.h"
#include "job/start_weights.h"
#include "job/training_program.h"
#include "model/layer_patterns.h"
#include "model/rewrite.h"

namespace cputrain {

namespace {

/// Why an epoch may have no step at all, and what to do.
std::string no_step_reason(const TrainingSpec& spec) {
  if (!spec.plan.drop_last) return "--sharding generator stops after 1/ranks of them";
  if (spec.flags.drop_last) return "--drop-last leaves out what fills no whole step";
  return fmt::format("{}'s recipe leaves out what fills no whole step, --no-drop-last keeps it",
                     spec.model->name);
}

}  // namespace

void check_steps(const TrainingSpec& spec, const BatchPlan& plan) {
  std::vector<int> epochs{0};
  for (const BatchGrowth& growth : spec.plan.growth) {
    if (spec.flags.steps || growth.epochs < spec.epochs) epochs.push_back(growth.epochs);
  }
  for (const int epoch : epochs) {
    const BatchPlan of_epoch = plan.in_epoch(epoch);
    if (of_epoch.steps() > 0) continue;
    fail(
        ExitCode::usage,
        fmt::format("steps of {} images leave none of the {} training images in epoch {} ({}); use "
                    "a smaller --batch",
                    of_epoch.global_batch() * static_cast<std::size_t>(spec.plan.accumulate),
                    plan.samples(), epoch + 1, no_step_reason(spec)));
  }
}

std::vector<int> sizes_of(const BatchPlan& a, const BatchPlan& b) {
  std::set<int> sizes;
  for (const int size : a.sizes()) sizes.insert(size);
  for (const int size : b.sizes()) sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

std::optional<Leaves> leaves_of(const TrainingSpec& spec, const Session& session) {
  constexpr int kLeaf = 8;  // enough for Winograd's algorithm to pay, few enough for many ranks
  if (!spec.flags.reproducible) return {};
  int fewest = session.threads;
  for (const RankPlan& plan : session.plan.ranks) fewest = std::min(fewest, plan.threads);
  return Leaves{spec.flags.micro_batch.value_or(kLeaf), fewest};
}

namespace {

/// What would make results hang on the number of ranks all the same.
void check_reproducible(const TrainingSpec& spec, const Graph& graph) {
  const auto refuse = [](const std::string& what, const std::string& why, const char* remedy) {
    fail(ExitCode::usage, fmt::format("--reproducible with {} ({}); {}", what, why, remedy));
  };
  if (spec.flags.sharding != Sharding::slices) {
    refuse(fmt::format("--sharding {}", sharding_name(spec.flags.sharding)),
           "which images a step has, or their order, would hang on the number of ranks",
           "leave --sharding out");
  }
  if (spec.flags.allreduce != AllreduceChoice{}) {
    refuse(fmt::format("--allreduce {}", to_text(spec.flags.allreduce)),
           "its order of additions hangs on the number of ranks", "leave --allreduce out");
  }
  if (spec.flags.compress != Compression{}) {
    refuse(fmt::format("--compress {}", to_text(spec.flags.compress)),
           "what is rounded or kept back hangs on the number of ranks", "leave --compress out");
  }
  if (spec.flags.schedule && std::holds_alternative<Plateau>(*spec.flags.schedule)) {
    refuse("--schedule plateau",
           "it follows a loss that is summed over ranks, in an order that hangs on their number",
           "use another schedule");
  }
  if (graph.has_batch_norm()) {
    refuse("batch normalization that learns",
           "statistics are of the images that a rank computes at once",
           "freeze those layers, or use a model without them");
  }
}

}  // namespace

int training_micro_batch(const TrainingSpec& spec, const Session& session, const Graph& graph) {
  // Synchronised statistics are of all images of a batch, also of one that has grown.
  std::size_t batch = spec.batch;
  if (spec.flags.sync_bn) batch *= largest_growth(spec.plan);
  const auto ranks = static_cast<std::size_t>(session.communicator->size());
  const auto share = static_cast<int>(std::min<std::size_t>((batch + ranks - 1) / ranks, 1 << 30));
  if (spec.flags.sync_bn && !graph.has_batch_norm()) {
    fail(ExitCode::usage, fmt::format("--sync-bn: {} has no batch normalization that learns (there "
                                      "is nothing to synchronise); leave it out",
                                      spec.flags.model));
  }
  if (spec.flags.sync_bn && spec.flags.micro_batch && *spec.flags.micro_batch < share) {
    fail(ExitCode::usage,
         fmt::format(
             "--sync-bn with --micro-batch {}: a rank's share is {} images (their statistics "
             "need all of them at once); leave --micro-batch out, or use more ranks",
             *spec.flags.micro_batch, share));
  }
  if (spec.flags.reproducible) {
    check_reproducible(spec, graph);
    const Leaves leaves = *leaves_of(spec, session);
    return leaves.images * leaves.lanes;
  }
  if (graph.has_batch_norm() && !spec.flags.micro_batch) return share;
  const int most = micro_batch_size(spec.flags, session);
  const bool same_share = ranks == 1 && spec.plan.growth.empty();
  if (spec.flags.micro_batch || !same_share || share <= most) return most;
  const int pieces = (share + most - 1) / most;  // alike, instead of a small last one
  return (share + pieces - 1) / pieces;
}

BatchRequest batch_request(const Session& session, const TrainingSpec& spec) {
  return {spec.seed, spec.shuffle, spec.augment, session.place().input_threads};
}

std::unique_ptr<Training> make_training(const Session& session, const Services& services,
                                        const TrainingSpec& spec, const Graph& graph,
                                        const DataSource& source, const ImageSet& images,
                                        const BatchPlan& plan, CompiledTraining compiled) {
  auto training = std::make_unique<Training>();
  training->start = open_start(session, spec);
  training->exchange = std::move(compiled.exchange);
  training->program = std::move(compiled.program);
  training->optimizer = std::make_unique<Optimizer>(
      spec.optimizer, *session.backend, *training->exchange, training->program->layout());
  training->learning_rate = std::make_unique<LearningRate>(
      spec.learning_rate, training_epochs(plan, spec.epochs, spec.flags.steps));
  training->batches = services.data.batches(images, plan, batch_request(session, spec));
  start_weights(session, spec, graph, source, *training);
  return training;
}

}  // namespace cputrain
