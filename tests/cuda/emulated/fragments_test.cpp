#include <bit>
#include <cmath>
#include <random>
#include <utility>

#include "emulated/device_fixture.h"
#include "emulated/tensor_core.h"
#include "emulated/test_kernels.h"

/// Where the elements of matrices lie in the registers of a warp. The tables are those of CuTe,
/// NVIDIA's own (CUTLASS, include/cute/atom/mma_traits_sm80.hpp: MMA_Traits of
/// SM80_16x8x8_F32TF32TF32F32_TN and SM80_16x8x16_F32BF16BF16F32_TN): (thread, value) -> offset in
/// the column-major 16 x K, 8 x K or 16 x 8 matrix, as shapes and strides.
namespace cputrain::emulated {
namespace {

/// Threads are (4, 8) with strides (thread, 1); values are (2, 2, 2) with strides `values`, in
/// which those that are not used are 0.
struct Layout {
  int thread;
  int values[3];
  int rows;  ///< of the column-major matrix

  int offset(int lane, int value) const {
    return lane % 4 * thread + lane / 4 + (value & 1) * values[0] + (value >> 1 & 1) * values[1] +
           (value >> 2 & 1) * values[2];
  }
  int row(int lane, int value) const { return offset(lane, value) % rows; }
  int column(int lane, int value) const { return offset(lane, value) / rows; }
};

struct Form {
  bool tf32;
  int depth;
  Layout a, b, c;
};

/// ALayout Shape<Shape<_4,_8>, Shape<_2,_2>>, Stride<Stride<_16,_1>, Stride<_8,_64>>;
/// BLayout Shape<Shape<_4,_8>, _2>, Stride<Stride<_8,_1>, _32>; C: SM80_16x8_Row,
/// Stride<Stride<_32,_1>, Stride<_16,_8>>.
constexpr Form kTf32{true, 8, {16, {8, 64, 0}, 16}, {8, {32, 0, 0}, 8}, {32, {16, 8, 0}, 16}};
/// ALayout Shape<Shape<_4,_8>, Shape<_2,_2,_2>>, Stride<Stride<_32,_1>, Stride<_16,_8,_128>>;
/// BLayout Shape<Shape<_4,_8>, Shape<_2,_2>>, Stride<Stride<_16,_1>, Stride<_8,_64>>; C as above.
constexpr Form kBf16{false, 16, {32, {16, 8, 128}, 16}, {16, {8, 64, 0}, 8}, {32, {16, 8, 0}, 16}};

/// Registers of all lanes, `each` a lane, from a row-major matrix that element(row, column) gives.
template <class Element>
std::vector<unsigned> registers_of(const Form& form, const Layout& layout, int each,
                                   const Element& element) {
  const int per_register = form.tf32 ? 1 : 2;
  std::vector<unsigned> registers(static_cast<std::size_t>(32 * each), 0);
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < each * per_register; ++value) {
      const float f = element(layout.row(lane, value), layout.column(lane, value));
      const unsigned bits = std::bit_cast<unsigned>(f);
      unsigned& r = registers[static_cast<std::size_t>(lane * each + value / per_register)];
      r |= form.tf32 ? bits : bits >> 16 << 16 * (value % 2);
    }
  }
  return registers;
}

class Products : public OnDevice, public testing::WithParamInterface<Form> {};

TEST_P(Products, FragmentsLieAsInCuTe) {
  const Form& form = GetParam();
  std::mt19937 random(7);
  std::vector<float> a(256), b(256), c(128);
  // Small integers are exact in all three types, and so are their sums.
  for (auto* values : {&a, &b, &c}) {
    for (float& v : *values) v = static_cast<float>(random() % 15) - 7;
  }
  const auto a_at = [&](int m, int k) { return a[static_cast<std::size_t>(m * form.depth + k)]; };
  const auto b_at = [&](int n, int k) { return b[static_cast<std::size_t>(n * form.depth + k)]; };
  const DeviceArray<unsigned> of_a(registers_of(form, form.a, 4, a_at), "a");
  const DeviceArray<unsigned> of_b(registers_of(form, form.b, 2, b_at), "b");
  const DeviceArray<float> acc(c, "acc");  // lane by lane
  const cuda::OwnedStream stream;
  launch_product(stream.get(), form.tf32, of_a.data(), of_b.data(), acc.data());
  const std::vector<float> sums = [&] {
    stream.synchronize();
    return acc.values();
  }();
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < 4; ++value) {
      const int m = form.c.row(lane, value), n = form.c.column(lane, value);
      const auto i = static_cast<std::size_t>(4 * lane + value);
      double sum = c[i];
      for (int k = 0; k < form.depth; ++k) sum += a_at(m, k) * b_at(n, k);
      EXPECT_EQ(sums[i], sum) << "lane " << lane << ", value " << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Products, testing::Values(kTf32, kBf16),
                         [](const auto& test) { return test.param.tf32 ? "tf32" : "bf16"; });

class Tf32Factors : public OnDevice {};

/// As an H200 does (tests/cuda/probes): a NaN that has no other bits becomes an infinity.
TEST_F(Tf32Factors, LackTheLower13Bits) {
  const std::pair<unsigned, float> cases[] = {{0x3f801fffu, 1.0f},
                                              {0xbf803fffu, -1 - 0x1p-10f},
                                              {0x7f800001u, INFINITY},
                                              {0x00002000u, 0x1p-136f}};
  for (const auto& [bits, value] : cases) {
    std::vector<unsigned> a(128, 0), b(64, 0);
    a[0] = bits;
    b[0] = std::bit_cast<unsigned>(1.0f);
    const DeviceArray<unsigned> of_a(a, "a"), of_b(b, "b");
    const DeviceArray<float> acc(std::vector<float>(128, 0.0f), "acc");
    const cuda::OwnedStream stream;
    launch_product(stream.get(), true, of_a.data(), of_b.data(), acc.data());
    stream.synchronize();
    EXPECT_EQ(acc.values()[0], value) << bits;
  }
}

class Matrices : public OnDevice, public testing::WithParamInterface<bool> {};

/// PTX ISA, "ldmatrix": a thread gets of row lane / 4 the elements 2 * (lane % 4) and the next, the
/// first in the lower half; with .trans, those of the transposed matrix.
TEST_P(Matrices, RegistersAreThoseOfLdmatrix) {
  std::vector<std::uint16_t> in(256);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(1000 + i * 37);
  const DeviceArray<std::uint16_t> matrices(in, "matrices");
  const DeviceArray<unsigned> registers(128, "registers");
  const cuda::OwnedStream stream;
  launch_load_matrices(stream.get(), GetParam(), matrices.data(), registers.data());
  stream.synchronize();
  const auto out = registers.values();
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      const std::size_t row = lane / 4, column = 2 * (lane % 4);
      const auto at = [&](std::size_t y, std::size_t x) -> unsigned {
        return in[64 * matrix + (GetParam() ? 8 * x + y : 8 * y + x)];
      };
      EXPECT_EQ(out[4 * lane + matrix], at(row, column) | at(row, column + 1) << 16)
          << "lane " << lane << ", matrix " << matrix;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Matrices, testing::Bool());

/// cvt.rna.tf32.f32: to the nearest multiple of 2^-10 of the number's power of two, ties away from
/// zero.
TEST(Tf32, RoundsToNearestTiesAwayFromZero) {
  const auto rounded = [](float f) { return cuda::tf32_value(cuda::to_tf32(f)); };
  EXPECT_EQ(rounded(1.0f), 1.0f);
  EXPECT_EQ(rounded(1 + 0x1p-11f), 1 + 0x1p-10f);
  EXPECT_EQ(rounded(-1 - 0x1p-11f), -1 - 0x1p-10f);
  EXPECT_EQ(rounded(1 + 0x1p-11f - 0x1p-23f), 1.0f);
  EXPECT_EQ(rounded(2 - 0x1p-23f), 2.0f);
  EXPECT_EQ(rounded(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(rounded(NAN)));
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    const float f = std::bit_cast<float>(static_cast<unsigned>(random()));
    if (!std::isnormal(f)) continue;
    int exponent = 0;
    const double mantissa = std::frexp(static_cast<double>(f), &exponent);  // 0.5 to 1
    const double nearest = std::round(mantissa * 2048) / 2048;              // ties away from zero
    EXPECT_EQ(rounded(f), static_cast<float>(std::ldexp(nearest, exponent))) << f;
  }
}

}  // namespace
}  // namespace cputrain::emulated
