#include "training/plan/compiled_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "checkpoint/snapshot.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/text.h"
#include "exchange/exchanges.h"
#include "model/layer_patterns.h"
#include "model/rewrite.h"
#include "system/pages.h"
#include "training/plan/image_place.h"

namespace cputrain::training {
namespace {

exchange::ExchangeParts exchange_parts(const Session& session, const TrainingPlan& plan,
                                       const compute::ParameterLayout& layout) {
  compute::Backend& backend = *session.backend;
  return {
      .communicator = *session.communicator,
      .layout = layout,
      .bucket_bytes = static_cast<std::size_t>(plan.spec.flags.bucket_mb * 1e6),
      .overlap = overlaps(session),
      .on_thread_start = bind_to_communication(session),
      .sum = [&backend](std::span<const Array> src, const Array& dst) { backend.sum(src, dst); },
      .lanes = plan.chunks ? plan.chunks->lanes : 0,
      .compression = plan.spec.flags.compress,
      .add_products =
          [&backend](const compute::Factors& factors, std::span<const Array> chunks, Range part,
                     const Array& sum) { backend.add_products(factors, chunks, part, sum); },
      .memory = backend.memory(),
      .device_sums = backend.device_sums()};
}

std::string exchange_line(const TrainingSpec& spec, const exchange::MadeExchange& made) {
  if (!spec.flags.reproducible) {
    return fmt::format("Exchange: {} ({})", made.exchange->describe(), comm::to_text(made.choice));
  }
  return fmt::format(
      "Exchange: {}: the same bits at any number of ranks and threads on this kind of "
      "CPU (`bench step --reproducible` has the price)",
      made.exchange->describe());
}

/// What a person should know about the layers that are sharded.
std::string sharding_line(const model::Graph& graph, const std::vector<std::string>& layers,
                          int ranks) {
  std::vector<std::string> texts;
  for (const model::Graph::Node& node : graph.nodes()) {
    if (std::ranges::find(layers, node.name) == layers.end()) continue;
    const std::size_t bytes = node.parameters.front().size() * sizeof(float);
    texts.push_back(fmt::format("{} ({})", node.name, bytes_text(bytes)));
  }
  return fmt::format(
      "Sharded: {} over the {} ranks of a node, so that its gradient is made once per node and not "
      "once per rank (--no-shard-dense)",
      join(texts, ", "), ranks);
}

/// Compiles one graph of a training: a class, since making the arenas calls back into it.
class Compilation {
 public:
  Compilation(const Session& session, const TrainingPlan& plan,
              const std::vector<NodeCapacity>& capacities, std::vector<int> sizes,
              CompiledTraining& compiled)
      : session_(session),
        plan_(plan),
        capacities_(capacities),
        sizes_(std::move(sizes)),
        compiled_(compiled) {}

  /// With the plan's layers sharded, where there are any and room for what ranks share.
  void run() {
    if (plan_.sharded.empty() || !compile_sharded()) compile(plan_.graph);
  }

 private:
  void compile(const model::Graph& graph);
  bool compile_sharded();
  compute::Arenas make_arenas(const compute::ParameterLayout&);

  const Session& session_;
  const TrainingPlan& plan_;
  const std::vector<NodeCapacity>& capacities_;
  std::vector<int> sizes_;  ///< of compiled_, and smaller ones for images that are new
  CompiledTraining& compiled_;
  bool shares_ = false;  ///< memory was asked for that ranks share, which all get or none
};

compute::Arenas Compilation::make_arenas(const compute::ParameterLayout& layout) {
  check_arenas(session_, plan_, capacities_, layout);
  shares_ = true;
  exchange::MadeExchange made =
      exchange::make_exchange(exchange_parts(session_, plan_, layout), plan_.spec.flags.allreduce);
  for (const std::string& warning : made.warnings) warn_once(session_, warning);
  for (const std::string& line : made.lines) say_detail_once(session_, line);
  // One process exchanges nothing, but a measurement says what its steps have in them.
  const TrainingFlags& flags = plan_.spec.flags;
  if (!session_.is_alone() || flags.reproducible || flags.task.measures) {
    say_detail_once(session_, exchange_line(plan_.spec, made));
  }
  compiled_.allreduce = comm::to_text(made.choice);
  compiled_.exchange = std::move(made.exchange);
  return compiled_.exchange->arenas();
}

void Compilation::compile(const model::Graph& graph) {
  compute::CompileOptions options{compute::Phase::train, sizes_};
  options.usual_images = plan_.usual_images;
  if (plan_.spec.flags.sync_bn) options.synchronise = session_.communicator.get();
  if (model::has_sharded_dense(graph)) options.node = session_.communicator.get();
  compute::Backend& backend = *session_.backend;
  if (plan_.chunks) {
    compiled_.program =
        compute::make_chunked_program(backend, graph, options, *plan_.chunks,
                                      [this](const compute::ParameterLayout& layout, int lane) {
                                        if (lane == 0) make_arenas(layout);
                                        return compiled_.exchange->lane_arenas(lane);
                                      });
  } else {
    compiled_.program = backend.compile(
        graph, options,
        [this](const compute::ParameterLayout& layout) { return make_arenas(layout); });
  }
}

/// False, with a warning, where a node has no room for what its ranks share, in which case the
/// exchange may take another way.
bool Compilation::compile_sharded() {
  std::string failure;
  try {
    compile(model::with_sharded_dense(plan_.graph, plan_.sharded));
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal || !shares_) throw;
    failure = error.what();
  }
  failure = first_text(session_, failure);
  if (failure.empty()) {
    say_detail_once(session_,
                    sharding_line(plan_.graph, plan_.sharded, session_.nodes.local_size()));
    return true;
  }
  compiled_.program.reset();
  compiled_.exchange.reset();
  if (plan_.spec.flags.shard_dense) fail(ExitCode::internal, failure);
  warn_once(session_, "no dense layer is sharded ({})", failure);
  return false;
}

/// Bytes; backends make it whole from their own order of its numbers.
std::size_t largest_array(const compute::ParameterLayout& layout) {
  std::size_t count = 0;
  for (const compute::Parameter& p : layout.parameters) count = std::max(count, p.count);
  return count * size_of(layout.dtype);
}

/// Bytes of a start, by which it exceeds what the training takes later, which is not touched then:
/// ranks compare how weights lie in memory, and rank 0 makes the first numbers of its largest
/// array, as doubles and as floats.
std::size_t start_beyond(const compute::ParameterLayout& layout, const RankMemory& later,
                         std::size_t first_numbers) {
  const std::size_t start = std::max(compute::layout_fingerprint_bytes(layout), first_numbers);
  const std::size_t untouched = later.state + later.workspace + later.batches + later.snapshot +
                                later.snapshot_host + later.written;
  return start - std::min(start, untouched);
}

/// All ranks' figures on every rank. Collective.
TrainingMemory gather_memory(const Session& session, std::vector<NodeCapacity> capacities,
                             const RankMemory& mine, const SharedMemory& shared) {
  return {std::move(capacities), comm::gather_values(*session.communicator, mine), shared};
}

constexpr std::size_t kPartOfMemory = 4;  ///< features take no more than a quarter of what is free
constexpr int kPartsOfPass = 8;           ///< the smallest pass over new images has an eighth

/// Views of an image that these flips and turns make; 0 where there are more than some.
std::size_t views_of_image(data::Augment augment) {
  const std::size_t views =
      (augment.flip ? 2 : 1) * (augment.vflip ? 2 : 1) * (augment.six ? 6 : 1);
  augment.flip = augment.vflip = augment.six = false;
  return augment == data::Augment{} ? views : 0;
}

/// Where features are copied to the order of a batch.
std::size_t rows_of_a_pass(const TrainingPlan& plan, const compute::FeatureFacts& features) {
  return features.bytes * static_cast<std::size_t>(plan.micro_batch);
}

/// Bytes for each rank, at most those that are wanted: a part of what is free before a training,
/// and half of what it leaves, so that none is refused for what it can do without.
std::size_t room_for_features(const TrainingMemory& memory, std::size_t wanted) {
  std::size_t room = wanted;
  for (const NodeCapacity& node : memory.capacities) {
    if (!node.available) continue;
    const std::size_t needed = memory.needed(node), ranks = node.ranks.size();
    const std::size_t left = *node.available - std::min(*node.available, needed);
    const std::size_t free = *node.available - std::min(*node.available, memory.shared.cache);
    room = std::min({room, left / 2 / ranks, free / kPartOfMemory / ranks});
  }
  return room;
}

/// The sizes, and smaller ones for the images of a batch that are new in a view of theirs.
std::vector<int> with_sizes_of_features(const TrainingPlan& plan, std::vector<int> sizes,
                                        std::size_t views) {
  if (views == 0 || views_of_image(plan.spec.augment) == 1) return sizes;
  const int largest = *std::ranges::max_element(sizes);
  for (int part = 2; part <= kPartsOfPass; part *= 2) {
    if (largest % part == 0) sizes.push_back(largest / part);
  }
  return sizes;
}

/// Lets the program keep them, as many as there is room for beside the memory of the training
/// without them, and says so. Returns which part of all that is: 0 where none are kept.
double keep_features(const Session& session, const TrainingPlan& plan, std::size_t views,
                     const TrainingMemory& memory, compute::Program& program) {
  const auto features = plan.keeps_features ? features_of(plan, views, program) : std::nullopt;
  if (!features) return 0;
  const model::Graph graph = model::pool_before_relu(plan.graph);
  const std::size_t needed = views * features->bytes;
  const std::size_t room = room_for_features(memory, needed + rows_of_a_pass(plan, *features));
  const std::size_t kept = room - std::min(room, rows_of_a_pass(plan, *features));
  const std::string_view layers = graph.nodes()[static_cast<std::size_t>(features->node)].name;
  if (kept < features->bytes) {
    say_detail(session,
               "Features: memory has no room to keep what the frozen layers up to {} make of an "
               "image ({} each): they are computed in each pass",
               layers, bytes_text(features->bytes));
    return 0;
  }
  program.keep_features(kept);
  say_detail(
      session,
      "Features: what the frozen layers up to {} make of an image is kept ({} each, {} in all{}); "
      "an image that was met in the same view costs {:.1f} % less of the forward pass",
      layers, bytes_text(features->bytes), bytes_text(kept),
      kept < needed ? ", as far as memory has room" : "",
      100 * model::share_of_work(graph, features->node));
  return static_cast<double>(kept) / static_cast<double>(needed);
}

}  // namespace

bool overlaps(const Session& session) {
  const bool cores =
      std::ranges::all_of(session.plan.ranks, &placement::RankPlan::communication_core);
  return cores && session.communicator->serves_threads();
}

std::size_t views_of(const TrainingPlan& plan, std::size_t images) {
  if (plan.chunks || model::frozen_cuts(plan.graph).empty()) return 0;
  return images * views_of_image(plan.spec.augment);
}

std::optional<compute::FeatureFacts> features_of(const TrainingPlan& plan, std::size_t views,
                                                 const compute::Program& program) {
  if (views == 0) return std::nullopt;
  const auto features = program.features();
  const bool saves =
      features && model::share_of_work(model::pool_before_relu(plan.graph), features->node) > 0;
  return saves ? features : std::nullopt;
}

loop::RankProgram program_of(const Session& session, const CompiledTraining& compiled) {
  return {*session.communicator,
          *session.backend,
          *compiled.program,
          *compiled.exchange,
          session.services.fault_point,
          session.services.simulated};
}

CompiledTraining compile_training(const Session& session, const TrainingPlan& plan,
                                  std::vector<int> sizes, MemoryBefore before) {
  CompiledTraining compiled;
  compiled.sizes = std::move(sizes);
  Compilation(session, plan, before.capacities,
              with_sizes_of_features(plan, compiled.sizes, before.views), compiled)
      .run();
  if (plan.spec.flags.profile) compiled.program->time_layers(true);
  const exchange::ExchangeMemory taken = compiled.exchange->memory();
  const auto owned = compiled.exchange->owned();
  const compute::ParameterLayout& layout = compiled.program->layout();
  std::size_t owned_elements = 0;
  for (const Range& range : owned) owned_elements += range.size();
  const std::size_t process = system::own_memory();
  RankMemory mine{taken.own_weights,
                  taken.own - taken.own_weights,
                  loop::state_bytes(plan.spec.optimizer, owned, layout.dtype),
                  compiled.program->workspace_bytes(),
                  before.batches.host,
                  process,
                  process - std::min(process, before.held),
                  (1 + static_cast<std::size_t>(threads_beside(session))) * system::kKeptFree};
  const SafetyFlags& safety = plan.spec.flags.safety;
  if (safety.takes_checkpoints()) {
    const checkpoint::SnapshotBytes snapshot = checkpoint::snapshot_bytes(
        program_of(session, compiled), plan.spec.optimizer, session.nodes.nodes());
    mine.snapshot = snapshot.arrays;
    mine.snapshot_host = snapshot.host;
  }
  // The best weights wait in memory of their own for storage that is slow (RunControl).
  if (session.leads() && safety.keeps_best()) {
    mine.snapshot += layout.arena_size * size_of(layout.dtype);
  }
  // The weights, while their averages are evaluated (loop::Parts::aside).
  if (plan.spec.optimizer.ema > 0 && session.leads()) {
    mine.state += layout.arena_size * size_of(layout.dtype);
  }
  if (session.leads()) mine.written = largest_array(layout);
  if (session.backend->memory().is_host()) {
    mine.start = start_beyond(layout, mine, 3 * mine.written);
  }
  if (!session.backend->memory().is_host()) {
    mine.copy = taken.own_weights;
    mine.library = taken.library;
    mine.elsewhere = taken.own - taken.own_buffers + mine.state + mine.workspace + mine.copy +
                     mine.snapshot + mine.library;
    compiled.images_on_device = keep_images_on_device(session, plan, before, mine.elsewhere);
    const compute::FeedBytes& images = compiled.images_on_device ? before.kept : before.batches;
    mine.batches = images.host;
    mine.images = images.device;
    mine.elsewhere += mine.images;
  }
  compiled.memory =
      gather_memory(session, std::move(before.capacities), mine, {before.cache, taken.node});
  compiled.memory.state_divided = owned_elements < layout.gradient_size;
  if (before.may_leave && compiled.memory.too_small()) {
    compiled.images_left_out = true;
    compiled.memory.shared.cache = 0;
  }
  if (before.views > 0) {
    compiled.kept_features =
        keep_features(session, plan, before.views, compiled.memory, *compiled.program);
  }
  if (compiled.kept_features > 0) {
    mine.workspace = compiled.program->workspace_bytes();
    compiled.memory.ranks = comm::gather_values(*session.communicator, mine);
  }
  check_fits(session, plan, compiled.memory, std::ranges::max(compiled.sizes));
  return compiled;
}

}  // namespace cputrain::training
