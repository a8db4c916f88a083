#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"

/// Kernels that only test the emulated device: compiled once plain and once checked.
namespace cputrain::emulated {

/// What kernels have in shared memory.
struct Row {
  float v[64];
};
struct Rows {
  float v[2][64];
};
struct alignas(16) Chunks {
  float v[64][4];
};

/// What the kernels of faulty_kernels.cu get. x: 64 floats of 1, y: 256 floats that nobody wrote,
/// bytes: 64 that nobody wrote.
struct FaultyArguments {
  float* x;
  float* y;
  std::uint8_t* bytes;
  float* host;
};
std::vector<std::string> faulty_kernels();
void launch_faulty(const std::string& kernel, cuda::Stream, const FaultyArguments&);

/// Right ones: see right_kernels.cu for what each computes.
struct RightArguments {
  const float* x;              ///< 1,000 floats
  const std::uint8_t* pixels;  ///< 1,000 bytes
  float* y;                    ///< 1,000 floats that nobody wrote
  double* sums;                ///< 64 that nobody wrote
  unsigned* words;             ///< 128 zeros
  std::uint8_t* bytes;         ///< 1,000 that nobody wrote
};
std::vector<std::string> right_kernels();
void launch_right(const std::string& kernel, cuda::Stream, const RightArguments&);

/// Those of traffic_kernels.cu, whose bytes are known.
constexpr unsigned kTrafficFloats = 1024;
struct TrafficArguments {
  const float* x;       ///< kTrafficFloats ones
  float* y;             ///< as many that nobody wrote
  unsigned* words;      ///< a zero
  std::uint8_t* bytes;  ///< 128 that nobody wrote
};
void launch_traffic(const char* kernel, cuda::Stream, unsigned blocks, unsigned threads,
                    const TrafficArguments&);

/// y = factor * x, with the factor from memory unless that is null.
void launch_scale(cuda::Stream, int size, const float* in_memory, float factor, const float* x,
                  float* y);
/// One product of fragments by lane: a[4], b[2], acc[4].
void launch_product(cuda::Stream, bool tf32, const unsigned* a, const unsigned* b, float* acc);
/// Each lane's registers of four 8 x 8 matrices of 16-bit numbers that lie in `matrices`.
void launch_load_matrices(cuda::Stream, bool transposed, const std::uint16_t* matrices,
                          unsigned* registers);
/// A kernel of this many threads and bytes of dynamic shared memory that does nothing.
void launch_idle(cuda::Stream, unsigned blocks, unsigned threads, std::size_t shared_bytes);
/// Has a shared variable of 48 KiB and another.
void launch_large_variables(cuda::Stream);
/// out[i] = the i-th thread, or block, that came.
void launch_arrivals(cuda::Stream, unsigned blocks, unsigned threads, unsigned* next,
                     unsigned* out);

}  // namespace cputrain::emulated
