#include <map>

#include "backends/cuda/device/tensor_core.h"
#include "emulated/test_kernels.h"

/// Kernels in which nothing is wrong, though some look as if there were; and what tests of
/// fragments, streams and limits run.
namespace cputrain::emulated {
namespace {

using cuda::shared;
using Arguments = RightArguments;

/// y[i] = x[i ^ 1]
__global__ void neighbours_in_warp(Arguments a) {
  auto& s = shared<Row>();
  s.v[threadIdx.x] = a.x[threadIdx.x];
  __syncwarp();
  a.y[threadIdx.x] = s.v[threadIdx.x ^ 1];
}

/// y[i] = the sum of x[63 - i + 64 * round] over three rounds, from two buffers in turns
__global__ void double_buffer(Arguments a) {
  auto& s = shared<Rows>();
  float sum = 0;
  for (int round = 0; round < 3; ++round) {
    s.v[round % 2][threadIdx.x] = a.x[64 * round + static_cast<int>(threadIdx.x)];
    __syncthreads();
    sum += s.v[round % 2][63 - threadIdx.x];
  }
  a.y[threadIdx.x] = sum;
}

/// words[0] = all threads of all blocks
__global__ void atomics_of_blocks(Arguments a) { atomicAdd(a.words, 1u); }

/// words[i] = lanes whose number is divisible by 3
__global__ void ballots(Arguments a) {
  a.words[threadIdx.x] = __ballot_sync(~0u, threadIdx.x % 3 == 0);
}

/// y[i] = x[i + 1] in the first half of a warp, but x[15] for the last; x[i ^ 8] in the second
__global__ void halves_of_warps(Arguments a) {
  const float mine = a.x[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    a.y[threadIdx.x] = __shfl_down_sync(0xffffu, mine, 1, 16);
  } else {
    a.y[threadIdx.x] = __shfl_xor_sync(0xffff0000u, mine, 8);
  }
}

/// bytes[i] = pixels[i] + 1, neighbouring bytes by different threads and blocks
__global__ void neighbouring_bytes(Arguments a) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < 1000) a.bytes[i] = static_cast<std::uint8_t>(a.pixels[i] + 1);
}

/// sums[i] = 1 + 1/2 + ... of every 64th of 1,000 elements, in double
__global__ void sums_in_double(Arguments a) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < 1000; i += blockDim.x) {
    sum += static_cast<double>(a.x[i]) / static_cast<double>(i + 1);
  }
  a.sums[threadIdx.x] = sum;
}

/// y[i] = x[i] for i < 60 and 0 for the last four of 64, by cp.async in two groups
__global__ void copies_with_zeros(Arguments a) {
  auto& s = shared<Chunks>();
  for (unsigned group = 0; group < 2; ++group) {
    const unsigned chunk = 8 * group + threadIdx.x;
    if (threadIdx.x < 8) cuda::copy_to_shared(s.v[chunk], a.x + 4 * chunk, chunk < 15);
    cuda::commit_copies();
  }
  cuda::wait_for_copies<1>();
  __syncthreads();
  const float* all = s.v[0];
  float mine = threadIdx.x < 32 ? all[threadIdx.x] : 0;
  cuda::wait_for_copies<0>();
  __syncthreads();
  if (threadIdx.x >= 32) mine = all[threadIdx.x];
  a.y[threadIdx.x] = mine;
}

/// y[i] = x[0] + i: all threads read one element; y is read and written by its thread alone
__global__ void all_read_one(Arguments a) {
  a.y[threadIdx.x] = a.x[0];
  a.y[threadIdx.x] += static_cast<float>(threadIdx.x);
}

/// y[i] = i, by blocks and threads in three dimensions: 2 x 3 x 2 blocks of 4 x 2 x 3
__global__ void three_dimensions(Arguments a) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned i = 24 * block + thread;
  a.y[i] = static_cast<float>(i);
}

/// y[i] = a sum of four constants that the compiler keeps in a table
__global__ void reads_constants(Arguments a) {
  static constexpr float kTable[8] = {1, 2, 4, 8, 16, 32, 64, 128};
  float sum = 0;
  for (unsigned i = 0; i < 4; ++i) sum += kTable[(threadIdx.x + i) % 8];
  a.y[threadIdx.x] = sum;
}

/// y[0] = the sum of the first 64 elements, as a block adds them
__global__ void sum_of_block(Arguments a) {
  auto& of_warps = shared<float[2]>();
  float sum = a.x[threadIdx.x];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) a.y[0] = of_warps[0] + of_warps[1];
}

/// y[i] = min, max, fmaf and rsqrtf as device code has them
__global__ void functions_of_devices(Arguments a) {
  const int i = static_cast<int>(threadIdx.x);
  const float least = min(a.x[i], 3.0f), most = max(-INFINITY, least);
  a.y[i] = fmaf(most, 2.0f, rsqrtf(static_cast<float>(max(i, 4))));
}

struct Case {
  dim3 grid, block;
  void (*kernel)(Arguments);
};

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all{
      {"neighbours_in_warp", {1, 64, neighbours_in_warp}},
      {"double_buffer", {1, 64, double_buffer}},
      {"atomics_of_blocks", {3, 64, atomics_of_blocks}},
      {"ballots", {1, 64, ballots}},
      {"halves_of_warps", {1, 64, halves_of_warps}},
      {"neighbouring_bytes", {11, 99, neighbouring_bytes}},
      {"sums_in_double", {1, 64, sums_in_double}},
      {"copies_with_zeros", {1, 64, copies_with_zeros}},
      {"all_read_one", {1, 64, all_read_one}},
      {"three_dimensions", {{2, 3, 2}, {4, 2, 3}, three_dimensions}},
      {"reads_constants", {1, 64, reads_constants}},
      {"sum_of_block", {1, 64, sum_of_block}},
      {"functions_of_devices", {1, 64, functions_of_devices}},
  };
  return all;
}

}  // namespace

std::vector<std::string> right_kernels() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : cases()) names.push_back(name);
  return names;
}

void launch_right(const std::string& kernel, cuda::Stream stream, const RightArguments& a) {
  const auto& [name, found] = *cases().find(kernel);
  cuda::launch(stream, name.c_str(), found.kernel, found.grid, found.block, 0, a);
}

namespace {

__global__ void scale(int size, const float* in_memory, float factor, const float* x, float* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < size) y[i] = x[i] * (in_memory ? *in_memory : factor);
}

__global__ void product(bool tf32, const unsigned* a, const unsigned* b, float* acc) {
  const unsigned lane = threadIdx.x;
  float sums[1][1][4];
  unsigned of_a[1][4], of_b[1][2];
  for (unsigned i = 0; i < 4; ++i) sums[0][0][i] = acc[4 * lane + i];
  for (unsigned i = 0; i < 4; ++i) of_a[0][i] = a[4 * lane + i];
  for (unsigned i = 0; i < 2; ++i) of_b[0][i] = b[2 * lane + i];
  if (tf32) {
    cuda::mma_tf32(sums, of_a, of_b);
  } else {
    cuda::mma_bf16(sums, of_a, of_b);
  }
  for (unsigned i = 0; i < 4; ++i) acc[4 * lane + i] = sums[0][0][i];
}

struct alignas(16) Matrices {
  std::uint16_t v[32][8];
};

__global__ void matrices(bool transposed, const std::uint16_t* in, unsigned* registers) {
  auto& s = shared<Matrices>();
  for (int i = 0; i < 8; ++i) s.v[threadIdx.x][i] = in[8 * threadIdx.x + static_cast<unsigned>(i)];
  __syncwarp();
  unsigned r[4];
  if (transposed) {
    cuda::load_matrices_transposed(r, s.v[threadIdx.x]);
  } else {
    cuda::load_matrices(r, s.v[threadIdx.x]);
  }
  for (unsigned i = 0; i < 4; ++i) registers[4 * threadIdx.x + i] = r[i];
}

__global__ void idle() {}

struct Large {
  float v[(48 << 10) / sizeof(float)];
};

__global__ void large_variables() {
  shared<Large>().v[threadIdx.x] = 1;
  shared<Row>().v[threadIdx.x] = 1;
}

__global__ void arrivals(unsigned* next, unsigned* out) {
  out[atomicAdd(next, 1u)] = blockIdx.x * blockDim.x + threadIdx.x;
}

}  // namespace

void launch_scale(cuda::Stream stream, int size, const float* in_memory, float factor,
                  const float* x, float* y) {
  cuda::launch(stream, "scale", scale, dim3(static_cast<unsigned>(size + 127) / 128), dim3(128), 0,
               size, in_memory, factor, x, y);
}

void launch_product(cuda::Stream stream, bool tf32, const unsigned* a, const unsigned* b,
                    float* acc) {
  cuda::launch(stream, "product", product, dim3(1), dim3(32), 0, tf32, a, b, acc);
}

void launch_load_matrices(cuda::Stream stream, bool transposed, const std::uint16_t* in,
                          unsigned* registers) {
  cuda::launch(stream, "matrices", matrices, dim3(1), dim3(32), 0, transposed, in, registers);
}

void launch_idle(cuda::Stream stream, unsigned blocks, unsigned threads, std::size_t shared_bytes) {
  cuda::launch(stream, "idle", idle, dim3(blocks), dim3(threads), shared_bytes);
}

void launch_large_variables(cuda::Stream stream) {
  cuda::launch(stream, "large_variables", large_variables, dim3(1), dim3(32), 0);
}

void launch_arrivals(cuda::Stream stream, unsigned blocks, unsigned threads, unsigned* next,
                     unsigned* out) {
  cuda::launch(stream, "arrivals", arrivals, dim3(blocks), dim3(threads), 0, next, out);
}

}  // namespace cputrain::emulated
