#include "backends/cuda/kernels/products/gemm_fragments.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace cputrain::cuda {
namespace {

constexpr unsigned kBelowTf32 = 0x1fff;  ///< the bits of a float that TF32 does not have

float big_of(float value) {
  return std::bit_cast<float>(Tf32Halves::of(std::bit_cast<unsigned>(value)).big);
}
float small_of(float value) {
  return std::bit_cast<float>(Tf32Halves::of(std::bit_cast<unsigned>(value)).small);
}
float cut(float value) {
  return std::bit_cast<float>(std::bit_cast<unsigned>(value) & ~kBelowTf32);
}
/// To 11 bits, by arithmetic of doubles.
float rounded(float value) {
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(value), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(mantissa * 2048) / 2048, exponent));
}

TEST(Tf32Halves, AddUpToTheNumberAndTheLargerFitsTf32) {
  std::mt19937 random(5);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<unsigned>(random());
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(std::bit_cast<unsigned>(big_of(value)) & kBelowTf32, 0u) << value;
    EXPECT_EQ(static_cast<double>(big_of(value)) + small_of(value), value);
    EXPECT_LE(std::fabs(small_of(value)), std::fabs(value));
    if (std::isnormal(value)) {
      EXPECT_LT(std::fabs(small_of(value)), std::ldexp(1.0, std::ilogb(value) - 10)) << value;
    }
  }
}

TEST(Tf32Halves, OfWhatTf32HoldsHaveNothingSmall) {
  for (const float value : {0.0f, 1.0f, -3.0f, 1 + 0x1p-10f, 0x1.ffcp127f, 255.0f}) {
    EXPECT_EQ(big_of(value), value);
    EXPECT_EQ(small_of(value), 0.0f);
  }
}

TEST(Tf32Halves, OfInfinityAndNaNAreNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(small_of(kInfinity)));
  EXPECT_TRUE(std::isnan(small_of(-kInfinity)));
  // TF32 has only the bits of an infinity of this one.
  EXPECT_TRUE(std::isnan(small_of(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(std::isnan(small_of(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isfinite(big_of(std::numeric_limits<float>::max())));
}

/// What three products of halves lose, where all sums are exact.
template <class Unit>
double lost(float low, int depth, const Unit& operand) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(low, 1);
  double errors = 0, sums = 0;
  for (int trial = 0; trial < 200; ++trial) {
    double sum = 0, error = 0;
    for (int k = 0; k < depth; ++k) {
      const float a = numbers(random), b = numbers(random);
      const double big_a = operand(big_of(a)), small_a = operand(small_of(a));
      const double big_b = operand(big_of(b)), small_b = operand(small_of(b));
      const double product = static_cast<double>(a) * b;
      error += small_a * big_b + big_a * small_b + big_a * big_b - product;
      sum += product;
    }
    errors += error * error;
    sums += sum * sum;
  }
  return std::sqrt(errors / sums);
}

/// Whether tensor cores cut off the bits that TF32 lacks or round them.
TEST(Tf32Halves, LoseFewBitsOnEveryKindOfUnit) {
  for (const float low : {-1.0f, 0.0f}) {
    for (const int depth : {72, 1152}) {
      EXPECT_LT(lost(low, depth, cut), 5e-7) << low << ", " << depth;
      EXPECT_LT(lost(low, depth, rounded), 5e-7) << low << ", " << depth;
      EXPECT_GT(lost(low, depth, cut), 1e-8);  // three products are not four
    }
  }
}

}  // namespace
}  // namespace cputrain::cuda
