#include "loop/safety/replicas.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::loop {
namespace {

/// Ranks whose hashes are the same.
using Group = std::vector<std::size_t>;

/// In the order of their first ranks.
std::vector<Group> groups_of(std::span<const std::uint64_t> hashes) {
  std::vector<Group> groups;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    const auto found = std::ranges::find_if(
        groups, [&](const Group& group) { return hashes[group.front()] == hashes[rank]; });
    if (found == groups.end()) {
      groups.push_back({rank});
    } else {
      found->push_back(rank);
    }
  }
  return groups;
}

std::string name_of(const Group& group, const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  for (const std::size_t rank : group) {
    const bool known = rank < hosts.size() && !hosts[rank].empty();
    names.push_back(known ? fmt::format("{} (host {})", rank, escaped(hosts[rank]))
                          : std::to_string(rank));
  }
  return (group.size() == 1 ? "rank " : "ranks ") + join(names, ", ");
}

}  // namespace

std::string odd_ranks(std::span<const std::uint64_t> hashes,
                      const std::vector<std::string>& hosts) {
  const std::vector<Group> groups = groups_of(hashes);
  if (groups.size() < 2) return {};
  const auto largest = std::ranges::max_element(groups, {}, &Group::size);
  const std::size_t most = largest->size();
  if (2 * most <= hashes.size()) {
    std::vector<std::string> names;
    for (const Group& group : groups) names.push_back(name_of(group, hosts));
    return "these differ from each other: " + join(names, "; ");
  }
  Group odd;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] != hashes[largest->front()]) odd.push_back(rank);
  }
  return fmt::format("{} differ{} from the other {}", name_of(odd, hosts),
                     odd.size() == 1 ? "s" : "", most);
}

void check_replicas(comm::Communicator& communicator, compute::Memory& memory, const Array& learnt,
                    std::uint64_t step, const std::vector<std::string>& hosts) {
  communicator.pulse().at(comm::Phase::compare, step);
  const auto hashes = comm::gather_values(communicator, compute::hash_of(memory, learnt));
  const std::string odd = odd_ranks(hashes, hosts);
  if (odd.empty()) return;
  fail(
      ExitCode::disagree,
      fmt::format("Weights are no longer the same after step {}: {} (damaged memory, or processors "
                  "that compute other bits; what they learn would be no one model); go on from "
                  "a checkpoint, without such a host",
                  step, odd));
}

}  // namespace cputrain::loop
