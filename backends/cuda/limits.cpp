#include "backends/cuda/limits.h"

#include <algorithm>
#include <cstddef>

#include "backends/cuda/kernels/limits.h"
#include "core/casts.h"

namespace cputrain::cuda {
namespace {

constexpr int kRepeats = 5;

/// The quickest of some runs, in seconds of the device; processes that share it run together.
template <class Work>
double best_time(Stream stream, const compute::Together& together, const Work& work) {
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    Event begin(Event::timed), end(Event::timed);
    together.meet();
    begin.record(stream);
    work();
    end.record(stream);
    end.synchronize();
    const double seconds = together.slowest(end.seconds_since(begin));
    if (repeat == 0 || seconds < best) best = seconds;
  }
  return best;
}

double product_rate(Stream stream, const DeviceProperties& device, Numbers numbers,
                    const compute::Together& together) {
  const int rounds = device.emulated ? 2 : 1 << 14;
  const int processors = device.emulated ? 1 : device.multiprocessors;
  const DeviceBlock sums(multiply_add_sums(processors) * sizeof(float), "sums of multiply-adds");
  const double seconds = best_time(stream, together, [&] {
    launch_multiply_adds(stream, numbers, processors, rounds, sums.as<float>());
  });
  return 2 * multiply_adds(numbers, processors, rounds) / std::max(seconds, 1e-9) / 1e9;
}

double triad_rate(Stream stream, const DeviceProperties& device,
                  const compute::Together& together) {
  const std::size_t share = device.memory / 64 / to_size(together.processes);
  const std::size_t size =
      device.emulated ? 1024 : std::min(share, std::size_t{1} << 30) / sizeof(double);
  const DeviceBlock arrays(3 * size * sizeof(double), "arrays of the triad");
  auto* a = arrays.as<double>();
  clear_async(a, arrays.size(), stream);
  const double seconds = best_time(
      stream, together, [&] { launch_triad(stream, size, 3.0, a + size, a + 2 * size, a); });
  return 24 * to_double(size) / std::max(seconds, 1e-9) / 1e9;
}

}  // namespace

compute::Limits measure_device(Stream stream, const DeviceProperties& device, Numbers numbers,
                               const compute::Together& together) {
  return {product_rate(stream, device, numbers, together), triad_rate(stream, device, together)};
}

}  // namespace cputrain::cuda
