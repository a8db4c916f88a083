#include "training/plan/training_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "system/limits/process_limits.h"
#include "training/plan/image_place.h"

namespace cputrain::training {
namespace {

/// "300 MB are available in its control group"; of a room that knows.
std::string available_text(const NodeCapacity& capacity) {
  return bytes_text(*capacity.available) + " are available" +
         (capacity.in_group ? system::kInControlGroup : "");
}

/// Where arenas lie in a backend's own memory: each rank has both.
void check_arenas_elsewhere(const std::vector<NodeCapacity>& capacities,
                            const compute::ParameterLayout& layout) {
  const std::size_t least = (layout.arena_size + layout.gradient_size) * size_of(layout.dtype);
  for (const NodeCapacity& capacity : capacities) {
    if (!capacity.backend_available || least <= *capacity.backend_available) continue;
    fail(ExitCode::usage,
         "weights and gradients alone need {} of the backend's memory on host {} (each rank), {} "
         "are available; use a smaller --image-size or another --model",
         bytes_text(least), capacity.host, bytes_text(*capacity.backend_available));
  }
}

/// Weights once per node and gradients once per rank, but for the shards of the node's others.
void check_arenas_here(const comm::NodeMap& nodes, const std::vector<NodeCapacity>& capacities,
                       const compute::ParameterLayout& layout, int lanes) {
  const std::size_t size = size_of(layout.dtype);
  const std::vector<int> node_of = nodes.by_rank();
  for (const NodeCapacity& capacity : capacities) {
    std::size_t elements = layout.arena_size;
    for (const int rank : capacity.ranks) {
      const auto& node =
          nodes.ranks[static_cast<std::size_t>(node_of[static_cast<std::size_t>(rank)])];
      const auto local = static_cast<int>(std::ranges::find(node, rank) - node.begin());
      for (const Range& range :
           compute::used_gradients(layout, local, static_cast<int>(node.size()))) {
        elements += range.size() * static_cast<std::size_t>(lanes);
      }
    }
    const std::size_t least = elements * size;
    if (!capacity.available || least <= *capacity.available) continue;
    fail(ExitCode::usage,
         "weights and gradients alone need {} of memory on host {} ({}), {}; use a smaller "
         "--image-size, another --model, fewer ranks per node{}",
         bytes_text(least), capacity.host, counted(capacity.ranks.size(), "rank"),
         available_text(capacity), lanes > 1 ? " or fewer --threads" : "");
  }
}

/// Bytes of activations with so many images at once, of which nothing is touched; nothing where the
/// backend has no room to try.
std::optional<std::size_t> workspace_with(const Session& session, compute::Backend& backend,
                                          const TrainingPlan& plan, int images) {
  compute::OwnedArray weights, gradients;
  const auto arenas = [&](const compute::ParameterLayout& layout) {
    weights = compute::OwnedArray(backend.memory(), layout.arena_size, layout.dtype);
    gradients = compute::OwnedArray(backend.memory(), layout.gradient_size, layout.dtype);
    return compute::Arenas{weights.array(), gradients.array()};
  };
  comm::Communicator* synchronise = plan.spec.flags.sync_bn ? session.communicator.get() : nullptr;
  try {
    return backend.compile(plan.graph, {compute::Phase::train, {images}, synchronise}, arenas)
        ->workspace_bytes();
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal) throw;
    return std::nullopt;
  }
}

/// Bytes that a rank of a node can have for activations and for images in flight.
struct ActivationSpace {
  std::size_t here, elsewhere;  ///< in the host's memory, and in a backend's that is another
  std::size_t batches;          ///< in flight, as compiled, in the host's memory
};

/// Nothing where the rest alone takes all.
std::optional<ActivationSpace> activation_space(const TrainingMemory& memory,
                                                const NodeCapacity& capacity) {
  constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
  std::size_t others = memory.needed(capacity), batches = 0, others_elsewhere = 0;
  for (const int rank : capacity.ranks) {
    const RankMemory& mine = memory.ranks[static_cast<std::size_t>(rank)];
    others -= mine.host_workspace() + mine.batches;
    batches = std::max(batches, mine.batches);
    if (mine.elsewhere == 0) continue;
    others_elsewhere = std::max(others_elsewhere, mine.elsewhere - mine.workspace);
  }
  const std::size_t here = capacity.available.value_or(kUnlimited);
  const std::size_t elsewhere = capacity.backend_available.value_or(kUnlimited);
  if (others >= here || others_elsewhere >= elsewhere) return std::nullopt;
  // A sixteenth stays for what changes between two starts.
  return ActivationSpace{(here - others) / capacity.ranks.size() / 16 * 15,
                         (elsewhere - others_elsewhere) / 16 * 15, batches};
}

/// The most images at once that fit on the node; 0 for none.
int images_that_fit(const Session& session, const TrainingPlan& plan, const TrainingMemory& memory,
                    int images, const NodeCapacity& node) {
  const auto capacity = activation_space(memory, node);
  if (!capacity) return 0;
  // With --reproducible each thread computes a chunk of its own.
  const compute::ReproducibleChunks whole{.images = images, .lanes = 1};
  const compute::ReproducibleChunks chunks = plan.chunks.value_or(whole);
  const bool of_host = session.backend->memory().is_host();
  return largest_fitting(chunks.images, [&](int fewer) {
    const auto workspace = workspace_with(session, *session.backend, plan, fewer);
    if (!workspace) return false;
    const std::size_t in_flight = capacity->batches / static_cast<std::size_t>(chunks.images) *
                                  static_cast<std::size_t>(fewer);
    const std::size_t activations = static_cast<std::size_t>(chunks.lanes) * *workspace;
    return of_host ? activations + in_flight <= capacity->here
                   : activations <= capacity->elsewhere && in_flight <= capacity->here;
  });
}

/// Whether as many images fit on a device that stores maps in bf16.
bool fits_in_bf16(const Session& session, const TrainingPlan& plan, const TrainingMemory& memory,
                  int images, const NodeCapacity& node) {
  const auto capacity = activation_space(memory, node);
  if (!capacity || !memory.too_small_elsewhere()) return false;
  const auto narrow = session.services.make_backend({.name = session.backend->name(),
                                                     .precision = Precision::bf16,
                                                     .threads = session.threads,
                                                     .device = session.device.device,
                                                     .ranks_on_device = session.device.ranks});
  if (narrow->facts().number_bytes >= session.backend->facts().number_bytes) return false;
  const auto workspace = workspace_with(session, *narrow, plan, images);
  return workspace && *workspace <= capacity->elsewhere;
}

/// "--micro-batch 8, or 3 ranks per node".
std::string remedy(const Session& session, const TrainingPlan& plan, const TrainingMemory& memory,
                   int images, const NodeCapacity& capacity) {
  std::vector<std::string> fitting;
  const TrainingSpec& spec = plan.spec;
  const int fitting_images = images_that_fit(session, plan, memory, images, capacity);
  if (fitting_images > 0 && plan.whole_share()) {
    const auto ranks = static_cast<std::size_t>(session.communicator->size());
    const std::size_t growth = spec.flags.sync_bn ? largest_growth(spec.plan) : 1;
    const std::size_t batch = static_cast<std::size_t>(fitting_images) * ranks / growth;
    if (batch > 0) fitting.push_back(fmt::format("--batch {}", batch));
  } else if (fitting_images > 0) {
    fitting.push_back(fmt::format("--micro-batch {}", fitting_images));
  }
  const int ranks = ranks_that_fit(memory, capacity);
  if (ranks > 0 && ranks < static_cast<int>(capacity.ranks.size()) && !plan.whole_share()) {
    fitting.push_back(counted(ranks, "rank") + " per node");
  }
  std::vector<std::string> others;
  if (fits_in_bf16(session, plan, memory, images, capacity))
    others.emplace_back("--precision bf16");
  if (memory.without_snapshot().fits()) {
    others.emplace_back(
        "--checkpoint-every 0 --no-save-best (a stop then keeps the weights alone)");
  }
  const std::string other = join(others, ", or ");
  TrainingMemory of_packed = memory;
  of_packed.shared.cache = 0;  // no images stay in memory
  const std::string packed = of_packed.fits() ? pack_advice(spec.flags, image_form(spec)) : "";
  if (!fitting.empty()) {
    return "the largest that fit: " + join(fitting, ", or ") +
           (other.empty() ? "" : "; or " + other) + packed;
  }
  return (other.empty() ? "use a smaller --image-size, another --model or more nodes"
                        : "use " + other) +
         packed;
}

std::string refusal(const TrainingMemory& memory, const NodeCapacity& capacity, int images) {
  std::size_t most = 0;
  for (const int rank : capacity.ranks) {
    most = std::max(most, memory.ranks[static_cast<std::size_t>(rank)].total());
  }
  return fmt::format(
      "training needs {} of memory on host {}, {} (up to {} per rank, of which it "
      "has {}, with {} images at once; {} once per node; with less, the system swaps or ends it); ",
      bytes_text(memory.needed(capacity)), capacity.host, available_text(capacity),
      bytes_text(most), capacity.ranks.size(), images, bytes_text(memory.shared.total()));
}

std::string refusal_elsewhere(const TrainingMemory& memory, const NodeCapacity& capacity,
                              int images) {
  const std::size_t library = memory.ranks.front().library;
  return fmt::format(
      "training needs up to {} of the backend's memory per rank on host {}, {} are available "
      "(weights, gradients, optimizer state, their copy for checkpoints on rank 0, images, and "
      "activations of {} of them at once lie there{}); ",
      bytes_text(memory.elsewhere(capacity)), capacity.host,
      bytes_text(*capacity.backend_available), images,
      library > 0 ? fmt::format(", and NCCL takes about {}, which --allreduce staged does without",
                                bytes_text(library))
                  : "");
}

/// It is an estimate from above, so a training may fit all the same.
void warn_of_library(const Session& session, const TrainingMemory& memory) {
  const NodeCapacity* capacity = memory.too_small_elsewhere();
  if (!capacity) return;
  warn_once(session,
            "training needs up to {} of the backend's memory per rank on host {}, of which NCCL "
            "takes about {} by estimate, and {} are available (it may run out of memory); "
            "--allreduce staged does without NCCL",
            bytes_text(memory.elsewhere(*capacity)), capacity->host,
            bytes_text(memory.ranks.front().library), bytes_text(*capacity->backend_available));
}

}  // namespace

std::vector<NodeCapacity> measure_capacities(const Session& session) {
  struct Available {
    std::size_t here, elsewhere;
    std::uint64_t group;
    bool in_group;
  };
  constexpr auto kUnknown = std::numeric_limits<std::size_t>::max();
  const compute::Memory& memory = session.backend->memory();
  // Ranks of one device: each of them has taken its part of it when it arrives here.
  if (!memory.is_host()) session.communicator->barrier();
  const auto elsewhere = memory.is_host() ? std::nullopt : memory.available();
  const auto available = comm::gather_values(
      *session.communicator,
      Available{system::available_memory().value_or(kUnknown), elsewhere.value_or(kUnknown),
                system::memory_group(), system::group_limits_memory()});
  const auto keep_least = [](std::optional<std::size_t>& least, std::size_t bytes) {
    if (bytes != kUnknown) least = std::min(least.value_or(bytes), bytes);
  };
  const std::vector<int> nodes = session.nodes.by_rank();
  std::vector<NodeCapacity> capacities;
  std::map<std::pair<int, std::uint64_t>, std::size_t> found;  // by node and control group
  for (const placement::RankPlan& plan : session.plan.ranks) {
    const Available& of_rank = available[static_cast<std::size_t>(plan.rank)];
    const std::pair key(nodes[static_cast<std::size_t>(plan.rank)], of_rank.group);
    const auto [at, fresh] = found.try_emplace(key, capacities.size());
    if (fresh) capacities.push_back({.host = plan.host, .ranks = {}, .available = {}});
    NodeCapacity& capacity = capacities[at->second];
    capacity.ranks.push_back(plan.rank);
    if (of_rank.here < capacity.available.value_or(kUnknown)) capacity.in_group = of_rank.in_group;
    keep_least(capacity.available, of_rank.here);
    keep_least(capacity.backend_available, of_rank.elsewhere);
  }
  return capacities;
}

std::optional<std::size_t> least_available(const std::vector<NodeCapacity>& capacities,
                                           std::optional<std::size_t> NodeCapacity::*of) {
  std::optional<std::size_t> least;
  for (const NodeCapacity& capacity : capacities) {
    if (const auto bytes = capacity.*of) least = std::min(least.value_or(*bytes), *bytes);
  }
  return least;
}

std::optional<std::size_t> rank_memory(std::vector<NodeCapacity> capacities, std::size_t shared) {
  for (NodeCapacity& node : capacities) {
    if (!node.available) continue;
    *node.available -= std::min(shared, *node.available);
    *node.available /= node.ranks.size();
  }
  return least_available(capacities);
}

RankMemory RankMemory::without_snapshot() const {
  RankMemory less = *this;
  if (elsewhere > 0) less.elsewhere -= snapshot;
  less.snapshot = less.snapshot_host = 0;
  return less;
}

TrainingMemory TrainingMemory::without_snapshot() const {
  TrainingMemory less = *this;
  for (RankMemory& rank : less.ranks) rank = rank.without_snapshot();
  return less;
}

TrainingMemory TrainingMemory::without_library() const {
  TrainingMemory less = *this;
  for (RankMemory& rank : less.ranks) {
    rank.elsewhere -= rank.library;
    rank.library = 0;
  }
  return less;
}

std::size_t TrainingMemory::needed(const NodeCapacity& capacity) const {
  std::size_t bytes = shared.total();
  for (const int rank : capacity.ranks) {
    const RankMemory& mine = ranks[static_cast<std::size_t>(rank)];
    bytes += mine.to_come() + mine.grown;
  }
  return bytes;
}

std::size_t TrainingMemory::in_all(const NodeCapacity& capacity) const {
  std::size_t bytes = needed(capacity);
  for (const int rank : capacity.ranks) {
    const RankMemory& mine = ranks[static_cast<std::size_t>(rank)];
    bytes += mine.process - mine.grown;
  }
  return bytes;
}

const NodeCapacity* TrainingMemory::too_small() const {
  const auto found = std::ranges::find_if(capacities, [this](const NodeCapacity& capacity) {
    return capacity.available && needed(capacity) > *capacity.available;
  });
  return found == capacities.end() ? nullptr : &*found;
}

std::size_t TrainingMemory::elsewhere(const NodeCapacity& capacity) const {
  std::size_t most = 0;
  for (const int rank : capacity.ranks) {
    most = std::max(most, ranks[static_cast<std::size_t>(rank)].elsewhere);
  }
  return most;
}

const NodeCapacity* TrainingMemory::too_small_elsewhere() const {
  const auto found = std::ranges::find_if(capacities, [this](const NodeCapacity& capacity) {
    return capacity.backend_available && elsewhere(capacity) > *capacity.backend_available;
  });
  return found == capacities.end() ? nullptr : &*found;
}

int largest_fitting(int tried, const std::function<bool(int)>& fits) {
  int good = tried / 2, bad = tried;
  while (good > 0 && !fits(good)) {
    bad = good;
    good /= 2;
  }
  while (good > 0 && bad - good > std::max(1, good / 8)) {
    const int middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

int ranks_that_fit(const TrainingMemory& memory, const NodeCapacity& capacity) {
  std::size_t each = 1, state = 0, snapshot = 0;
  for (const int rank : capacity.ranks) {
    const RankMemory& whole = memory.ranks[static_cast<std::size_t>(rank)];
    const RankMemory mine = whole.without_snapshot();
    each = std::max(each, mine.to_come() + mine.grown - (memory.state_divided ? mine.state : 0));
    state += mine.state;
    snapshot += whole.to_come() - mine.to_come();  // rank 0's, however many there are
  }
  const std::size_t fixed = memory.shared.total() + snapshot + (memory.state_divided ? state : 0);
  if (!capacity.available || fixed >= *capacity.available) return 0;
  return static_cast<int>((*capacity.available - fixed) / each);
}

void check_arenas(const Session& session, const TrainingPlan& plan,
                  const std::vector<NodeCapacity>& capacities,
                  const compute::ParameterLayout& layout) {
  if (session.backend->memory().is_host()) {
    check_arenas_here(session.nodes, capacities, layout, plan.lanes());
  } else {
    check_arenas_elsewhere(capacities, layout);
  }
}

// Rank 0 looks for what would fit, and all ranks end with its words.
void check_fits(const Session& session, const TrainingPlan& plan, const TrainingMemory& memory,
                int images) {
  const TrainingMemory sure = memory.without_library();
  const NodeCapacity* here = sure.too_small();
  const NodeCapacity* capacity = here ? here : sure.too_small_elsewhere();
  if (!capacity) return warn_of_library(session, memory);
  std::string text;
  if (session.leads()) {
    text = here ? refusal(memory, *capacity, images) : refusal_elsewhere(memory, *capacity, images);
    text += remedy(session, plan, memory, images, *capacity);
  }
  fail(ExitCode::usage, session.communicator->gather(text).front());
}

}  // namespace cputrain::training
