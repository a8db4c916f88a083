#include "training/session/place_ranks.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

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

}  // namespace cputrain::training
