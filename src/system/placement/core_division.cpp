#include "system/placement/core_division.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace cputrain::placement {

namespace {

using Unit = std::vector<int>;    // the hardware threads that are given away together
using Shelf = std::vector<Unit>;  // what a NUMA node has left, in the order of its cores
using Shelves = std::vector<Shelf>;

/// A unit a core, or one a hardware thread.
Shelves shelves_of(const RankPlace& mask, bool whole_cores) {
  std::map<int, std::map<int, Unit>> cores;  // by NUMA node, by core
  for (std::size_t i = 0; i < mask.cpus.size(); ++i) {
    cores[mask.numa_of_cpu[i]][mask.core_of_cpu[i]].push_back(mask.cpus[i]);
  }
  Shelves shelves;
  for (const auto& [numa, by_core] : cores) {
    Shelf& shelf = shelves.emplace_back();
    for (const auto& [core, cpus] : by_core) {
      if (whole_cores) {
        shelf.push_back(cpus);
      } else {
        for (const int cpu : cpus) shelf.push_back({cpu});
      }
    }
  }
  return shelves;
}

/// Moves up to `count` units from the front of the shelf.
void take(Shelf& shelf, std::size_t count, std::vector<Unit>& taken) {
  const auto end = shelf.begin() + static_cast<std::ptrdiff_t>(std::min(count, shelf.size()));
  taken.insert(taken.end(), shelf.begin(), end);
  shelf.erase(shelf.begin(), end);
}

/// From the preferred shelf, else from the first with room, else from several.
std::vector<Unit> take_near(Shelves& shelves, std::size_t preferred, std::size_t count) {
  std::vector<Unit> taken;
  for (std::size_t i = 0; i < shelves.size(); ++i) {
    Shelf& shelf = shelves[(preferred + i) % shelves.size()];
    if (shelf.size() < count) continue;
    take(shelf, count, taken);
    return taken;
  }
  for (std::size_t i = 0; i < shelves.size(); ++i) {
    take(shelves[(preferred + i) % shelves.size()], count - taken.size(), taken);
  }
  return taken;
}

CorePart part_of(std::vector<Unit> units, const CoreWish& wish) {
  CorePart part;
  if (wish.communication_core) {
    part.communication_cpu = units.back().front();
    units.pop_back();
  }
  for (const Unit& unit : units) part.cpus.insert(part.cpus.end(), unit.begin(), unit.end());
  std::ranges::sort(part.cpus);
  return part;
}

}  // namespace

std::optional<std::vector<CorePart>> divide_cores(const RankPlace& mask,
                                                  const std::vector<CoreWish>& wishes) {
  const auto units_of = [](const CoreWish& wish) {
    return static_cast<std::size_t>(wish.threads + (wish.communication_core ? 1 : 0));
  };
  std::size_t wanted = 0;
  for (const CoreWish& wish : wishes) wanted += units_of(wish);
  if (wanted > mask.cpus.size()) return std::nullopt;
  const std::set<int> cores(mask.core_of_cpu.begin(), mask.core_of_cpu.end());
  Shelves shelves = shelves_of(mask, wanted <= cores.size());
  std::vector<CorePart> parts;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const std::size_t preferred = i * shelves.size() / wishes.size();
    parts.push_back(part_of(take_near(shelves, preferred, units_of(wishes[i])), wishes[i]));
  }
  return parts;
}

}  // namespace cputrain::placement
