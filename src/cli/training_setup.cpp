#include "cli/training_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "cli/shard_dense.h"
#include "cli/start_weights.h"
#include "cli/training_program.h"
#include "core/error.h"
#include "core/text.h"
#include "model/layer_patterns.h"
#include "model/rewrite.h"

namespace cputrain {

TrainingChoices choose_training(const Config& config) {
  const auto model = find_model(config.model);
  const Recipe& recipe = model->recipe;
  const int size = config.image_size.value_or(recipe.image_size);
  const OptimizerOptions optimizer = choose_optimizer(config, recipe);
  TrainingChoices choices{model,
                          {size, size, 3},
                          config.batch.value_or(recipe.batch),
                          config.epochs.value_or(recipe.epochs),
                          config.seed.value_or(0),
                          optimizer,
                          choose_learning_rate(config, recipe, optimizer.rule),
                          choose_plan(config, recipe),
                          choose_shuffle(config, recipe)};
  choices.resize = config.resize.value_or(Resize::bilinear);
  choices.augment = config.augment.value_or(recipe.augment);
  check_shard_dense(config);
  check_compression(config.compress, config.allreduce);
  // Says early, on every rank alike, that a picture is too small.
  build_graph(config, choices, config.classes.value_or(recipe.classes));
  return choices;
}

void fit_to_ranks(TrainingChoices& choices, const Config& config, int ranks) {
  if (config.batch_per_rank) {
    choices.batch = *config.batch_per_rank * static_cast<std::size_t>(ranks);
  }
  const auto accumulate = static_cast<std::size_t>(choices.plan.accumulate);
  choices.learning_rate.n = scaling_of(config, choices.batch * accumulate, ranks);
}

namespace {

/// Why an epoch may have no step at all, and what to do.
std::string no_step_reason(const Config& config, const TrainingChoices& choices) {
  if (!choices.plan.drop_last) return "--sharding generator stops after 1/ranks of them";
  if (config.drop_last) return "--drop-last leaves out what fills no whole step";
  return fmt::format("{}'s recipe leaves out what fills no whole step, --no-drop-last keeps it",
                     choices.model->name);
}

}  // namespace

void check_steps(const Config& config, const TrainingChoices& choices, const BatchPlan& plan) {
  std::vector<int> epochs{0};
  for (const BatchGrowth& growth : choices.plan.growth) {
    if (config.steps || growth.epochs < choices.epochs) epochs.push_back(growth.epochs);
  }
  for (const int epoch : epochs) {
    const BatchPlan of_epoch = plan.in_epoch(epoch);
    if (of_epoch.steps() > 0) continue;
    fail(
        ExitCode::usage,
        fmt::format("steps of {} images leave none of the {} training images in epoch {} ({}); use "
                    "a smaller --batch",
                    of_epoch.global_batch() * static_cast<std::size_t>(choices.plan.accumulate),
                    plan.samples(), epoch + 1, no_step_reason(config, choices)));
  }
}

namespace {

/// Without the layers of --freeze something must be left to learn.
Graph frozen(const Config& config, const Graph& graph) {
  if (config.freeze.empty()) return graph;
  Graph result = with_frozen(graph, layers_matching(graph, config.freeze));
  if (result.learnt_count() > 0) return result;
  fail(ExitCode::usage, fmt::format("--freeze {} leaves no layer to train; name fewer layers",
                                    join(config.freeze, ",")));
}

/// A label without an output could not be learnt, an output without a label not be named.
void check_outputs(const TrainingChoices& choices, const Graph& graph, int classes) {
  const int outputs = graph.back().dst.channels;
  const int named = outputs == 1 ? 2 : outputs;  // one output is a sigmoid's
  if (named == classes) return;
  fail(ExitCode::usage,
       fmt::format("{} ends in {} output{} for {} classes, there are {} (every label needs its "
                   "output); write \"units\": \"classes\" in its last dense layer, or use other "
                   "data or --classes",
                   choices.model->name, outputs, outputs == 1 ? "" : "s", named, classes));
}

void check_has_dropout(const TrainingChoices& choices, const Graph& graph) {
  const auto is_dropout = [](const auto& node) {
    return std::holds_alternative<Dropout>(node.layer);
  };
  if (std::ranges::any_of(graph.nodes(), is_dropout)) return;
  fail(ExitCode::usage, fmt::format("--dropout: {} has no dropout layer (it would change nothing); "
                                    "leave it out",
                                    choices.model->name));
}

Graph unfrozen_graph(const Config& config, const TrainingChoices& choices, int classes) {
  try {
    Graph graph = choices.model->build(choices.image, classes);
    check_outputs(choices, graph, classes);
    if (config.dropout) {
      check_has_dropout(choices, graph);
      graph = with_dropout(graph, static_cast<float>(*config.dropout));
    }
    if (config.label_smoothing > 0) {
      graph = with_label_smoothing(graph, static_cast<float>(config.label_smoothing));
    }
    return graph;
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("--image-size") == std::string_view::npos) throw;
    fail(ExitCode::usage, fmt::format("--image-size {} is too small for {}: {}",
                                      choices.image.height, choices.model->name, error.what()));
  }
}

}  // namespace

Graph build_graph(const Config& config, const TrainingChoices& choices, int classes) {
  return frozen(config, unfrozen_graph(config, choices, classes));
}

int classes_of(const Config& config, const DataSource& source) {
  const auto& names = source.dataset->classes();
  const int found = static_cast<int>(names.size());
  const int classes = config.classes.value_or(found);
  if (classes < found) {
    fail(ExitCode::usage, fmt::format("--classes {} is less than the {} classes of the data ({}); "
                                      "leave it out, or use other data",
                                      classes, found, printable(join(names, ", "))));
  }
  return classes;
}

std::vector<int> sizes_of(const BatchPlan& a, const BatchPlan& b) {
  std::set<int> sizes;
  for (const int size : a.sizes()) sizes.insert(size);
  for (const int size : b.sizes()) sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

std::size_t largest_growth(const PlanOptions& plan) {
  int factor = 1;
  for (const BatchGrowth& growth : plan.growth) factor = std::max(factor, growth.factor);
  return static_cast<std::size_t>(factor);
}

std::optional<Leaves> leaves_of(const Config& config, const Session& session) {
  constexpr int kLeaf = 8;  // enough for Winograd's algorithm to pay, few enough for many ranks
  if (!config.reproducible) return {};
  int fewest = session.threads;
  for (const RankPlan& plan : session.plan.ranks) fewest = std::min(fewest, plan.threads);
  return Leaves{config.micro_batch.value_or(kLeaf), fewest};
}

namespace {

/// What would make results hang on the number of ranks all the same.
void check_reproducible(const Config& config, const Graph& graph) {
  const auto refuse = [](const std::string& what, const std::string& why, const char* remedy) {
    fail(ExitCode::usage, fmt::format("--reproducible with {} ({}); {}", what, why, remedy));
  };
  if (config.sharding != Sharding::slices) {
    refuse(fmt::format("--sharding {}", sharding_name(config.sharding)),
           "which images a step has, or their order, would hang on the number of ranks",
           "leave --sharding out");
  }
  if (config.allreduce != AllreduceChoice{}) {
    refuse(fmt::format("--allreduce {}", to_text(config.allreduce)),
           "its order of additions hangs on the number of ranks", "leave --allreduce out");
  }
  if (config.compress != Compression{}) {
    refuse(fmt::format("--compress {}", to_text(config.compress)),
           "what is rounded or kept back hangs on the number of ranks", "leave --compress out");
  }
  if (config.schedule && std::holds_alternative<Plateau>(*config.schedule)) {
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

int training_micro_batch(const Config& config, const Session& session, const Graph& graph,
                         const TrainingChoices& choices) {
  // Synchronised statistics are of all images of a batch, also of one that has grown.
  std::size_t batch = choices.batch;
  if (config.sync_bn) batch *= largest_growth(choices.plan);
  const auto ranks = static_cast<std::size_t>(session.communicator->size());
  const auto share = static_cast<int>(std::min<std::size_t>((batch + ranks - 1) / ranks, 1 << 30));
  if (config.sync_bn && !graph.has_batch_norm()) {
    fail(ExitCode::usage, fmt::format("--sync-bn: {} has no batch normalization that learns (there "
                                      "is nothing to synchronise); leave it out",
                                      config.model));
  }
  if (config.sync_bn && config.micro_batch && *config.micro_batch < share) {
    fail(ExitCode::usage,
         fmt::format(
             "--sync-bn with --micro-batch {}: a rank's share is {} images (their statistics "
             "need all of them at once); leave --micro-batch out, or use more ranks",
             *config.micro_batch, share));
  }
  if (config.reproducible) {
    check_reproducible(config, graph);
    const Leaves leaves = *leaves_of(config, session);
    return leaves.images * leaves.lanes;
  }
  if (graph.has_batch_norm() && !config.micro_batch) return share;
  const int most = micro_batch_size(config, session);
  const bool same_share = ranks == 1 && choices.plan.growth.empty();
  if (config.micro_batch || !same_share || share <= most) return most;
  const int pieces = (share + most - 1) / most;  // alike, instead of a small last one
  return (share + pieces - 1) / pieces;
}

BatchRequest batch_request(const Session& session, const TrainingChoices& choices) {
  return {choices.seed, choices.shuffle, choices.augment, session.place().input_threads};
}

std::unique_ptr<Training> make_training(const Session& session, const Services& services,
                                        const Config& config, const TrainingChoices& choices,
                                        const Graph& graph, const DataSource& source,
                                        const ImageSet& images, const BatchPlan& plan,
                                        CompiledTraining compiled) {
  auto training = std::make_unique<Training>();
  training->start = open_start(session, config);
  training->exchange = std::move(compiled.exchange);
  training->program = std::move(compiled.program);
  training->optimizer = std::make_unique<Optimizer>(
      choices.optimizer, *session.backend, *training->exchange, training->program->layout());
  training->learning_rate = std::make_unique<LearningRate>(
      choices.learning_rate, training_epochs(plan, choices.epochs, config.steps));
  training->batches = services.data.batches(images, plan, batch_request(session, choices));
  start_weights(session, config, choices.seed, graph, source, *training);
  return training;
}

}  // namespace cputrain
