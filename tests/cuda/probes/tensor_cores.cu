// What tensor cores compute.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "backends/cuda/device/tensor_core.h"
#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

// How tensor cores take TF32 and bf16 numbers, and how they round: E2, E3.

/// One instruction's numbers in order of row, depth and column, as its registers hold them.
struct Tf32 {
  using Element = unsigned;
  static constexpr int kDepth = 8;
  static constexpr const char* kName = "tf32";
  static unsigned bits(float value) {
    unsigned u;
    std::memcpy(&u, &value, sizeof u);
    return u;
  }
};
struct Bf16 {
  using Element = unsigned short;
  static constexpr int kDepth = 16;
  static constexpr const char* kName = "bf16";
  static unsigned short bits(float value) {
    return static_cast<unsigned short>(Tf32::bits(value) >> 16);
  }
};

constexpr int kRows = 16, kColumns = 8;

template <class Number>
struct Case {
  typename Number::Element a[kRows][Number::kDepth] = {}, b[Number::kDepth][kColumns] = {};
  float sums[kRows][kColumns] = {};
};

/// Adds a * b to the sums of each block's case, with no more than loads of registers around it.
template <class Number>
__global__ void product_kernel(Case<Number>* cases) {
  Case<Number>& it = cases[blockIdx.x];
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  unsigned a[1][4], b[1][2];
  float acc[1][1][4];
  for (int r = 0; r < 4; ++r) {
    acc[0][0][r] = it.sums[g + r / 2 * 8][2 * t + r % 2];
    const int row = g + r % 2 * 8;
    if constexpr (Number::kDepth == 8) {
      a[0][r] = it.a[row][t + r / 2 * 4];
    } else {
      const int k = 2 * t + r / 2 * 8;
      a[0][r] = it.a[row][k] | static_cast<unsigned>(it.a[row][k + 1]) << 16;
    }
  }
  for (int r = 0; r < 2; ++r) {
    if constexpr (Number::kDepth == 8) {
      b[0][r] = it.b[t + r * 4][g];
    } else {
      const int k = 2 * t + r * 8;
      b[0][r] = it.b[k][g] | static_cast<unsigned>(it.b[k + 1][g]) << 16;
    }
  }
  if constexpr (Number::kDepth == 8) {
    mma_tf32(acc, a, b);
  } else {
    mma_bf16(acc, a, b);
  }
  for (int r = 0; r < 4; ++r) it.sums[g + r / 2 * 8][2 * t + r % 2] = acc[0][0][r];
}

template <class Number>
std::vector<Case<Number>> computed(const std::vector<Case<Number>>& cases) {
  const TestStream stream;
  const TestArray<Case<Number>> there(cases);
  product_kernel<Number><<<static_cast<unsigned>(cases.size()), 32, 0, stream>>>(there.data());
  stream.wait("mma");
  return there.read();
}

/// sum + a * b in the first place, other products being zero.
template <class Number>
float one_product(typename Number::Element a, typename Number::Element b, float sum) {
  std::vector<Case<Number>> one(1);
  one[0].a[0][0] = a;
  one[0].b[0][0] = b;
  one[0].sums[0][0] = sum;
  return computed(one)[0].sums[0][0];
}

float number_of(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Floats of either sign, 2^-20 to 2^20, with bits that TF32 has no place for.
unsigned any_float(std::mt19937& random) {
  const unsigned exponent = 107 + random() % 40;
  return (random() & 0x807fffffu) | exponent << 23;
}

/// Times one, in the place of an A (in_a) or of a B.
void ask_lower_bits(bool in_a) {
  std::mt19937 random(7);
  std::vector<Case<Tf32>> cases(64);
  for (auto& c : cases) {
    for (auto& row : c.a) row[0] = in_a ? any_float(random) : 0x3f800000u;
    for (unsigned& b : c.b[0]) b = in_a ? 0x3f800000u : any_float(random);
  }
  int cut = 0, rounded = 0, all = 0;
  const auto done = computed(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const unsigned bits = in_a ? cases[i].a[row][0] : cases[i].b[0][column];
        const float got = done[i].sums[row][column];
        cut += got == number_of(bits & 0xffffe000u);
        rounded += got == number_of((bits + 0x1000u) & 0xffffe000u);
        ++all;
      }
    }
  }
  say({.name = in_a ? "tf32-lower-bits-a" : "tf32-lower-bits-b",
       .question = "E2",
       .value = static_cast<double>(cut) / all,
       .unit = "of all",
       .verdict = verdict_of(cut == all),
       .text =
           words("of %d products of any float with 1, %d cut its lower 13 bits off and %d round "
                 "it, both signs among them",
                 all, cut, rounded)});
}

/// The last place of a sum near 1.
constexpr float kUlp = 0x1p-23f;

template <class Number>
void ask_rounding() {
  const auto half_more = [](float sign) {
    return one_product<Number>(Number::bits(sign * 1.5f), Number::bits(0x1p-24f), sign);
  };
  const float up = half_more(1), down = half_more(-1);
  // Exactly between 1 and the number below it, which cutting off towards zero gives.
  const float below = one_product<Number>(Number::bits(-0.5f), Number::bits(0x1p-24f), 1);
  const bool cut = up == 1 && down == -1;
  const bool rounds = up == 1 + kUlp && down == -1 - kUlp;
  say({.name = std::string(Number::kName) + "-sum-rounding",
       .question = "E3",
       .value = static_cast<double>((up - 1) / kUlp),
       .unit = "ulp",
       .verdict = verdict_of(cut),
       .text = words("1 + 1.5 * 2^-24 is %a, -1 - 1.5 * 2^-24 is %a, 1 - 2^-25 is %a: %s", up, down,
                     below,
                     cut      ? "sums are cut off towards zero"
                     : rounds ? "sums are rounded"
                              : "neither cut off nor rounded")});
}

/// The sum in the first place of a row of `a` that is multiplied by ones, to which `sum` is added.
template <class Number>
float sum_of_row(const std::vector<std::pair<int, float>>& row, float sum) {
  std::vector<Case<Number>> one(1);
  one[0].sums[0][0] = sum;
  for (const auto& [k, value] : row) {
    one[0].a[0][k] = Number::bits(value);
    one[0].b[k][0] = Number::bits(1);
  }
  return computed(one)[0].sums[0][0];
}

/// 1 and two products that are one of its last place together: what is below, is it cut off before
/// they are summed?
template <class Number>
void ask_guard_bits() {
  int bits = 0;
  for (int n = 1; n <= 7; ++n) {
    const float part = std::ldexp(kUlp, -n);
    if (sum_of_row<Number>({{0, part}, {1, kUlp - part}}, 1) != 1 + kUlp) break;
    bits = n;
  }
  say({.name = std::string(Number::kName) + "-guard-bits",
       .question = "E3",
       .value = bits,
       .unit = "bits",
       .text = words("sums of an instruction keep %d bits below a float's last place", bits)});
}

/// 1, -1 and a product that is lost beside them: where it is not, it is summed before or after.
template <class Number>
void ask_summed_together() {
  constexpr int kLast = Number::kDepth - 1;
  int first = 2, last = 2;
  for (int k = 2; k <= kLast; ++k) {
    first += sum_of_row<Number>({{0, 1.f}, {1, -1.f}, {k, 0x1p-40f}}, 0) == 0;
    last += sum_of_row<Number>({{kLast, 1.f}, {kLast - 1, -1.f}, {kLast - k, 0x1p-40f}}, 0) == 0;
  }
  const int together = std::min(first, last);
  say({.name = std::string(Number::kName) + "-summed-together",
       .question = "E3",
       .value = together,
       .unit = "products",
       .text = words("of %d products of an instruction %d are summed before they are cut off",
                     Number::kDepth, together)});
}

template <class Number>
void ask_special_numbers() {
  const auto one = Number::bits(1), infinity = Number::bits(INFINITY), zero = Number::bits(0);
  const auto not_a_number = Number::bits(number_of(0x7fff0000u));
  const float nan = one_product<Number>(not_a_number, one, 0);
  const float stays = one_product<Number>(infinity, one, 0);
  const float none = one_product<Number>(infinity, zero, 0);
  const float over = one_product<Number>(Number::bits(0x1p127f), Number::bits(2), 0);
  const float from_sum = one_product<Number>(one, one, NAN);
  say({.name = std::string(Number::kName) + "-nan-infinity",
       .question = "E3",
       .verdict = verdict_of(std::isnan(nan) && stays == INFINITY && std::isnan(none) &&
                             over == INFINITY && std::isnan(from_sum)),
       .text = words("NaN * 1 is %g, infinity * 1 is %g, infinity * 0 is %g, 2^127 * 2 is %g, "
                     "NaN + 1 * 1 is %g",
                     nan, stays, none, over, from_sum)});
  const float small = one_product<Number>(Number::bits(0x1p-128f), Number::bits(4), 0);
  say({.name = std::string(Number::kName) + "-denormals",
       .question = "E3",
       .value = static_cast<double>(small / 0x1p-126f),
       .text = words("2^-128 * 4 is %a: denormal numbers are %s", small,
                     small == 0x1p-126f ? "kept" : "not kept")});
}

/// Cutting bits off a NaN leaves an infinity. The halves of a float (gemm_fragments.h) keep it all
/// the same, since the smaller one is then NaN.
void ask_nan_of_lower_bits() {
  const unsigned bits = 0x7f800001u, one = Tf32::bits(1);
  const float big = number_of(bits & 0xffffe000u);
  const float alone = one_product<Tf32>(bits, one, 0);
  const float halves = one_product<Tf32>(Tf32::bits(number_of(bits) - big), one, alone);
  say({.name = "tf32-nan-of-lower-bits",
       .question = "E2",
       .verdict = verdict_of(alone == INFINITY && std::isnan(halves)),
       .text = words("a NaN whose only bit is a lower one, times 1, is %g, and %g in two halves",
                     alone, halves)});
}

}  // namespace

void ask_bits() {
  ask_lower_bits(true);
  ask_lower_bits(false);
  ask_rounding<Tf32>();
  ask_rounding<Bf16>();
  ask_guard_bits<Tf32>();
  ask_guard_bits<Bf16>();
  ask_summed_together<Tf32>();
  ask_summed_together<Bf16>();
  ask_special_numbers<Tf32>();
  ask_special_numbers<Bf16>();
  ask_nan_of_lower_bits();
}

namespace {

// Products from shared memory as the kernels compute them, cp.async -> ldmatrix -> mma, of integers
// whose sums are exact: E1.

constexpr int kCases = 64;
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
