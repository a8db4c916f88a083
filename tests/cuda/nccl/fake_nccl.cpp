#include "nccl/fake_nccl.h"

#include <chrono>
#include <climits>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "emulated/fault.h"
#include "emulated/memory.h"
#include "emulated/streams.h"

namespace cputrain::cuda {
int current_device();  // of the emulated device
}

namespace cputrain::nccl {

/// What the handle of a rank stands for.
struct Communicator {
  int rank = 0, polls = 0;
  bool aborted = false, stuck = false;
  int calls = 0;  ///< that asked for a sum
  int sums = 0;   ///< that were launched, by calls and by graphs
  /// A sum that was asked for and is in no stream yet. A thread of its own puts it there, as
  /// NCCL's does since 2.23: here with the next question whether it is in progress.
  std::function<void()> to_launch{};
  /// Held by each captured sum, as NCCL counts them.
  std::shared_ptr<int> captured = std::make_shared<int>(0);
};

namespace fake {
namespace {

using emulated::WorkPointer;

constexpr Result kInvalidArgument{4}, kRemoteError{6};

/// One rank's part of a sum.
struct Part {
  const void* src;
  void* dst;
  std::size_t count;
  DataType type;
  int call;  ///< that asked for it
  bool captured;
};

/// A sum that not all ranks have come to.
struct Sum {
  std::vector<Part> parts;
  int missing = 0;        ///< who have not come
  bool given_up = false;  ///< so nobody needs to
  WorkPointer work;
};

struct Team {
  int ranks = 0;
  int left = 0;
  std::set<int> joined, devices;
  bool shares_device = false;
  std::vector<std::shared_ptr<Sum>> sums;  ///< by number
};

struct State {
  std::mutex mutex;
  Settings settings;
  Seen seen;
  Team team;
  int broken_from = INT_MAX, refused_from = INT_MAX;
  bool nobody_joins = false;
};
State& state() {
  static State one;
  return one;
}

std::size_t bytes_of(const Part& part) {
  return part.count * (part.type == DataType::float32 ? sizeof(float) : sizeof(std::uint16_t));
}

float number_of(std::uint16_t bf16) {
  const std::uint32_t bits = std::uint32_t{bf16} << 16;
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}
/// Rounded to nearest, ties to even; of numbers that are finite.
std::uint16_t bf16_of(float number) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// In the order of ranks, so the same bits each time; each partial sum is rounded as it travels.
template <class Stored, class Widen, class Narrow>
void add_up(const std::vector<Part>& parts, const Widen& widen, const Narrow& narrow) {
  std::vector<Stored> total(parts.front().count), next(total.size());
  const auto bytes = total.size() * sizeof(Stored);
  emulated::copy_now(total.data(), parts.front().src, bytes);
  for (std::size_t p = 1; p < parts.size(); ++p) {
    emulated::copy_now(next.data(), parts[p].src, bytes);
    for (std::size_t i = 0; i < total.size(); ++i) {
      total[i] = narrow(widen(total[i]) + widen(next[i]));
    }
  }
  for (const Part& part : parts) emulated::copy_now(part.dst, total.data(), bytes);
}

void run(const Sum& sum) {
  for (const Part& part : sum.parts) {
    if (part.count != sum.parts.front().count || part.type != sum.parts.front().type) {
      throw emulated::Fault("ranks sum arrays of different lengths or types");
    }
    if (part.captured != sum.parts.front().captured || part.call != sum.parts.front().call) {
      throw emulated::Fault(
          "a sum that ranks do not have from one capture, as NCCL asks for: either all of them "
          "launch graphs of the same captured call, or all make the call");
    }
  }
  if (sum.parts.front().count == 0) return;
  const auto same = [](float number) { return number; };
  if (sum.parts.front().type == DataType::float32) return add_up<float>(sum.parts, same, same);
  add_up<std::uint16_t>(sum.parts, number_of, bf16_of);
}

/// The others have not come and never will: what is there is undefined.
void spoil(const Sum& sum) {
  for (const Part& part : sum.parts) {
    if (!part.dst || part.count == 0) continue;
    const std::vector<std::byte> nonsense(bytes_of(part), std::byte{0xa5});
    emulated::copy_now(part.dst, nonsense.data(), nonsense.size());
  }
}

/// The device's mutex is held. Ranks name the same sums in the same order.
WorkPointer launch(Communicator& communicator, const Part& part,
                   const std::vector<WorkPointer>& after) {
  emulated::Devices& devices = emulated::devices();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto number = static_cast<std::size_t>(communicator.sums++);
  ++s.seen.sums;
  if (communicator.aborted) {  // of a graph: it does nothing that makes sense, and ends
    return devices.queue.put([] {}, after);
  }
  if (number >= s.team.sums.size()) s.team.sums.resize(number + 1);
  std::shared_ptr<Sum>& sum = s.team.sums[number];
  if (!sum) {
    sum = std::make_shared<Sum>();
    sum->parts.resize(static_cast<std::size_t>(s.team.ranks));
    // One more never comes to what is broken: it ends when it is given up.
    sum->missing = s.team.ranks + (static_cast<int>(number) >= s.broken_from ? 1 : 0);
    sum->work =
        devices.queue.put_meeting([sum] { sum->given_up ? spoil(*sum) : run(*sum); }, sum->missing);
  }
  if (sum->missing == 0) return sum->work;  // it was given up
  sum->parts[static_cast<std::size_t>(communicator.rank)] = part;
  --sum->missing;
  devices.queue.arrive(sum->work, after);
  return sum->work;
}

Result get_version(int* version) {
  *version = state().settings.version;
  return Result::success;
}

const char* get_last_error(Communicator*) { return ""; }

const char* get_error_string(Result result) {
  return result == kRemoteError ? "remote process exited or there was a network error"
                                : "invalid usage";
}

Result get_unique_id(UniqueId* id) {
  std::memset(id, 7, sizeof *id);
  return Result::success;
}

Result join(Communicator** communicator, int ranks, UniqueId id, int rank) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (id.bytes[127] != 7 || rank < 0 || rank >= ranks) return kInvalidArgument;
  s.team.ranks = ranks;
  *communicator = new Communicator{.rank = rank};
  if (s.nobody_joins) return Result::in_progress;
  s.team.joined.insert(rank);
  ++s.seen.joined;
  if (!s.team.devices.insert(cuda::current_device()).second) s.team.shares_device = true;
  return Result::in_progress;
}

Result init_rank_config(Communicator** communicator, int ranks, UniqueId id, int rank,
                        Config* config) {
  const bool right = config->size == sizeof(Config) && config->magic == 0xcafebeef &&
                     config->version == 21400 && config->blocking == 0;
  return right ? join(communicator, ranks, id, rank) : kInvalidArgument;
}

/// Every other question is answered with "in progress".
Result get_async_error(Communicator* communicator, Result* result) {
  if (const auto launch = std::exchange(communicator->to_launch, nullptr)) {
    std::async(std::launch::async, launch).get();
    *result = Result::in_progress;
    return Result::success;
  }
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (static_cast<int>(s.team.joined.size()) < s.team.ranks) {
    *result = Result::in_progress;
  } else if (s.team.shares_device && !s.settings.share_devices) {
    *result = Result::invalid_usage;
  } else if (communicator->sums > s.broken_from) {
    *result = kRemoteError;
  } else if (communicator->stuck) {
    *result = Result::in_progress;
  } else {
    *result = ++communicator->polls % 2 == 0 ? Result::success : Result::in_progress;
  }
  return Result::success;
}

Result all_reduce(const void* src, void* dst, std::size_t count, DataType type, Operation,
                  Communicator* communicator, Stream* stream) {
  if (communicator->aborted) return kInvalidArgument;
  auto* const queue = reinterpret_cast<cuda::Stream>(stream);
  const int call = communicator->calls++;
  {
    const std::lock_guard of_devices(emulated::devices().mutex);
    State& s = state();
    const std::lock_guard of_state(s.mutex);
    if (call >= s.refused_from) return kRemoteError;
    if (queue->capture) ++s.seen.captured;
    if (communicator->rank == 0) s.seen.counts.push_back(count);
  }
  const Part part{src, dst, count, type, call, queue->capture != nullptr};
  auto held = queue->capture ? communicator->captured : nullptr;
  communicator->to_launch = [communicator, queue, part, held] {
    emulated::Devices& devices = emulated::devices();
    const std::lock_guard lock(devices.mutex);
    devices.put_together(queue, [communicator, part, held](const std::vector<WorkPointer>& after) {
      return launch(*communicator, part, after);
    });
  };
  return Result::in_progress;
}

/// Like NCCL, it ends when no graph holds a sum.
Result finalize(Communicator* communicator) {
  communicator->stuck = communicator->captured.use_count() > 1;
  return Result::in_progress;
}

Result destroy(Communicator* communicator) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.seen.destroyed;
  if (++s.team.left == s.team.ranks) s.team = {};  // another may come
  delete communicator;
  return Result::success;
}

/// What this rank's stream waits for goes on.
void release_sums(Communicator& communicator) {
  emulated::Devices& devices = emulated::devices();
  const std::lock_guard lock(devices.mutex);
  State& s = state();
  const std::lock_guard of_state(s.mutex);
  ++s.seen.aborted;
  communicator.aborted = true;
  for (const auto& sum : s.team.sums) {
    const bool waits = sum && sum->missing > 0 &&
                       sum->parts[static_cast<std::size_t>(communicator.rank)].dst != nullptr;
    if (!waits) continue;
    sum->given_up = true;
    for (; sum->missing > 0; --sum->missing) devices.queue.arrive(sum->work, {});
  }
  devices.changed.notify_all();
}

/// Like NCCL, it returns when no graph holds a sum.
Result abort(Communicator* communicator) {
  release_sums(*communicator);
  while (communicator->captured.use_count() > 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Result::success;
}

const Calls& calls() {
  static const Calls table{.get_version = get_version,
                           .get_error_string = get_error_string,
                           .get_unique_id = get_unique_id,
                           .get_last_error = get_last_error,
                           .comm_init_rank_config = init_rank_config,
                           .comm_get_async_error = get_async_error,
                           .comm_finalize = finalize,
                           .comm_destroy = destroy,
                           .comm_abort = abort,
                           .all_reduce = all_reduce};
  return table;
}

}  // namespace

void restart(const Settings& settings) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.settings = settings;
  s.seen = {};
  s.team = {};
  s.broken_from = s.refused_from = INT_MAX;
  s.nobody_joins = false;
}

const Library& library() {
  static Library one;
  one = checked(calls(), "fake");
  return one;
}

Seen seen() {
  const std::lock_guard lock(state().mutex);
  return state().seen;
}

void break_at(int sum) {
  const std::lock_guard lock(state().mutex);
  state().broken_from = sum;
}

void refuse_at(int call) {
  const std::lock_guard lock(state().mutex);
  state().refused_from = call;
}

void let_nobody_join() {
  const std::lock_guard lock(state().mutex);
  state().nobody_joins = true;
}

}  // namespace fake
}  // namespace cputrain::nccl
