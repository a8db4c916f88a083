// Tiles against what tdpbf16ps was found to do on an Intel Xeon, written out one rounding at a
// time, and against sums in double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/amx/hardware_tiles.h"
#include "backends/cpu/amx/kernels.h"
#include "backends/cpu/limits.h"
#include "core/random/random.h"
#include "tests/backends/cpu/each_tiles.h"

namespace cputrain::cpu::amx::amx_tiles_test {
namespace {

using Bits = std::uint32_t;

float number(Bits bits) { return std::bit_cast<float>(bits); }
float widened(Bf16 factor) { return number(Bits{factor} << 16); }
Bits bits_of(float value) { return std::bit_cast<Bits>(value); }

/// Zero in place of a denormal number, with its sign.
float no_denormal(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

/// The one rounding of `exact`, a sum of numbers whose digits a double may not hold: `rounded` is
/// what a float instruction makes of it, and only ranges near zero need care. What rounding would
/// leave denormal if exponents had no end becomes zero.
float flushed(float rounded, double exact) {
  constexpr double kLeast = 0x1p-126 * (1 - 0x1p-25);
  if (std::isnan(rounded) || std::abs(exact) >= kLeast) return rounded;
  return std::copysign(0.0f, rounded == 0 ? rounded : static_cast<float>(exact));
}

float fused(float a, float b, float c) {
  a = no_denormal(a);
  b = no_denormal(b);
  c = no_denormal(c);
  return flushed(std::fma(a, b, c), double{a} * double{b} + double{c});
}

float added(float a, float b) {
  a = no_denormal(a);
  b = no_denormal(b);
  return flushed(a + b, double{a} + double{b});
}

/// One element of C.
float expected(const Bf16* a, const Bf16* b, int m, int n, float sum) {
  float even = 0, odd = 0;
  for (int k = 0; k < 16; ++k) {
    const Bf16* left = a + m * 32 + 2 * k;
    const Bf16* right = b + k * 32 + 2 * n;
    even = fused(widened(left[0]), widened(right[0]), even);
    odd = fused(widened(left[1]), widened(right[1]), odd);
  }
  return added(sum, added(even, odd));
}

/// What a trial's numbers are: exponents [first, first + count), of factors and of sums.
struct Range {
  std::string name;
  Bits first, count, first_sum, count_sum;
};

struct Operands {
  alignas(64) Bf16 a[kFactors], b[kFactors];
  alignas(64) float sums[kSums];
};

Operands draw(const Range& range, std::uint64_t seed) {
  const RandomStream random(seed, Purpose::noise);
  std::uint32_t next = 0;
  const auto bits = [&](Bits first, Bits count) {
    const auto drawn = random.at(next++);
    return (drawn[0] & 0x807fffff) | (first + drawn[1] % count) << 23;
  };
  Operands o;
  for (Bf16& x : o.a) x = static_cast<Bf16>(bits(range.first, range.count) >> 16);
  for (Bf16& x : o.b) x = static_cast<Bf16>(bits(range.first, range.count) >> 16);
  for (float& x : o.sums) x = number(bits(range.first_sum, range.count_sum));
  return o;
}

class AmxTiles : public EachTiles {
 protected:
  std::vector<float> multiply(const Operands& o) const {
    Operands made = o;
    GetParam().kernels().multiply_add_once(made.a, made.b, made.sums);
    return {made.sums, made.sums + kSums};
  }
  void expect_bits(const Operands& o, const std::string& what) const {
    const auto made = multiply(o);
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        const std::size_t i = static_cast<std::size_t>(m * 16 + n);
        const float wanted = expected(o.a, o.b, m, n, o.sums[i]);
        if (std::isnan(wanted)) {
          ASSERT_TRUE(std::isnan(made[i])) << what << ": row " << m << ", column " << n;
        } else {
          ASSERT_EQ(bits_of(made[i]), bits_of(wanted))
              << what << ": row " << m << ", column " << n << ": " << made[i] << ", not " << wanted;
        }
      }
    }
  }
};

/// Any bits are among them: infinite numbers, NaN, denormal ones.
TEST_P(AmxTiles, RoundAsTwoChainsOfFusedMultiplyAdds) {
  for (const Range& range :
       {Range{"near 1", 124, 5, 122, 8}, Range{"wide", 108, 40, 100, 50},
        Range{"products near underflow", 57, 20, 1, 8}, Range{"denormal", 0, 8, 0, 4},
        Range{"small times ordinary", 0, 3, 0, 3}, Range{"near overflow", 186, 8, 248, 7},
        Range{"any", 0, 256, 0, 256}}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) expect_bits(draw(range, seed), range.name);
  }
}

TEST_P(AmxTiles, SpecialNumbersAmongOrdinaryOnes) {
  constexpr Bf16 kSpecial[] = {0x7f80, 0xff80, 0x7fc0, 0x7f81, 0x0000, 0x8000, 0x0001, 0x8001};
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    Operands o = draw({"", 120, 8, 120, 8}, seed);
    for (std::size_t i = seed; i < kFactors; i += 61) o.a[i] = kSpecial[i % 8];
    for (std::size_t i = 7 * seed; i < kFactors; i += 97) o.b[i] = kSpecial[i / 8 % 8];
    expect_bits(o, "special numbers");
  }
}

/// Signs of zero: a sum that vanishes is +0, unless all of it is -0.
TEST_P(AmxTiles, SignsOfZero) {
  for (const Bf16 factor : {Bf16{0x0000}, Bf16{0x8000}, Bf16{0x0001}, Bf16{0x8001}}) {
    for (const float sum : {0.0f, -0.0f, number(1), number(0x80000001)}) {
      Operands o;
      std::fill_n(o.a, kFactors, factor);
      std::fill_n(o.b, kFactors, Bf16{0x3f80});
      std::fill_n(o.sums, kSums, sum);
      expect_bits(o, "zeros");
    }
  }
}

/// What is left of numbers that cancel, and what one product is.
TEST_P(AmxTiles, DenormalResultsAreZerosOfTheirSign) {
  Operands o;
  std::fill_n(o.a, kFactors, Bf16{0});
  std::fill_n(o.b, kFactors, Bf16{0x2000});  // 2^-63
  std::fill_n(o.sums, kSums, -0x1.8p-126f);
  o.a[0] = 0x2020;   // row 0: 1.25 2^-63
  o.a[32] = 0x2060;  // row 1: 1.75 2^-63
  o.a[64] = 0x2040;  // row 2: 1.5 2^-63
  const auto made = multiply(o);
  EXPECT_EQ(bits_of(made[0]), 0x80000000u);
  EXPECT_EQ(bits_of(made[16]), 0u);
  EXPECT_EQ(bits_of(made[32]), 0u);
  EXPECT_EQ(made[48], -0x1.8p-126f);
  expect_bits(o, "cancellation");
}

/// No chain passes more than 16 fused additions, then two of sums.
TEST_P(AmxTiles, SumsAreCloseToThoseInDouble) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Operands o = draw({"", 117, 12, 120, 10}, seed);
    const auto made = multiply(o);
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 16; ++n) {
        const std::size_t i = static_cast<std::size_t>(m * 16 + n);
        double sum = o.sums[i], size = std::abs(sum);
        for (int k = 0; k < 32; ++k) {
          const double term =
              double{widened(o.a[m * 32 + k])} * double{widened(o.b[k / 2 * 32 + 2 * n + k % 2])};
          sum += term;
          size += std::abs(term);
        }
        ASSERT_LE(std::abs(made[i] - sum), 18 * 0x1p-24 * size);
      }
    }
  }
}

/// One order of additions: C is rounded once, and even terms never meet odd ones before that.
TEST_P(AmxTiles, ChainsAreApart) {
  Operands o;
  std::fill_n(o.a, kFactors, Bf16{0});
  std::fill_n(o.b, kFactors, Bf16{0x3f80});
  std::fill_n(o.sums, kSums, -0x1p24f);
  // Row 0: 2^24 in the even chain, four ones in the odd one; they would vanish if added one by one
  // to 2^24, and are exact as 4.
  o.a[0] = 0x4b80;
  for (int k = 1; k < 9; k += 2) o.a[k] = 0x3f80;
  // Row 1: a one between two numbers that cancel each other, in one chain: it is lost.
  o.a[32] = 0x4c80;
  o.a[34] = 0x3f80;
  o.a[36] = 0xcc80;
  const auto made = multiply(o);
  EXPECT_EQ(made[0], 4);
  EXPECT_EQ(made[16], -0x1p24f);
}

/// Flags and rounding of the calling thread neither change what tiles compute nor are changed.
TEST_P(AmxTiles, LeaveTheThreadsRoundingAlone) {
  const Operands o = draw({"", 117, 12, 120, 10}, 1), tiny = draw({"", 0, 8, 0, 4}, 2);
  const unsigned before = __builtin_ia32_stmxcsr();
  const auto rounded = multiply(o), flushed = multiply(tiny);
  constexpr unsigned kRoundsUp = 0x4000, kFlushes = 0x8040;
  for (const unsigned mode : {before | kRoundsUp, before | kFlushes}) {
    __builtin_ia32_ldmxcsr(mode);
    const auto again = multiply(o), flushed_again = multiply(tiny);
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    EXPECT_EQ(after, mode);
    EXPECT_EQ(again, rounded);
    EXPECT_EQ(flushed_again, flushed);
  }
}

/// Emulated tiles have one, too: the limit that benchmarks print.
TEST_P(AmxTiles, HaveARate) {
  int meetings = 0;
  const compute::Together together{.processes = 1,
                                   .meet = [&] { ++meetings; },
                                   .slowest = [](double seconds) { return 2 * seconds; }};
  const double rate = measure_tiles(GetParam().kernels(), 1, together, 3);
  EXPECT_GT(rate, 0);
  EXPECT_LT(rate, 1e5);
  EXPECT_GT(meetings, 1);
}

/// Bytes 16 on have the bytes of each tile's row, two each, bytes 48 on its rows.
TEST(HardwareTiles, AreEightOfSixteenRowsOf64Bytes) {
  const TileConfiguration made = whole_tiles();
  std::uint8_t expected[64] = {1};
  for (int i = 0; i < 8; ++i) {
    expected[16 + 2 * i] = 64;
    expected[48 + i] = 16;
  }
  EXPECT_EQ(std::memcmp(&made, expected, sizeof expected), 0);
}

/// OneDNN may have tiles of its own on this thread.
TEST(HardwareTiles, LeaveWhatTheyFound) {
  if (!hardware_runs()) GTEST_SKIP() << "this CPU cannot run the tiles hardware";
  TileConfiguration own = whole_tiles(), found;
  const TileConfiguration none;
  own.rows[3] = 5;
  for (const bool configured : {true, false}) {
    if (configured) asm volatile("ldtilecfg %0" ::"m"(own) : "memory");
    { const HardwareTiles tiles; }
    asm volatile("sttilecfg %0" : "=m"(found)::"memory");
    asm volatile("tilerelease" ::: "memory");
    EXPECT_EQ(std::memcmp(&found, configured ? &own : &none, sizeof found), 0);
  }
}

/// What a machine lacks is not there.
TEST(AmxLimits, AreTheHardwares) {
  const compute::Limits limits = measure_machine(1, {});
  EXPECT_EQ(limits.tiles_gflops > 0, hardware_works());
  EXPECT_GT(limits.fma_gflops, 0);
  const compute::Limits tiles{.fma_gflops = 100, .triad_gbs = 10, .tiles_gflops = 2000};
  EXPECT_EQ(tiles.peak(Precision::bf16), 2000);
  EXPECT_EQ(tiles.peak(Precision::f32), 100);
  EXPECT_EQ(compute::Limits{.fma_gflops = 100}.peak(Precision::bf16), 100);
}

INSTANTIATE_TEST_SUITE_P(Tiles, AmxTiles, all_tiles(), name_of_tiles);

}  // namespace
}  // namespace cputrain::cpu::amx::amx_tiles_test
