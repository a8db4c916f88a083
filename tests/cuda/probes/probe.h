#pragma once

/// What all probes use on the device.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/probes/answers.h"
#include "cuda/probes/child.h"

namespace cputrain::cuda::probes {

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + " fails: " + cudaGetErrorString(status) + " (" +
                           cudaGetErrorName(status) + ")");
}

/// To the process that asked for the group.
inline void say(const Answer& answer) {
  std::printf("%s\n", sent(answer).c_str());
  std::fflush(stdout);
}

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class TestStream {
 public:
  TestStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  ~TestStream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  operator cudaStream_t() const { return stream_; }
  /// Until everything is done; `what` is for the message.
  void wait(const char* what) const {
    check(cudaGetLastError(), what);
    check(cudaStreamSynchronize(stream_), what);
  }

 private:
  cudaStream_t stream_ = nullptr;
};

class TestEvent {
 public:
  explicit TestEvent(unsigned flags = cudaEventDefault) {
    check(cudaEventCreateWithFlags(&event_, flags), "an event");
  }
  ~TestEvent() { static_cast<void>(cudaEventDestroy(event_)); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;

  operator cudaEvent_t() const { return event_; }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Memory of the device, filled with zeros.
template <class T>
class TestArray {
 public:
  explicit TestArray(std::size_t size) : size_(size) {
    check(cudaMalloc(&data_, size * sizeof(T)), "cudaMalloc");
    check(cudaMemset(data_, 0, size * sizeof(T)), "cudaMemset");
  }
  explicit TestArray(const std::vector<T>& values) : TestArray(values.size()) {
    check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
          "a copy to the device");
  }
  ~TestArray() { static_cast<void>(cudaFree(data_)); }
  TestArray(const TestArray&) = delete;
  TestArray& operator=(const TestArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
          "a copy to the host");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// Seconds that the device takes for each call of `work`, which puts something into the stream. The
/// first call is not counted.
template <class Work>
double seconds_each(const TestStream& stream, int times, const Work& work) {
  TestEvent start, end;
  work();
  start.record(stream);
  for (int i = 0; i < times; ++i) work();
  end.record(stream);
  stream.wait("what is timed");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds) / times;
}

inline cudaDeviceProp properties_of_device() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties;
}

inline unsigned multiprocessors() {
  return static_cast<unsigned>(properties_of_device().multiProcessorCount);
}

/// A figure of the model of speed, which is made for H100 and H200; nothing elsewhere.
inline std::optional<double> assumed_on_hopper(double figure) {
  if (properties_of_device().major != 9) return {};
  return figure;
}

/// A block's cycles and nanoseconds between its first and its last instruction.
struct Stopwatch {
  long long cycles;
  unsigned long long nanoseconds;
#ifdef __CUDACC__
  __device__ static Stopwatch now();
  __device__ Stopwatch operator-(const Stopwatch& start) const {
    return {cycles - start.cycles, nanoseconds - start.nanoseconds};
  }
#endif
};

/// Cycles of the median block, the shortest and the longest; the clock that the median block had.
struct Pace {
  double cycles = 0, least = 0, most = 0, megahertz = 0;
};
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
inline Pace pace_of(const std::vector<Stopwatch>& watches) {
  std::vector<double> cycles, megahertz;
  for (const Stopwatch& w : watches) {
    cycles.push_back(static_cast<double>(w.cycles));
    megahertz.push_back(1e3 * static_cast<double>(w.cycles) / static_cast<double>(w.nanoseconds));
  }
  const auto [least, most] = std::minmax_element(cycles.begin(), cycles.end());
  return {median(cycles), *least, *most, median(megahertz)};
}

#ifdef __CUDACC__
__device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
__device__ __forceinline__ Stopwatch Stopwatch::now() { return {clock64(), probes::nanoseconds()}; }
/// Threads that wait for so long.
__device__ __forceinline__ void spin(unsigned long long duration) {
  const unsigned long long start = nanoseconds();
  while (nanoseconds() - start < duration) {
  }
}
#endif

}  // namespace cputrain::cuda::probes
