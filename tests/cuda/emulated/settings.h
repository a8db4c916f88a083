#pragma once

#include <cstddef>
#include <string>

/// The emulated CUDA device of the tests: runs the kernels of backends/cuda on this machine's CPU,
/// one thread of a kernel after the other, and checks what they do. It stands behind
/// backends/cuda/device/device.h. Nothing here is part of the product.
namespace cputrain::emulated {

enum class Gpu { a100, h100, b200 };

/// Which of the threads, blocks and pieces of queued work that could go on goes on.
enum class Order {
  forward,  ///< the one that could first
  reverse,  ///< the one that came last
  random    ///< any
};

struct Settings {
  Gpu gpu = Gpu::h100;
  Order order = Order::forward;
  unsigned seed = 1;  ///< of random orders
  int devices = 1;
  /// Bytes of each device; 0: as many as the GPU has, or as the host can spare if that is less.
  std::size_t memory = 0;
  /// Else they are counted alone, arrays are zeros until something is copied there, and take no
  /// memory of the host: for counts of sizes that would take hours.
  bool runs_kernels = true;
  bool counts_bytes = false;  ///< of kernels: needs checked ones, which report their accesses
};

/// What CPUTRAIN_EMULATED_GPU (a100, h100 or b200), CPUTRAIN_EMULATED_ORDER (forward, reverse or
/// random:SEED), CPUTRAIN_EMULATED_DEVICES (1 to 64) and CPUTRAIN_EMULATED_KERNELS (run, count
/// or skip) say. Throws Error(usage).
Settings settings_of_environment();
/// The settings that hold: the environment's unless a test gave others to restart().
const Settings& settings();
/// Drops queued work, forgets what failed, and goes on with these settings. Arrays stay.
void restart(const Settings&);

/// What the chosen GPU allows; from the CUDA C++ Programming Guide, "Compute Capabilities".
struct GpuLimits {
  const char* name;
  int major, minor;
  int multiprocessors;
  std::size_t shared_memory;  ///< bytes of a block
  std::size_t memory;         ///< bytes
};
const GpuLimits& limits();

}  // namespace cputrain::emulated
