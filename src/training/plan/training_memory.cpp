#include "training/plan/training_memory.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "system/limits/available_memory.h"

namespace cputrain::training {

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

std::optional<std::size_t> least_available(const std::vector<NodeCapacity>& capacities) {
  std::optional<std::size_t> least;
  for (const NodeCapacity& capacity : capacities) {
    if (capacity.available)
      least = std::min(least.value_or(*capacity.available), *capacity.available);
  }
  return least;
}

std::optional<std::size_t> rank_memory(const std::vector<NodeCapacity>& capacities,
                                       std::size_t shared) {
  std::optional<std::size_t> least;
  for (const NodeCapacity& capacity : capacities) {
    if (!capacity.available) continue;
    const std::size_t each =
        (*capacity.available - std::min(shared, *capacity.available)) / capacity.ranks.size();
    least = std::min(least.value_or(each), each);
  }
  return least;
}

RankMemory RankMemory::without_snapshot() const {
  RankMemory less = *this;
  if (elsewhere > 0) less.elsewhere -= snapshot;
  less.snapshot = less.snapshot_host = 0;
  return less;
}

RankMemory RankMemory::without_library() const {
  RankMemory less = *this;
  less.elsewhere -= library;
  less.library = 0;
  return less;
}

TrainingMemory TrainingMemory::without_snapshot() const {
  TrainingMemory less = *this;
  for (RankMemory& rank : less.ranks) rank = rank.without_snapshot();
  return less;
}

TrainingMemory TrainingMemory::without_library() const {
  TrainingMemory less = *this;
  for (RankMemory& rank : less.ranks) rank = rank.without_library();
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

}  // namespace cputrain::training
