// Products from shared memory as the kernels compute them, cp.async -> ldmatrix -> mma, of integers
// whose sums are exact: E1.
#include <random>

#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kRows = 16, kColumns = 8, kCases = 64;
constexpr int kRowBytes = 32, kChunkBytes = 16;  // 8 numbers of TF32, 16 of bf16

/// Integers of both kinds, exact in each.
template <class Element>
Element stored(int value);
template <>
float stored<float>(int value) {
  return static_cast<float>(value);
}
template <>
unsigned short stored<unsigned short>(int value) {  // bf16
  const float f = static_cast<float>(value);
  unsigned u;
  static_assert(sizeof u == sizeof f);
  __builtin_memcpy(&u, &f, sizeof u);
  return static_cast<unsigned short>(u >> 16);
}

/// A block's share of `src` in shared memory; each thread copies 16 bytes at a time.
__device__ void fetch(void* dst, const void* src, int bytes) {
  const char* from = static_cast<const char*>(src) + static_cast<std::size_t>(blockIdx.x) * bytes;
  for (int i = static_cast<int>(threadIdx.x) * kChunkBytes; i < bytes; i += 32 * kChunkBytes) {
    copy_to_shared(static_cast<char*>(dst) + i, from + i, true);
  }
}

__device__ void store(float* out, const float (&sums)[4]) {
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  out += static_cast<std::size_t>(blockIdx.x) * kRows * kColumns;
  for (int r = 0; r < 4; ++r) out[(g + r / 2 * 8) * kColumns + 2 * t + r % 2] = sums[r];
}

/// a: rows of numbers along the depth; b: the same of columns.
template <bool kTf32>
__global__ void plain_kernel(const void* a, const void* b, float* out) {
  __shared__ alignas(128) char rows[kRows * kRowBytes], columns[kColumns * kRowBytes];
  const int lane = static_cast<int>(threadIdx.x);
  fetch(rows, a, sizeof rows);
  fetch(columns, b, sizeof columns);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  unsigned x[1][4], both[4], y[1][2];
  load_matrices(x[0], rows + lane % 16 * kRowBytes + lane / 16 * kChunkBytes);
  load_matrices(both, columns + lane % 8 * kRowBytes + lane / 8 % 2 * kChunkBytes);
  y[0][0] = both[0];
  y[0][1] = both[1];
  float sums[1][1][4] = {};
  if constexpr (kTf32) {
    mma_tf32(sums, x, y);
  } else {
    mma_bf16(sums, x, y);
  }
  store(out, sums[0][0]);
}

/// a: depths of 16 rows each; b: depths of 8 columns each.
__global__ void transposed_kernel(const void* a, const void* b, float* out) {
  constexpr int kDepth = 16;
  __shared__ alignas(128) unsigned short rows[kDepth][kRows], columns[kDepth][kColumns];
  const int lane = static_cast<int>(threadIdx.x);
  fetch(rows, a, sizeof rows);
  fetch(columns, b, sizeof columns);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  unsigned x[1][4], both[4], y[1][2];
  load_matrices_transposed(x[0], &rows[lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);
  load_matrices_transposed(both, columns[lane % 16]);
  y[0][0] = both[0];
  y[0][1] = both[1];
  float sums[1][1][4] = {};
  mma_bf16(sums, x, y);
  store(out, sums[0][0]);
}

/// `along_depth`: numbers of one row or column lie side by side, else those of one depth.
template <class Element>
void ask_chain(const char* name, void (*kernel)(const void*, const void*, float*),
               bool along_depth) {
  constexpr int kDepth = kRowBytes / static_cast<int>(sizeof(Element));
  std::mt19937 random(11);
  const auto integers = [&](int count) {
    std::vector<int> values(static_cast<std::size_t>(count));
    for (int& v : values) v = static_cast<int>(random() % 17) - 8;
    return values;
  };
  const auto a = integers(kCases * kRows * kDepth), b = integers(kCases * kColumns * kDepth);
  const auto place = [&](int width, int i, int k) {
    return along_depth ? i * kDepth + k : k * width + i;
  };
  std::vector<Element> stored_a, stored_b;
  for (const int v : a) stored_a.push_back(stored<Element>(v));
  for (const int v : b) stored_b.push_back(stored<Element>(v));
  const TestStream stream;
  const TestArray<Element> there_a(stored_a), there_b(stored_b);
  const TestArray<float> out(kCases * kRows * kColumns);
  kernel<<<kCases, 32, 0, stream>>>(there_a.data(), there_b.data(), out.data());
  stream.wait(name);
  int wrong = 0, at = 0;
  for (const float got : out.read()) {
    const int column = at % kColumns, row = at / kColumns % kRows, c = at / kColumns / kRows;
    int sum = 0;
    for (int k = 0; k < kDepth; ++k) {
      sum += a[static_cast<std::size_t>(c * kRows * kDepth + place(kRows, row, k))] *
             b[static_cast<std::size_t>(c * kColumns * kDepth + place(kColumns, column, k))];
    }
    wrong += got != static_cast<float>(sum);
    ++at;
  }
  say({.name = name,
       .question = "E1",
       .value = wrong,
       .unit = "wrong sums",
       .verdict = verdict_of(wrong == 0),
       .text = words("%d of %d sums of integers are wrong", wrong, at)});
}

}  // namespace

void ask_fragments() {
  ask_chain<float>("tf32-fragments", plain_kernel<true>, true);
  ask_chain<unsigned short>("bf16-fragments", plain_kernel<false>, true);
  ask_chain<unsigned short>("bf16-fragments-transposed", transposed_kernel, false);
}

}  // namespace cputrain::cuda::probes
