#include "emulated/emulator.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "emulated/fault.h"
#include "emulated/run_state.h"
#include "emulated/settings.h"
#include "emulated/shadow.h"
#include "emulated/shared_memory.h"
#include "emulated/signals.h"
#include "emulated/source_line.h"

namespace cputrain::emulated {

Now now;
constinit Stacks stacks;
Run run;

namespace {

std::minstd_rand random_;

/// A warp's threads that wait for others of one mask.
struct Meeting {
  std::uint32_t mask = 0, arrived = 0;
  const char* what = nullptr;
  Place place;
};
struct Warp {
  std::array<void*, 32> slots;
  std::vector<Meeting> meetings;
};
std::array<Warp, kMostThreads / 32> warps;

/// Threads that could go on, in a ring.
struct Ready {
  std::array<std::uint16_t, kMostThreads> ring;
  unsigned head = 0, count = 0;

  void push(unsigned thread) {
    now.threads[thread].state = State::ready;
    ring[(head + count++) % kMostThreads] = static_cast<std::uint16_t>(thread);
  }
  Thread* pop() {
    if (count == 0) return nullptr;
    if (settings().order == Order::random) {
      const unsigned pick = (head + static_cast<unsigned>(random_()) % count) % kMostThreads;
      std::swap(ring[pick], ring[head]);
    }
    const unsigned thread = ring[head];
    head = (head + 1) % kMostThreads;
    --count;
    return &now.threads[thread];
  }
};
Ready ready;

std::string thread_text(const Thread& t) {
  const auto text = [](const Dim& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  return "thread " + text(t.index) + " of block " + text(now.block_index);
}

std::string call_text(const char* what, const Place& place) {
  return std::string(what) + " at " + line_text(place.file_name(), place.line());
}

/// Names of one file are one string, but for a header that several files include.
bool same_place(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

[[noreturn]] void report_divergence() {
  const auto end = now.threads.begin() + run.threads;
  const auto first = std::find_if(now.threads.begin(), end,
                                  [](const Thread& t) { return t.state != State::done; });
  const auto odd = std::find_if(first, end, [&](const Thread& t) {
    return t.state != State::done &&
           (t.state != first->state || !same_place(t.place, first->place));
  });
  std::string text =
      "divergence: " + thread_text(*first) + " waits in " + call_text(first->what, first->place);
  if (odd != end) text += ", " + thread_text(*odd) + " in " + call_text(odd->what, odd->place);
  if (run.done) text += ", and " + std::to_string(run.done) + " threads have returned";
  kernel_fault_at(text, line_text(first->place.file_name(), first->place.line()));
}

bool all_at_one_barrier() {
  const Thread& first = now.threads[0];
  return run.done == 0 &&
         std::all_of(now.threads.begin(), now.threads.begin() + run.threads, [&](const Thread& t) {
           return t.state == State::at_barrier && same_place(t.place, first.place);
         });
}

/// All threads in order, or in reverse.
void push_all() {
  const bool reverse = settings().order == Order::reverse;
  for (unsigned i = 0; i < run.threads; ++i) ready.push(reverse ? run.threads - 1 - i : i);
}

/// Who goes on; none when all have returned.
Thread* next_thread() {
  if (Thread* next = ready.pop()) return next;
  if (run.done == run.threads) return nullptr;
  if (!all_at_one_barrier()) report_divergence();
  clock_barrier();
  push_all();
  return ready.pop();
}

[[noreturn]] void leave_to_host() {
  Context unused;
  switch_context(unused, run.host);
  __builtin_unreachable();
}

[[noreturn]] void work_on_threads();

/// Where a thread goes on, or begins on a stack of its own.
Context context_of(Thread& thread) {
  if (!thread.context) return stacks.begin(&work_on_threads, thread.stack);
  return std::exchange(thread.context, nullptr);
}

/// The thread that runs has returned; those that have not begun go on on its stack.
void work_on_threads() {
  for (;;) {
    run.launch->body(run.launch->arguments.data());
    Thread& self = *now.self;
    if (!self.copies.empty()) {
      kernel_fault("cp.async that nobody waited for: " + thread_text(self) + " has returned");
    }
    self.state = State::done;
    ++run.done;
    Thread* next = next_thread();
    if (next && !next->context) {
      next->stack = self.stack;
      now.self = next;
      continue;
    }
    stacks.give_back(self.stack);
    if (!next) leave_to_host();
    now.self = next;
    Context unused;
    switch_context(unused, context_of(*next));
  }
}

void let_others_run() {
  Thread* self = now.self;
  Thread* next = next_thread();
  if (next == self) return;
  now.self = next;
  switch_context(self->context, context_of(*next));
}

void prepare_threads() {
  const Dim& block = now.block;
  for (unsigned i = 0; i < run.threads; ++i) {
    Thread& t = now.threads[i];
    t.number = i;
    t.warp = i / 32;
    t.lane = i % 32;
    t.index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  }
}

void run_block() {
  clock_block();
  begin_shared_of_block();
  for (unsigned i = 0; i < run.threads; ++i) {
    Thread& t = now.threads[i];
    t.context = nullptr;
    t.copies.clear();
    t.group = 0;
  }
  for (Warp& w : warps) w.meetings.clear();
  ready.head = ready.count = run.done = 0;
  push_all();
  now.self = ready.pop();
  switch_context(run.host, context_of(*now.self));
}

/// The blocks in the order that the settings want.
class BlockOrder {
 public:
  explicit BlockOrder(std::size_t blocks) : blocks_(blocks) {
    if (settings().order != Order::random) return;
    first_ = random_() % blocks;
    do {
      stride_ = random_() % blocks + 1;
    } while (std::gcd(stride_, blocks) != 1);
  }
  std::size_t at(std::size_t i) const {
    return settings().order == Order::reverse ? blocks_ - 1 - i : (first_ + i * stride_) % blocks_;
  }

 private:
  std::size_t blocks_, first_ = 0, stride_ = 1;
};

void run_blocks() {
  const std::size_t blocks = now.grid.count();
  const BlockOrder order(blocks);
  for (std::size_t i = 0; i < blocks && !run.fault; ++i) {
    const std::size_t block = order.at(i);
    now.block_index = {static_cast<unsigned>(block % now.grid.x),
                       static_cast<unsigned>(block / now.grid.x % now.grid.y),
                       static_cast<unsigned>(block / now.grid.x / now.grid.y)};
    run_block();
  }
}

}  // namespace

void seed_threads(unsigned seed) { random_.seed(seed); }

void check_limits(const KernelLaunch& l) {
  const auto refuse = [&](const std::string& why) {
    fail(ExitCode::internal, "kernel " + std::string(l.name) + " cannot start: " + why);
  };
  const std::size_t threads = l.block.count();
  if (threads == 0 || threads > kMostThreads || l.block.z > 64) {
    refuse("blocks of " + std::to_string(threads) + " threads");
  }
  if (l.grid.count() == 0 || l.grid.x > 0x7fffffffu || l.grid.y > 0xffff || l.grid.z > 0xffff) {
    refuse("a grid of " + std::to_string(l.grid.x) + " x " + std::to_string(l.grid.y) + " x " +
           std::to_string(l.grid.z) + " blocks");
  }
  if (l.shared_bytes > limits().shared_memory) {
    refuse(std::to_string(l.shared_bytes) + " bytes of shared memory, " + limits().name + " has " +
           std::to_string(limits().shared_memory));
  }
  constexpr std::size_t kMostArguments = 4096;
  if (l.arguments.size() > kMostArguments) {
    refuse(std::to_string(l.arguments.size()) + " bytes of arguments");
  }
}

void run_kernel(const KernelLaunch& launch) {
  const SignalsOfKernels signals;
  stacks.make();
  run.launch = &launch;
  run.threads = static_cast<unsigned>(launch.block.count());
  run.fault.reset();
  now.grid = launch.grid;
  now.block = launch.block;
  prepare_threads();
  clock_launch();
  begin_shared_of_launch(launch.shared_bytes);
  run_blocks();
  now.self = nullptr;
  run.launch = nullptr;
  if (!run.fault) return;
  stacks.reset();
  const FaultOfKernel fault = *std::exchange(run.fault, {});
  const std::string line = fault.line.empty() ? source_line(fault.pc) : fault.line;
  throw Fault("kernel " + std::string(launch.name) + ": " + fault.text + ", at " + line);
}

void kernel_fault_at(const std::string& text, const std::string& line) {
  run.fault = {text, line, nullptr};
  leave_to_host();
}

void kernel_fault(const std::string& text, const void* pc) {
  const Thread& self = *now.self;
  const bool by_place = !pc && self.place.line() != 0;
  const std::string line =
      by_place ? line_text(self.place.file_name(), self.place.line()) : std::string();
  run.fault = {text, line, pc};
  leave_to_host();
}

void block_barrier(Place at) {
  Thread& self = *now.self;
  self.state = State::at_barrier;
  self.what = "__syncthreads";
  self.place = at;
  let_others_run();
}

namespace {

/// The meeting of that mask, or a new one.
Meeting& meeting_of(Warp& warp, std::uint32_t mask, const char* what, const Place& at) {
  Meeting* idle = nullptr;
  for (Meeting& m : warp.meetings) {
    if (m.arrived == 0) {
      idle = &m;
    } else if (m.mask == mask) {
      return m;
    } else if (m.mask & mask) {
      kernel_fault("divergence within a warp: masks overlap but differ, " + thread_text(*now.self) +
                   " in " + call_text(what, at) + ", others in " + call_text(m.what, m.place));
    }
  }
  if (!idle) idle = &warp.meetings.emplace_back();
  *idle = {mask, 0, what, at};
  return *idle;
}

void release_others(unsigned warp, std::uint32_t lanes) {
  const bool reverse = settings().order == Order::reverse;
  while (lanes) {
    const unsigned lane = reverse ? 31 - static_cast<unsigned>(std::countl_zero(lanes))
                                  : static_cast<unsigned>(std::countr_zero(lanes));
    lanes &= ~(1u << lane);
    ready.push(warp * 32 + lane);
  }
}

}  // namespace

void collective(std::uint32_t mask, const char* what, Place at, void* slot,
                void (*all)(void** slots, std::uint32_t mask)) {
  Thread& self = *now.self;
  Warp& warp = warps[self.warp];
  const std::uint32_t bit = 1u << self.lane;
  self.what = what;
  self.place = at;
  if (!(mask & bit)) {
    kernel_fault("divergence within a warp: " + thread_text(self) + " is not in the mask of its " +
                 what);
  }
  Meeting& meeting = meeting_of(warp, mask, what, at);
  if (meeting.what != what || !same_place(meeting.place, at)) {
    kernel_fault("divergence within a warp: " + thread_text(self) + " in " + call_text(what, at) +
                 ", others in " + call_text(meeting.what, meeting.place));
  }
  warp.slots[self.lane] = slot;
  meeting.arrived |= bit;
  if (meeting.arrived != mask) {
    self.state = State::in_warp;
    return let_others_run();
  }
  meeting.arrived = 0;
  if (all) all(warp.slots.data(), mask);
  release_others(self.warp, mask & ~bit);  // the last one goes on at once
}

void warp_barrier(std::uint32_t mask, Place at) {
  collective(mask, "__syncwarp", at, nullptr,
             [](void**, std::uint32_t) { clock_warp(now.self->warp); });
}

std::string this_thread_text() { return thread_text(*now.self); }

std::string line_text(const char* file, unsigned line) {
  const std::string path = file;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
}

}  // namespace cputrain::emulated
