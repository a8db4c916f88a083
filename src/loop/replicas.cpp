#include "loop/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

/// Calls f(array) for every parameter that is averaged, in one order on every rank.
template <class F>
void for_averaged(const WeightsArena& weights, const F& f) {
  for (const compute::Parameter& parameter : weights.layout.parameters) {
    if (parameter.averaged) f(weights.values.slice(parameter.range.begin, parameter.range.end));
  }
}

/// Others change the weights of a node once they have met this rank behind this.
void set_aside(Parts& parts) {
  if (!parts.leads()) return;
  const Array weights = parts.exchange.arenas().weights;
  auto copy = std::make_unique<compute::OwnedArray>(parts.memory(), weights.size, weights.dtype);
  parts.memory().copy(weights.data, copy->array().data, copy->bytes());
  const std::lock_guard lock(parts.weights_mutex);
  parts.aside = std::move(copy);
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

void check_replicas(const RankProgram& parts, std::uint64_t step,
                    const std::vector<std::string>& hosts) {
  parts.communicator.pulse().at(comm::Phase::compare, step);
  const compute::Arenas arenas = parts.exchange.arenas();
  const Array learnt = arenas.weights.slice(0, arenas.gradients.size);
  const auto hashes =
      comm::gather_values(parts.communicator, compute::hash_of(parts.memory(), learnt));
  const std::string odd = odd_ranks(hashes, hosts);
  if (odd.empty()) return;
  fail(ExitCode::disagree,
       "Weights are no longer the same after step {}: {} (damaged memory, or processors that "
       "compute other bits; what they learn would be no one model); go on from a checkpoint, "
       "without such a host",
       step, odd);
}

bool all_numbers(compute::Memory& memory, const Array& array, comm::Communicator& communicator) {
  double bad = 0;
  compute::read_in_pieces(memory, array, [&](const Array& piece) {
    const bool numbers = piece.dtype == DType::f32
                             ? compute::all_numbers(std::span<const float>(piece.as<float>()))
                             : compute::all_numbers(std::span<const double>(piece.as<double>()));
    if (!numbers) bad = 1;
  });
  communicator.sum(Array::of<double>({&bad, 1}));
  return bad == 0;
}

std::string lost_input(data::BatchSource& batches, comm::Communicator& communicator) {
  if (!batches.may_fail()) return {};
  const bool complete = batches.complete();  // before: no damage shows after it
  const std::string mine = batches.failure();
  std::array<double, 2> ranks{mine.empty() ? 0.0 : 1.0, complete ? 0.0 : 1.0};
  communicator.sum(Array::of<double>(ranks));
  const auto [failed, filling] = ranks;
  if (failed == 0) {
    if (filling == 0) batches.settle();
    return {};
  }
  for (std::string& text : communicator.gather(mine)) {
    if (!text.empty()) return std::move(text);
  }
  return {};
}

bool average_statistics(const WeightsArena& weights, double own_images,
                        comm::Communicator& communicator, std::mutex& weights_mutex) {
  std::vector<double> sums;
  for_averaged(weights, [&](const Array& array) {
    for (const double value : compute::read_numbers(weights.memory, array)) {
      sums.push_back(value * own_images);
    }
  });
  if (sums.empty()) return false;
  sums.push_back(own_images);
  communicator.sum(Array::of<double>(sums));
  const double images = sums.back();
  if (images == 0) return false;
  for (double& sum : sums) sum /= images;
  const std::lock_guard lock(weights_mutex);
  std::size_t next = 0;
  for_averaged(weights, [&](const Array& array) {
    compute::write_numbers(weights.memory, std::span(sums).subspan(next, array.size), array);
    next += array.size;
  });
  return true;
}

void with_averages(Parts& parts, const std::function<void()>& work) {
  comm::attempt_together(
      parts.communicator, [&] { set_aside(parts); }, [] {});
  parts.optimizer.swap_averages(parts.exchange);
  work();
  parts.optimizer.swap_averages(parts.exchange);
  parts.communicator.barrier();  // all weights are in their place
  const std::lock_guard lock(parts.weights_mutex);
  parts.aside.reset();
}

}  // namespace cputrain::loop
