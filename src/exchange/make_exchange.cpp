#include "exchange/exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "comm/allreduce_choice.h"
#include "comm/candidates.h"
#include "core/error.h"
#include "core/text.h"
#include "exchange/compression/compression.h"
#include "exchange/device_path.h"
#include "system/pages.h"

namespace cputrain::exchange {
namespace {

using Scheme = comm::AllreduceChoice::Scheme;

constexpr int kRepeat = 3;

using Measured = std::pair<std::string, double>;  ///< name and seconds

std::string describe(std::size_t bytes, const std::vector<Measured>& times) {
  std::string text;
  for (const auto& [name, seconds] : times) {
    text += fmt::format("{}{} {:.1f} ms", text.empty() ? "" : ", ", name, 1e3 * seconds);
  }
  return fmt::format("Allreduce of {:.1f} MB: {}; takes ", static_cast<double>(bytes) / 1e6, text);
}

/// Every algorithm on an array of so many bytes.
std::vector<Measured> time_algorithms(comm::Communicator& communicator,
                                      const comm::OpenChannel& open, std::size_t bytes) {
  const system::Pages memory(bytes);
  const Array numbers{memory.bytes().data(), bytes / sizeof(float), DType::f32};
  std::vector<Measured> times;
  for (const std::string& name : comm::allreduce_algorithms()) {
    const auto candidate = comm::between_ranks(numbers, open({{name}}));
    times.push_back({name, comm::median_time(communicator, candidate, kRepeat)});
  }
  return times;
}

/// On one node: shared memory and MPI's own messages, on a sample of the gradients that is small
/// enough for many ranks. Nothing where there is no room for it.
std::vector<Measured> time_node(const ExchangeParts& parts, const comm::NodeMap& map,
                                std::size_t bytes) {
  const std::size_t elements = bytes / sizeof(float);
  const comm::SharedArrays shared(parts.communicator, elements);
  if (!shared.failure.empty()) return {};
  const auto shm = comm::within_node(parts.communicator, map, shared, parts.sum,
                                     comm::open_lane(parts.communicator, map, {{"tree"}}));
  const auto mpi = comm::between_ranks(shm.input, comm::open_world(parts.communicator, {{"mpi"}}));
  return {{"shm", comm::median_time(parts.communicator, shm, kRepeat)},
          {"mpi", comm::median_time(parts.communicator, mpi, kRepeat)}};
}

std::unique_ptr<GradientSum> make_sum(const ExchangeParts& parts, comm::Channel channel) {
  return make_gradient_sum(parts.compression, parts.layout, std::move(channel));
}

/// What is left of so many bytes of gradients where they are compressed.
std::size_t travelling_bytes(const ExchangeParts& parts, const comm::OpenChannel& open,
                             std::size_t bytes) {
  const auto sum = make_sum(parts, open({{"tree"}}));
  return static_cast<std::size_t>(sum->volume({0, bytes / size_of(parts.layout.dtype)}));
}

/// In elements.
std::size_t largest_bucket(const ExchangeParts& parts) {
  return longest_bucket(bucket_ends(parts.layout, parts.bucket_bytes));
}

/// Fills in the algorithm where none was named: the best of all, at the size that will travel.
void choose_algorithm(const ExchangeParts& parts, const comm::OpenChannel& open, int slices,
                      MadeExchange& made) {
  if (!made.choice.ranges.empty()) return;
  std::size_t elements = parts.layout.gradient_size;
  if (parts.overlap) elements = largest_bucket(parts);
  std::size_t bytes = elements * size_of(parts.layout.dtype) / static_cast<std::size_t>(slices);
  bytes = travelling_bytes(parts, open, bytes);
  const auto times = time_algorithms(parts.communicator, open, bytes);
  const auto best = std::ranges::min_element(times, {}, &Measured::second);
  made.choice.ranges = {{best->first}};
  made.lines.push_back(describe(bytes, times) + best->first);
}

std::unique_ptr<GradientSum> make_sum_between_ranks(const ExchangeParts& parts,
                                                    MadeExchange& made) {
  const comm::OpenChannel open = [&](const std::vector<comm::SizeRange>& ranges) {
    return comm::open_world(parts.communicator, ranges);
  };
  choose_algorithm(parts, open, 1, made);
  return make_sum(parts, open(made.choice.ranges));
}

void make_replicas(const ExchangeParts& parts, MadeExchange& made) {
  made.choice.scheme = Scheme::replicas;
  made.exchange = make_replica_exchange(parts, make_sum_between_ranks(parts, made));
}

/// What keeps devices from summing by themselves though they could; "": nothing.
std::string needs_host(const ExchangeParts& parts, const comm::AllreduceChoice& choice) {
  const Compression::Method method = parts.compression.method;
  if (method != Compression::Method::none && method != Compression::Method::bf16) {
    return fmt::format("--compress {} is computed on the host", to_text(parts.compression));
  }
  if (choice.ranges.empty()) return "";
  return fmt::format("--allreduce {} is an algorithm of the host", comm::to_text(choice));
}

DevicePathChoice choose_path(const ExchangeParts& parts, const comm::NodeMap& map,
                             const comm::AllreduceChoice& choice) {
  const auto facts = parts.device_sums ? parts.device_sums->facts() : compute::DeviceSumsFacts{};
  return choose_device_path(gather_facts(parts.communicator, facts, map.node), choice.devices,
                            needs_host(parts, choice), parts.compression != Compression{});
}

/// By MPI where they lie, in the working thread, which has this rank's device: MPI takes the
/// calling thread's.
void make_direct(const ExchangeParts& parts, MadeExchange& made) {
  ExchangeParts own = parts;
  own.overlap = false;
  made.choice.ranges = {{"mpi"}};
  made.exchange = make_replica_exchange(own, make_sum_between_ranks(own, made));
}

/// Replicas whose arrays lie on devices.
void make_device_replicas(const ExchangeParts& parts, const comm::NodeMap& map,
                          MadeExchange& made) {
  const DevicePathChoice way = choose_path(parts, map, made.choice);
  made.choice.scheme = Scheme::replicas;
  made.lines.push_back(to_text(way));
  if (way.path == DevicePath::nccl) {
    made.choice.devices = DevicePath::nccl;
    const bool narrow = parts.compression.method == Compression::Method::bf16;
    made.exchange = make_device_exchange(parts, *parts.device_sums, narrow);
    return;
  }
  if (parts.communicator.size() == 1 && made.choice.ranges.empty()) {
    made.choice.ranges = {{"tree"}};  // nothing to measure
  }
  // One rank's gradient is the sum: nothing need go to the host and back.
  if (way.path == DevicePath::alone && parts.compression == Compression{}) {
    made.exchange = make_replica_exchange(parts, make_sum(parts, {}));
    return;
  }
  if (way.path == DevicePath::direct) return make_direct(parts, made);
  auto sum = make_sum_between_ranks(parts, made);
  made.exchange = make_replica_exchange(parts, make_staged_sum(parts.memory, largest_bucket(parts),
                                                               parts.layout.dtype, std::move(sum)));
}

void make_slices(const ExchangeParts& parts, const comm::NodeMap& map, MadeExchange& made) {
  if (made.choice.one_node && map.nodes() > 1) {
    fail(ExitCode::usage,
         "--allreduce shm: the ranks are on {} nodes (shared memory reaches one); use "
         "hierarchical, or auto",
         map.nodes());
  }
  const comm::OpenChannel open = [&](const std::vector<comm::SizeRange>& ranges) {
    return comm::open_lane(parts.communicator, map, ranges);
  };
  if (map.nodes() == 1 && made.choice.scheme == Scheme::automatic) made.choice.one_node = true;
  made.choice.scheme = Scheme::slices;
  if (map.nodes() == 1 && made.choice.ranges.empty()) made.choice.ranges = {{"tree"}};
  choose_algorithm(parts, open, map.lanes(), made);
  made.exchange = make_node_exchange(parts, map, make_sum(parts, open(made.choice.ranges)));
}

bool is_sharded(const ExchangeParts& parts) {
  return !compute::sharded_parameters(parts.layout).empty();
}

/// Whether one node's ranks had better exchange messages. They have a lead to make up: slices keep
/// one copy of the weights, and each rank updates a part of them.
bool prefers_messages(const ExchangeParts& parts, const comm::NodeMap& map, MadeExchange& made) {
  constexpr std::size_t kSample = std::size_t{32} << 20;  // in all ranks together
  constexpr double kLead = 2;
  const auto ranks = static_cast<std::size_t>(parts.communicator.size());
  if (ranks == 1) return false;
  const std::size_t bytes =
      std::min(parts.layout.gradient_size * size_of(parts.layout.dtype), kSample / ranks);
  const auto times = time_node(parts, map, bytes);
  if (times.empty()) return false;
  const bool messages = times[0].second > kLead * times[1].second;
  std::string taken = messages ? "messages" : "shm";
  if (messages && is_sharded(parts)) taken = "shm, where the sharded layer lies";
  made.lines.push_back(describe(bytes, times) + taken);
  return messages && !is_sharded(parts);
}

/// All exchanges but replicas form their sums in memory that the ranks of a node share, or send
/// straight from the arenas.
void check_memory(const ExchangeParts& parts, const comm::AllreduceChoice& choice) {
  if (parts.memory.is_host()) {
    if (!choice.devices) return;
    fail(ExitCode::usage,
         "--allreduce {}: this backend computes on the CPUs, whose sums need no such way; use "
         "auto, or --backend cuda",
         comm::to_text(choice));
  }
  constexpr const char* kWhy =
      "the backend's arrays do not lie in the host's memory, where it forms its sums";
  if (parts.lanes > 0) {
    fail(ExitCode::usage,
         "--reproducible: {} (in the order of images); leave it out, or use another --backend",
         kWhy);
  }
  if (choice.scheme != Scheme::slices && choice.scheme != Scheme::server) return;
  fail(ExitCode::usage, "--allreduce {}: {}; use auto, or an algorithm between ranks: {}",
       comm::to_text(choice), kWhy, join(comm::allreduce_algorithms(), ", "));
}

void make_automatic(const ExchangeParts& parts, const comm::NodeMap& map, MadeExchange& made) {
  const bool compresses = parts.compression != Compression{};
  if (compresses && map.nodes() == 1) {
    made.warnings.push_back(fmt::format(
        "--compress {} on one node costs more than it saves (without it the ranks would "
        "sum over shared memory and send nothing); it is meant for slow networks",
        to_text(parts.compression)));
    return make_replicas(parts, made);
  }
  if (map.nodes() == 1 && prefers_messages(parts, map, made)) return make_replicas(parts, made);
  try {
    make_slices(parts, map, made);
  } catch (const Error& error) {
    if (error.code() != ExitCode::internal || is_sharded(parts)) throw;
    made.choice = {};
    made.warnings.push_back(
        fmt::format("no shared memory for gradients ({}); every rank "
                    "keeps a replica of everything instead, which is slower",
                    error.what()));
    make_replicas(parts, made);
  }
}

}  // namespace

MadeExchange make_exchange(const ExchangeParts& parts, const comm::AllreduceChoice& choice) {
  assert(!is_sharded(parts) || (parts.memory.is_host() && (choice.scheme == Scheme::automatic ||
                                                           choice.scheme == Scheme::slices)));
  MadeExchange made;
  made.choice = choice;
  check_compression(parts.compression, choice);
  check_memory(parts, choice);
  const comm::NodeMap map = comm::read_node_map(parts.communicator);
  if (!parts.memory.is_host()) {
    make_device_replicas(parts, map, made);
    return made;
  }
  if (parts.lanes > 0) {
    made.exchange = make_ordered_exchange(parts, map);
    return made;
  }
  switch (choice.scheme) {
    case Scheme::automatic:
      make_automatic(parts, map, made);
      break;
    case Scheme::replicas:
      make_replicas(parts, made);
      break;
    case Scheme::slices:
      make_slices(parts, map, made);
      break;
    case Scheme::server:
      made.exchange = make_server_exchange(parts);
      break;
  }
  return made;
}

}  // namespace cputrain::exchange
