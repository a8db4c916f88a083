#include "training/memory/peak_memory.h"

#include <algorithm>

#include "system/usage/held_memory.h"

namespace cputrain::training {
namespace {

struct OfRank {
  system::HeldMemory held;
  std::size_t device = 0;
  bool known = false, has_device = false;
};

/// What this rank has taken of memory that is not the host's.
void add_device(const Session& session, const NodeCapacity& capacity, OfRank& mine) {
  const auto left = session.backend->memory().available();
  if (session.backend->memory().is_host() || !left || !capacity.backend_available) return;
  mine.has_device = true;
  mine.device = *capacity.backend_available - std::min(*capacity.backend_available, *left);
}

}  // namespace

std::optional<loop::PeakMemory> measure_peaks(const Training& training) {
  const Session& session = training.session();
  const std::vector<NodeCapacity>& capacities = training.compiled().memory.capacities;
  OfRank mine;
  if (const auto held = system::held_memory()) {
    mine.held = *held;
    mine.known = true;
  }
  for (const NodeCapacity& capacity : capacities) {
    if (std::ranges::find(capacity.ranks, session.communicator->rank()) != capacity.ranks.end()) {
      add_device(session, capacity, mine);
    }
  }
  const std::vector<OfRank> all = comm::gather_values(*session.communicator, mine);
  if (!std::ranges::all_of(all, &OfRank::known)) return std::nullopt;
  loop::PeakMemory peaks;
  for (const NodeCapacity& capacity : capacities) {
    std::uint64_t node = 0;
    for (const int rank : capacity.ranks) {
      const OfRank& one = all[static_cast<std::size_t>(rank)];
      node += one.held.part;
      peaks.rank_bytes = std::max<std::uint64_t>(peaks.rank_bytes, one.held.peak);
      if (!one.has_device) continue;
      peaks.device_bytes = std::max<std::uint64_t>(peaks.device_bytes.value_or(0), one.device);
    }
    if (node > peaks.node_bytes) {
      peaks.node_bytes = node;
      peaks.host = capacity.host;
    }
  }
  return peaks;
}

}  // namespace cputrain::training
