#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "emulated/fibers.h"

/// Runs one kernel: its blocks one after the other, the threads of a block in turns, each until it
/// must wait for others.
namespace cputrain::emulated {

/// dim3
struct Dim {
  unsigned x = 1, y = 1, z = 1;
  constexpr Dim(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr std::size_t count() const { return std::size_t{x} * y * z; }
};

/// The line of a kernel that calls a barrier or an instruction of a warp.
using Place = std::source_location;

/// A cp.async on its way.
struct AsyncCopy {
  void* dst;
  const void* src;
  bool valid;
  unsigned group;
};

enum class State : std::uint8_t { ready, at_barrier, in_warp, done };

/// A thread of the block that runs.
struct Thread {
  Dim index;
  unsigned number = 0, warp = 0, lane = 0;
  State state = State::ready;
  Context context = nullptr;  ///< none before it has begun
  unsigned stack = 0;
  const char* what = "";  ///< it called last, at `place`
  Place place;
  std::vector<AsyncCopy> copies;
  unsigned group = 0;  ///< of the next cp.async
};

/// What kernels see.
struct Now {
  Thread* self = nullptr;
  Dim grid, block, block_index;
  std::array<Thread, kMostThreads> threads;
};
/// Hidden, so that kernels in shared libraries reach it directly.
[[gnu::visibility("hidden")]] extern Now now;
/// Stacks of the threads of kernels. Code that asks what it runs on may do so before there are any.
[[gnu::visibility("hidden")]] extern constinit Stacks stacks;

/// A kernel with its arguments, as a launch put them together.
struct KernelLaunch {
  const char* name;
  Dim grid, block;
  std::size_t shared_bytes;
  void (*body)(const void* arguments);
  std::vector<std::byte> arguments{};
};

/// Throws Error(internal) for what the chosen GPU would not start.
void check_limits(const KernelLaunch&);
/// Throws Fault. One at a time.
void run_kernel(const KernelLaunch&);

/// --- What kernels call (language.h, tensor_core.h).

void block_barrier(Place);
void warp_barrier(std::uint32_t mask, Place);
/// The threads of a warp that are in the mask meet; the last of them calls `run` with the slots of
/// all, by lane. They must come from the same line.
void collective(std::uint32_t mask, const char* what, Place, void* slot,
                void (*run)(void** slots, std::uint32_t mask));
/// The block's storage of the type that the key stands for.
void* shared_storage(const void* key, std::size_t bytes, std::size_t alignment);
void* dynamic_storage();
void begin_copy(void* dst, const void* src, bool valid, Place);
void commit_group();
void wait_for_groups(unsigned left, Place);

/// Ends the kernel. `pc`: a return address in the line that is to blame; none: the place that the
/// thread called from is.
[[noreturn]] void kernel_fault(const std::string& text, const void* pc = nullptr);
/// The same for a line that is known.
[[noreturn]] void kernel_fault_at(const std::string& text, const std::string& line);
/// "thread (3,0,0) of block (1,0,0)"
std::string this_thread_text();
/// "convolution.cu:84"
std::string line_text(const char* file, unsigned line);
/// Whether an address is one that kernels may read though it is not the device's: arguments,
/// constants of the program, the emulator's own.
bool is_harmless(const void*);

}  // namespace cputrain::emulated
