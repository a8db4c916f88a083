#include "job/training_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "exchange/make_exchange.h"
#include "job/shard_dense.h"
#include "model/rewrite.h"
#include "system/available_memory.h"
#include "system/pages.h"

namespace cputrain {
namespace {

std::string bytes_text_of(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// Before the arenas are mapped: weights once a node and gradients once a rank, but for other
/// ranks' shards, are the least that any exchange needs.
void check_arenas(const std::vector<NodeRoom>& rooms, const ParameterLayout& layout, int lanes) {
  const std::size_t size = size_of(layout.dtype);
  for (const NodeRoom& room : rooms) {
    std::size_t elements = layout.arena_size;
    const auto ranks = static_cast<int>(room.ranks.size());
    for (int local = 0; local < ranks; ++local) {
      for (const Range& range : used_gradients(layout, local, ranks)) {
        elements += range.size() * static_cast<std::size_t>(lanes);
      }
    }
    const std::size_t least = elements * size;
    if (!room.available || least <= *room.available) continue;
    fail(ExitCode::usage,
         fmt::format("weights and gradients alone need {} of memory on host {} ({} rank{}), {} are "
                     "available; use a smaller --image-size, another --model, fewer ranks a node{}",
                     bytes_text_of(least), room.host, room.ranks.size(),
                     room.ranks.size() == 1 ? "" : "s", bytes_text_of(*room.available),
                     lanes > 1 ? " or fewer --threads" : ""));
  }
}

/// Bytes of activations with so many images at once; nothing of it is touched.
std::size_t workspace_with(const Session& session, const TrainingPlan& plan, int images) {
  std::vector<std::unique_ptr<Pages>> memory;
  const auto array = [&](std::size_t elements, DType dtype) {
    memory.push_back(std::make_unique<Pages>(elements * size_of(dtype)));
    return Array{memory.back()->bytes().data(), elements, dtype};
  };
  const auto arenas = [&](const ParameterLayout& layout) {
    return Arenas{array(layout.arena_size, layout.dtype),
                  array(layout.gradient_size, layout.dtype)};
  };
  Communicator* synchronise = plan.spec.flags.sync_bn ? session.communicator.get() : nullptr;
  return session.backend->compile(plan.graph, {Phase::train, {images}, synchronise}, arenas)
      ->workspace_bytes();
}

/// The most images at once that fit on the node; 0 for none.
int images_that_fit(const Session& session, const TrainingPlan& plan,
                    const CompiledTraining& compiled, const NodeRoom& room) {
  // With --reproducible each thread computes a leaf of its own.
  const Leaves whole{.images = std::ranges::max(compiled.sizes), .lanes = 1};
  const Leaves leaves = plan.leaves.value_or(whole);
  const auto lanes = static_cast<std::size_t>(leaves.lanes);
  std::size_t others = compiled.memory.needed(room), batches = 0;
  for (const int rank : room.ranks) {
    const RankMemory& memory = compiled.memory.ranks[static_cast<std::size_t>(rank)];
    others -= memory.workspace + memory.batches;
    batches = std::max(batches, memory.batches);
  }
  if (others >= *room.available) return 0;
  // A sixteenth stays for what changes between two starts.
  const std::size_t each = (*room.available - others) / room.ranks.size() / 16 * 15;
  return largest_fitting(leaves.images, [&](int images) {
    const auto part = static_cast<std::size_t>(images);
    const std::size_t in_flight = batches / static_cast<std::size_t>(leaves.images) * part;
    return lanes * workspace_with(session, plan, images) + in_flight <= each;
  });
}

/// "--micro-batch 8, or 3 ranks a node".
std::string remedy(const Session& session, const TrainingPlan& plan,
                   const CompiledTraining& compiled, const NodeRoom& room) {
  std::vector<std::string> fitting;
  const TrainingSpec& spec = plan.spec;
  const int images = images_that_fit(session, plan, compiled, room);
  if (images > 0 && plan.whole_share()) {
    const auto ranks = static_cast<std::size_t>(session.communicator->size());
    const std::size_t growth = spec.flags.sync_bn ? largest_growth(spec.plan) : 1;
    const std::size_t batch = static_cast<std::size_t>(images) * ranks / growth;
    if (batch > 0) fitting.push_back(fmt::format("--batch {}", batch));
  } else if (images > 0) {
    fitting.push_back(fmt::format("--micro-batch {}", images));
  }
  const int ranks = ranks_that_fit(compiled.memory, room);
  if (ranks > 0 && ranks < static_cast<int>(room.ranks.size()) && !plan.whole_share()) {
    fitting.push_back(fmt::format("{} rank{} a node", ranks, ranks == 1 ? "" : "s"));
  }
  if (fitting.empty()) return "use a smaller --image-size, another --model or more nodes";
  return "the largest that fit: " + join(fitting, ", or ");
}

std::string refusal(const TrainingMemory& memory, const NodeRoom& room, int images) {
  std::size_t most = 0;
  for (const int rank : room.ranks) {
    most = std::max(most, memory.ranks[static_cast<std::size_t>(rank)].total());
  }
  return fmt::format(
      "training needs {} of memory on host {}, {} are available (up to {} a rank, of which it has "
      "{}, with {} images at once; {} once a node; with less, the system swaps or ends it); ",
      bytes_text_of(memory.needed(room)), room.host, bytes_text_of(*room.available),
      bytes_text_of(most), room.ranks.size(), images, bytes_text_of(memory.shared.total()));
}

/// Rank 0 looks for what would fit, and all ranks end with its words.
void check_fits(const Session& session, const TrainingPlan& plan,
                const CompiledTraining& compiled) {
  const NodeRoom* room = compiled.memory.too_small();
  if (!room) return;
  const int images = std::ranges::max(compiled.sizes);
  std::string text;
  if (session.leads()) {
    text = refusal(compiled.memory, *room, images) + remedy(session, plan, compiled, *room);
  }
  fail(ExitCode::usage, session.communicator->gather(text).front());
}

/// Buckets travel while backward runs where every rank has a core for that: on one that computes,
/// the thread would cost more than it hides.
Overlap overlap_of(const Session& session) {
  const bool cores = std::ranges::all_of(session.plan.ranks, &RankPlan::communication_core);
  return cores && session.communicator->serves_threads() ? Overlap::thread : Overlap::none;
}

std::function<void()> bind_communication(const Session& session) {
  return [cpu = session.place().communication_cpu, bind = session.services.bind_this_thread] {
    if (cpu) bind({*cpu});
  };
}

ExchangeParts exchange_parts(const Session& session, const TrainingPlan& plan,
                             const ParameterLayout& layout) {
  return {
      .communicator = *session.communicator,
      .layout = layout,
      .bucket_bytes = static_cast<std::size_t>(plan.spec.flags.bucket_mb * 1e6),
      .overlap = overlap_of(session),
      .on_thread_start = bind_communication(session),
      .sum = [&backend = *session.backend](std::span<const Array> src,
                                           const Array& dst) { backend.sum(src, dst); },
      .lanes = plan.leaves ? plan.leaves->lanes : 0,
      .compression = plan.spec.flags.compress,
      .add_products = [&backend = *session.backend](
                          const Factors& factors, std::span<const Array> leaves, Range part,
                          const Array& sum) { backend.add_products(factors, leaves, part, sum); }};
}

std::string exchange_line(const TrainingSpec& spec, const MadeExchange& made) {
  if (!spec.flags.reproducible) {
    return fmt::format("Exchange: {} ({})", made.exchange->describe(), to_text(made.choice));
  }
  return fmt::format(
      "Exchange: {}: the same bits at any number of ranks and threads on this kind of "
      "CPU (`bench step --reproducible` has the price)",
      made.exchange->describe());
}

/// Compiles one graph of a training: a class, since making the arenas calls back into it.
class Compilation {
 public:
  Compilation(const Session& session, const TrainingPlan& plan, const std::vector<NodeRoom>& rooms,
              CompiledTraining& compiled)
      : session_(session), plan_(plan), rooms_(rooms), compiled_(compiled) {}

  /// With the plan's layers sharded, where there are any and room for what ranks share.
  void run() {
    if (plan_.sharded.empty() || !compile_sharded()) compile(plan_.graph);
  }

 private:
  void compile(const Graph& graph);
  bool compile_sharded();
  Arenas make_arenas(const ParameterLayout&);

  const Session& session_;
  const TrainingPlan& plan_;
  const std::vector<NodeRoom>& rooms_;
  CompiledTraining& compiled_;
  bool shares_ = false;  ///< memory was asked for that ranks share, which all get or none
};

Arenas Compilation::make_arenas(const ParameterLayout& layout) {
  check_arenas(rooms_, layout, plan_.lanes());
  shares_ = true;
  MadeExchange made =
      make_exchange(exchange_parts(session_, plan_, layout), plan_.spec.flags.allreduce);
  for (const std::string& warning : made.warnings) warn(session_, warning);
  for (const std::string& line : made.lines) say(session_, line);
  say(session_, exchange_line(plan_.spec, made));
  compiled_.exchange = std::move(made.exchange);
  return compiled_.exchange->arenas();
}

void Compilation::compile(const Graph& graph) {
  CompileOptions options{Phase::train, compiled_.sizes};
  options.usual_images = plan_.usual_images;
  if (plan_.spec.flags.sync_bn) options.synchronise = session_.communicator.get();
  if (has_sharded_dense(graph)) options.node = session_.communicator.get();
  Backend& backend = *session_.backend;
  if (plan_.leaves) {
    compiled_.program = make_leaf_program(backend, graph, options, *plan_.leaves,
                                          [this](const ParameterLayout& layout, int lane) {
                                            if (lane == 0) make_arenas(layout);
                                            return compiled_.exchange->lane_arenas(lane);
                                          });
  } else {
    compiled_.program = backend.compile(
        graph, options, [this](const ParameterLayout& layout) { return make_arenas(layout); });
  }
}

/// False, with a warning, where a node has no room for what its ranks share, in which case the
/// exchange may take another way.
bool Compilation::compile_sharded() {
  std::string failure;
  try {
    compile(with_sharded_dense(plan_.graph, plan_.sharded));
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal || !shares_) throw;
    failure = error.what();
  }
  failure = first_text(session_, failure);
  if (failure.empty()) {
    say(session_, sharding_line(plan_.graph, plan_.sharded, session_.nodes.local_size()));
    return true;
  }
  compiled_.program.reset();
  compiled_.exchange.reset();
  if (plan_.spec.flags.shard_dense) fail(ExitCode::internal, failure);
  warn(session_, fmt::format("no dense layer is sharded ({})", failure));
  return false;
}

}  // namespace

CompiledTraining compile_training(const Session& session, const TrainingPlan& plan,
                                  std::vector<int> sizes, MemoryBefore before) {
  CompiledTraining compiled;
  compiled.sizes = std::move(sizes);
  Compilation(session, plan, before.rooms, compiled).run();
  const ExchangeMemory taken = compiled.exchange->memory();
  const auto owned = compiled.exchange->owned();
  const ParameterLayout& layout = compiled.program->layout();
  std::size_t owned_elements = 0;
  for (const Range& range : owned) owned_elements += range.size();
  const RankMemory mine{taken.own_weights,
                        taken.own - taken.own_weights,
                        state_bytes(plan.spec.optimizer.rule, owned, layout.dtype),
                        compiled.program->workspace_bytes(),
                        before.batches,
                        own_memory()};
  compiled.memory =
      gather_memory(session, std::move(before.rooms), mine, {before.cache, taken.node});
  compiled.memory.state_divided = owned_elements < layout.gradient_size;
  check_fits(session, plan, compiled);
  return compiled;
}

}  // namespace cputrain
