// Which device each rank has, and what is said of all of them.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "training/session/session.h"

namespace cputrain::training {
namespace {

/// If one rank lacks a device, all ranks fail, so that none goes on alone.
void require_devices(comm::Communicator& communicator, const std::string& refusal) {
  const std::vector<std::string> all = communicator.gather(refusal);
  const auto first = std::ranges::find_if(all, [](const auto& text) { return !text.empty(); });
  if (first == all.end()) return;
  const bool alike = std::ranges::all_of(all, [&](const auto& text) { return text == *first; });
  fail(ExitCode::usage,
       alike ? *first : fmt::format("rank {}: {}", std::distance(all.begin(), first), *first));
}

/// Every rank's device, with its node.
std::vector<std::pair<int, std::string>> places_of(comm::Communicator& communicator,
                                                   const comm::NodeMap& nodes,
                                                   const std::string& identity) {
  std::vector<std::pair<int, std::string>> places;
  std::vector<std::string> all = communicator.gather(identity);
  for (const int node : nodes.by_rank()) {
    places.emplace_back(node, std::move(all[places.size()]));
  }
  return places;
}

/// "Devices: 2 x NVIDIA H100 with 2 ranks each; ...".
std::string line_of(comm::Communicator& communicator, const std::string& name,
                    const std::vector<std::pair<int, std::string>>& places) {
  const std::vector<std::string> names = communicator.gather(name);
  std::map<std::pair<int, std::string>, std::pair<std::string, std::size_t>> ranks_of;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    auto& [device, ranks] = ranks_of[places[rank]];
    device = names[rank];
    ++ranks;
  }
  std::map<std::pair<std::string, std::size_t>, std::size_t> alike;
  for (const auto& [place, device] : ranks_of) ++alike[device];
  std::vector<std::string> parts;
  for (const auto& [device, count] : alike) {
    parts.push_back(fmt::format("{} x {} with {}{}", count, device.first,
                                counted(device.second, "rank"), count > 1 ? " each" : ""));
  }
  return "Devices: " + join(parts, ", ");
}

/// The names of all ranks' devices, each once: "NVIDIA A100 and NVIDIA H100".
std::string kinds_text(comm::Communicator& communicator, const std::string& name) {
  const std::vector<std::string> all = communicator.gather(name);
  const std::set<std::string> kinds(all.begin(), all.end());
  return join(std::vector<std::string>(kinds.begin(), kinds.end()), " and ");
}

}  // namespace

DeviceChoice choose_device(comm::Communicator& communicator, const comm::NodeMap& nodes,
                           const Services& services, const std::string& backend) {
  const auto list = services.devices ? services.devices(backend) : std::nullopt;
  if (!list) return {};
  require_devices(communicator,
                  list->devices.empty() ? compute::no_device_text(backend, *list) : "");
  const compute::Device& mine =
      list->devices[static_cast<std::size_t>(nodes.local) % list->devices.size()];
  const auto places = places_of(communicator, nodes, mine.identity);
  const auto own = places[static_cast<std::size_t>(communicator.rank())];
  return {.device = mine.index,
          .ranks = static_cast<int>(std::ranges::count(places, own)),
          .emulated = mine.emulated,
          .line = line_of(communicator, mine.name, places),
          .all = static_cast<int>(std::set(places.begin(), places.end()).size()),
          .name = kinds_text(communicator, mine.name),
          .at_first = mine.at_first};
}

}  // namespace cputrain::training
