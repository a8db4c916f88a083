#include "job/training_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "exchange/make_exchange.h"
#include "job/shard_dense.h"
#include "model/rewrite.h"
#include "system/available_memory.h"

namespace cputrain {
namespace {

std::string bytes_text_of(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// The same where they lie in a backend's own memory: each rank has both.
void check_arenas_elsewhere(const std::vector<NodeRoom>& rooms, const ParameterLayout& layout) {
  const std::size_t least = (layout.arena_size + layout.gradient_size) * size_of(layout.dtype);
  for (const NodeRoom& room : rooms) {
    if (!room.backend_available || least <= *room.backend_available) continue;
    fail(ExitCode::usage,
         fmt::format("weights and gradients alone need {} of the backend's memory on host {} (each "
                     "rank), {} are available; use a smaller --image-size or another --model",
                     bytes_text_of(least), room.host, bytes_text_of(*room.backend_available)));
  }
}

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

/// Bytes of activations with so many images at once, of which nothing is touched; nothing where the
/// backend has no room to try.
std::optional<std::size_t> workspace_with(const Session& session, const TrainingSpec& spec,
                                          const Graph& graph, int images) {
  OwnedArray weights, gradients;
  const auto arenas = [&](const ParameterLayout& layout) {
    weights = OwnedArray(session.backend->memory(), layout.arena_size, layout.dtype);
    gradients = OwnedArray(session.backend->memory(), layout.gradient_size, layout.dtype);
    return Arenas{weights.array(), gradients.array()};
  };
  Communicator* synchronise = spec.flags.sync_bn ? session.communicator.get() : nullptr;
  try {
    return session.backend->compile(graph, {Phase::train, {images}, synchronise}, arenas)
        ->workspace_bytes();
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal) throw;
    return std::nullopt;
  }
}

/// Bytes that a rank of a node can have for activations and for images in flight.
struct ActivationRoom {
  std::size_t here, elsewhere;  ///< of the host, and of a backend's memory that is another
  std::size_t batches;          ///< in flight, as compiled: of the host
};

/// Nothing where the rest alone takes all.
std::optional<ActivationRoom> activation_room(const TrainingMemory& memory, const NodeRoom& room) {
  constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
  std::size_t others = memory.needed(room), batches = 0, others_elsewhere = 0;
  for (const int rank : room.ranks) {
    const RankMemory& mine = memory.ranks[static_cast<std::size_t>(rank)];
    others -= mine.host_workspace() + mine.batches;
    batches = std::max(batches, mine.batches);
    if (mine.elsewhere == 0) continue;
    others_elsewhere = std::max(others_elsewhere, mine.elsewhere - mine.workspace);
  }
  const std::size_t here = room.available.value_or(kUnlimited);
  const std::size_t elsewhere = room.backend_available.value_or(kUnlimited);
  if (others >= here || others_elsewhere >= elsewhere) return std::nullopt;
  // A sixteenth stays for what changes between two starts.
  return ActivationRoom{(here - others) / room.ranks.size() / 16 * 15,
                        (elsewhere - others_elsewhere) / 16 * 15, batches};
}

/// The most images at once that fit on the node; 0 for none.
int images_that_fit(const Session& session, const TrainingSpec& spec, const Graph& graph,
                    const CompiledTraining& compiled, const NodeRoom& node) {
  const auto room = activation_room(compiled.memory, node);
  if (!room) return 0;
  // With --reproducible each thread computes a leaf of its own.
  const Leaves whole{.images = std::ranges::max(compiled.sizes), .lanes = 1};
  const Leaves leaves = leaves_of(spec, session).value_or(whole);
  const bool of_host = session.backend->memory().is_host();
  return largest_fitting(leaves.images, [&](int images) {
    const auto workspace = workspace_with(session, spec, graph, images);
    if (!workspace) return false;
    const std::size_t in_flight =
        room->batches / static_cast<std::size_t>(leaves.images) * static_cast<std::size_t>(images);
    const std::size_t activations = static_cast<std::size_t>(leaves.lanes) * *workspace;
    return of_host ? activations + in_flight <= room->here
                   : activations <= room->elsewhere && in_flight <= room->here;
  });
}

/// "--micro-batch 8, or 3 ranks a node".
std::string remedy(const Session& session, const TrainingSpec& spec, const Graph& graph,
                   const CompiledTraining& compiled, const NodeRoom& room) {
  std::vector<std::string> fitting;
  const bool whole_share =
      spec.flags.sync_bn || (graph.has_batch_norm() && !spec.flags.micro_batch);
  const int images = images_that_fit(session, spec, graph, compiled, room);
  if (images > 0 && whole_share) {
    const auto ranks = static_cast<std::size_t>(session.communicator->size());
    const std::size_t growth = spec.flags.sync_bn ? largest_growth(spec.plan) : 1;
    const std::size_t batch = static_cast<std::size_t>(images) * ranks / growth;
    if (batch > 0) fitting.push_back(fmt::format("--batch {}", batch));
  } else if (images > 0) {
    fitting.push_back(fmt::format("--micro-batch {}", images));
  }
  const int ranks = ranks_that_fit(compiled.memory, room);
  if (ranks > 0 && ranks < static_cast<int>(room.ranks.size()) && !whole_share) {
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

std::string refusal_elsewhere(const TrainingMemory& memory, const NodeRoom& room, int images) {
  return fmt::format(
      "training needs up to {} of the backend's memory per rank on host {}, {} are available "
      "(weights, gradients, optimizer state, and activations of {} images at once lie there); ",
      bytes_text_of(memory.elsewhere(room)), room.host, bytes_text_of(*room.backend_available),
      images);
}

/// Rank 0 looks for what would fit, and all ranks end with its words.
void check_fits(const Session& session, const TrainingSpec& spec, const Graph& graph,
                const CompiledTraining& compiled) {
  const NodeRoom* here = compiled.memory.too_small();
  const NodeRoom* room = here ? here : compiled.memory.too_small_elsewhere();
  if (!room) return;
  const int images = std::ranges::max(compiled.sizes);
  std::string text;
  if (session.leads()) {
    text = here ? refusal(compiled.memory, *room, images)
                : refusal_elsewhere(compiled.memory, *room, images);
    text += remedy(session, spec, graph, compiled, *room);
  }
  fail(ExitCode::usage, session.communicator->gather(text).front());
}

/// Buckets travel while backward runs where every rank has a core for that: on one that computes,
/// the thread would cost more than it hides.
Overlap overlap_of(const Session& session) {
  const bool cores = std::ranges::all_of(session.plan.ranks, &RankPlan::communication_core);
  return cores && session.communicator->serves_threads() ? Overlap::thread : Overlap::none;
}

std::function<void()> bind_communication(const Session& session, const Services& services) {
  return [cpu = session.place().communication_cpu, bind = services.bind_this_thread] {
    if (cpu) bind({*cpu});
  };
}

ExchangeParts exchange_parts(const Session& session, const Services& services,
                             const TrainingSpec& spec, const ParameterLayout& layout) {
  return {
      .communicator = *session.communicator,
      .layout = layout,
      .bucket_bytes = static_cast<std::size_t>(spec.flags.bucket_mb * 1e6),
      .overlap = overlap_of(session),
      .on_thread_start = bind_communication(session, services),
      .sum = [&backend = *session.backend](std::span<const Array> src,
                                           const Array& dst) { backend.sum(src, dst); },
      .lanes = leaves_of(spec, session).value_or(Leaves{.lanes = 0}).lanes,
      .compression = spec.flags.compress,
      .add_products = [&backend = *session.backend](
                          const Factors& factors, std::span<const Array> leaves, Range part,
                          const Array& sum) { backend.add_products(factors, leaves, part, sum); },
      .memory = session.backend->memory()};
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

/// The exchange and the program of a graph; `shares` once memory is asked for that ranks share,
/// which all of them are given or refused.
void compile_graph(const Session& session, const Services& services, const TrainingSpec& spec,
                   const Graph& graph, const std::vector<NodeRoom>& rooms,
                   CompiledTraining& compiled, bool& shares) {
  const auto arenas = [&](const ParameterLayout& layout) {
    if (session.backend->memory().is_host()) {
      check_arenas(rooms, layout, leaves_of(spec, session).value_or(Leaves{}).lanes);
    } else {
      check_arenas_elsewhere(rooms, layout);
    }
    shares = true;
    MadeExchange made =
        make_exchange(exchange_parts(session, services, spec, layout), spec.flags.allreduce);
    for (const std::string& warning : made.warnings) warn(session, warning);
    for (const std::string& line : made.lines) say(session, line);
    say(session, exchange_line(spec, made));
    compiled.exchange = std::move(made.exchange);
    return compiled.exchange->arenas();
  };
  CompileOptions options{Phase::train, compiled.sizes};
  options.usual_images = compiled.usual_images;
  if (spec.flags.sync_bn) options.synchronise = session.communicator.get();
  if (has_sharded_dense(graph)) options.node = session.communicator.get();
  if (const auto leaves = leaves_of(spec, session)) {
    compiled.program = make_leaf_program(*session.backend, graph, options, *leaves,
                                         [&](const ParameterLayout& layout, int lane) {
                                           if (lane == 0) arenas(layout);
                                           return compiled.exchange->lane_arenas(lane);
                                         });
  } else {
    compiled.program = session.backend->compile(graph, options, arenas);
  }
}

/// With these layers sharded; false, with a warning, where a node has no room for what its ranks
/// share, in which case the exchange may take another way.
bool compile_sharded(const Session& session, const Services& services, const TrainingSpec& spec,
                     const Graph& graph, const std::vector<std::string>& layers,
                     const std::vector<NodeRoom>& rooms, CompiledTraining& compiled) {
  std::string failure;
  bool shares = false;
  try {
    compile_graph(session, services, spec, with_sharded_dense(graph, layers), rooms, compiled,
                  shares);
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal || !shares) throw;
    failure = error.what();
  }
  failure = first_text(session, failure);
  if (failure.empty()) {
    say(session, sharding_line(graph, layers, session.communicator->node_memory().local_size()));
    return true;
  }
  compiled.program.reset();
  compiled.exchange.reset();
  if (spec.flags.shard_dense) fail(ExitCode::internal, failure);
  warn(session, fmt::format("no dense layer is sharded ({})", failure));
  return false;
}

}  // namespace

/// Of the rank that has most.
int usual_images(const TrainingSpec& spec, const Session& session, const Graph& graph) {
  const auto ranks = static_cast<std::size_t>(session.communicator->size());
  const std::size_t share = (spec.batch + ranks - 1) / ranks;
  const auto at_once = static_cast<std::size_t>(training_micro_batch(spec, session, graph));
  return static_cast<int>(std::min(share, at_once));
}

CompiledTraining compile_training(const Session& session, const Services& services,
                                  const TrainingSpec& spec, const Graph& graph,
                                  std::vector<int> sizes, std::vector<NodeRoom> rooms,
                                  const InputMemory& input) {
  CompiledTraining compiled;
  compiled.sizes = std::move(sizes);
  compiled.usual_images = usual_images(spec, session, graph);
  const auto layers = layers_to_shard(spec, session, graph);
  if (layers.empty() || !compile_sharded(session, services, spec, graph, layers, rooms, compiled)) {
    bool shares = false;
    compile_graph(session, services, spec, graph, rooms, compiled, shares);
  }
  const ExchangeMemory taken = compiled.exchange->memory();
  const auto owned = compiled.exchange->owned();
  const ParameterLayout& layout = compiled.program->layout();
  std::size_t owned_elements = 0;
  for (const Range& range : owned) owned_elements += range.size();
  RankMemory mine{taken.own_weights,
                  taken.own - taken.own_weights,
                  state_bytes(spec.optimizer.rule, owned, layout.dtype),
                  compiled.program->workspace_bytes(),
                  input.batches,
                  own_memory()};
  if (!session.backend->memory().is_host()) {
    mine.elsewhere = taken.own - taken.own_buffers + mine.state + mine.workspace;
  }
  compiled.memory = gather_memory(session, std::move(rooms), mine, {input.cache, taken.node});
  compiled.memory.state_divided = owned_elements < layout.gradient_size;
  check_fits(session, spec, graph, compiled);
  return compiled;
}

}  // namespace cputrain
