#include "training/session/place_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::training {
namespace {

constexpr int kMostThreads = 4096;  // as --threads

/// --threads, else OMP_NUM_THREADS ("4" or "4,2": the outer level counts).
std::optional<int> asked_threads(const TrainingFlags& flags) {
  if (flags.threads) return flags.threads;
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int threads = text ? std::atoi(text) : 0;
  return threads >= 1 ? std::optional(std::min(threads, kMostThreads)) : std::nullopt;
}

/// The variables by which people place OpenMP's threads themselves.
bool user_binds() {
  constexpr std::array kVariables{"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                  "KMP_AFFINITY"};
  return std::ranges::any_of(kVariables, [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  });
}

/// What rank 0 was asked counts for all: variables need not be set alike on every host.
placement::PlacementRequest request_of_all(comm::Communicator& communicator,
                                           const TrainingFlags& flags) {
  std::array<int, 3> asked{asked_threads(flags).value_or(0), flags.io_threads.value_or(0),
                           flags.bind ? static_cast<int>(*flags.bind) : -1};
  communicator.broadcast(std::as_writable_bytes(std::span(asked)), 0);
  const auto [threads, io_threads, binds] = asked;
  placement::PlacementRequest request;
  if (threads > 0) request.threads = threads;
  if (io_threads > 0) request.io_threads = io_threads;
  if (binds >= 0) request.bind = binds == 1;
  return request;
}

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

placement::JobPlacement place_ranks(comm::Communicator& communicator, const comm::NodeMap& nodes,
                                    const placement::Machine& machine, const TrainingFlags& flags,
                                    const Services& services) {
  const int rank = communicator.rank();
  const auto binder = placement::read_binder(machine.openmp_binds, std::getenv);
  const auto places = communicator.gather(
      placement::to_text(placement::place_of(rank, machine, user_binds(), binder)));
  placement::JobPlacement job =
      placement::plan_job(places, nodes.by_rank(), request_of_all(communicator, flags));
  const placement::RankPlan& mine = job.ranks[static_cast<std::size_t>(rank)];
  const bool refused = mine.bind && !services.bind_this_thread(mine.cpus);
  const auto answers = communicator.gather(refused ? "refused" : "");
  const auto count = std::ranges::count(answers, "refused");
  if (count > 0) {
    job.warnings.push_back(std::to_string(count) +
                           " ranks could not be bound to their cores (the system refuses, and "
                           "threads may move between cores); try --no-bind, or let mpirun bind");
  }
  return job;
}

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
