// Parts of compression that need no ranks, against the compiler's own 16-bit types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "exchange/compression/compression.h"
#include "exchange/compression/largest.h"
#include "exchange/compression/sixteen_bits.h"

namespace cputrain::exchange {
namespace {

#ifdef __FLT16_MAX__
/// All 65536, there and back.
TEST(SixteenBits, Fp16HasTheCompilersValues) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(bits));
    const float value = from_fp16(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_TRUE(std::isnan(from_fp16(to_fp16(value)))) << i;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << i;
    ASSERT_EQ(to_fp16(value), bits);
  }
}

/// Floats of every exponent, with fractions at and beside every place where rounding changes.
TEST(SixteenBits, Fp16RoundsAsTheCompiler) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u,
                                      0x7fffu, 0x8000u, 0x9000u, 0xf000u, 0xffffu}) {
      const auto value = std::bit_cast<float>(upper << 16 | lower);
      if (std::isnan(value)) continue;
      const auto expected = std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
      ASSERT_EQ(to_fp16(value), expected) << value;
    }
  }
}
#endif

/// The nearest of all bfloat16, found by comparing distances in double; between two the even one.
TEST(SixteenBits, Bf16IsTheNearest) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    const auto below = static_cast<std::uint16_t>(upper);
    const float low = from_bf16(below);
    if (!std::isfinite(low)) {
      const bool nan = std::isnan(low);
      EXPECT_EQ(std::isnan(from_bf16(to_bf16(low))), nan);
      EXPECT_TRUE(nan || to_bf16(low) == below);
      continue;
    }
    const auto above = static_cast<std::uint16_t>(upper + 1);  // away from zero
    // Beyond the largest the next one would be 2^128.
    const double high = std::isfinite(from_bf16(above))
                            ? static_cast<double>(from_bf16(above))
                            : std::copysign(0x1p128, static_cast<double>(low));
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const auto value = std::bit_cast<float>(upper << 16 | lower);
      const double down = std::abs(static_cast<double>(value) - static_cast<double>(low));
      const double up = std::abs(high - static_cast<double>(value));
      const std::uint16_t even = upper % 2 == 0 ? below : above;
      ASSERT_EQ(to_bf16(value), down < up ? below : down > up ? above : even) << value;
    }
  }
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

/// Against a stable sort.
TEST(Largest, AreTheFirstOfASortedList) {
  std::vector<float> values(3001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int mixed = static_cast<int>(i * 7919 % 2003) - 1001;
    values[i] = i % 5 == 0 ? 0.25f : std::ldexp(static_cast<float>(mixed), -(mixed % 37));
  }
  values[17] = std::numeric_limits<float>::quiet_NaN();
  values[18] = -std::numeric_limits<float>::infinity();
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto size = [&](std::uint32_t i) {
    return std::isnan(values[i]) ? std::numeric_limits<double>::infinity()
                                 : std::min(1e300, std::abs(static_cast<double>(values[i])));
  };
  std::ranges::stable_sort(order, [&](auto a, auto b) { return size(a) > size(b); });
  Largest largest;
  for (std::size_t count = 0; count <= values.size(); count += count < 20 ? 1 : 213) {
    std::vector<std::uint32_t> expected(order.begin(),
                                        order.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::sort(expected);
    const auto found = largest.find(std::span<const float>(values), count);
    ASSERT_EQ(std::vector<std::uint32_t>(found.begin(), found.end()), expected) << count;
  }
}

std::string error_of(const std::string& text) {
  try {
    parse_compression(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Compression, IsReadAndWritten) {
  for (const char* text : {"none", "fp16", "bf16", "topk:0.01", "topk:1", "powersgd:4"}) {
    EXPECT_EQ(to_text(parse_compression(text)), text);
  }
  EXPECT_EQ(to_text(parse_compression("topk")), "topk:0.01");
  EXPECT_EQ(to_text(parse_compression("powersgd")), "powersgd:4");
  for (const char* text : {"zip", "", "topk:", "topk:0", "topk:1.1", "topk:nan", "topk:-1",
                           "topk:0.1x", "powersgd:0", "powersgd:65", "powersgd:2.5", "fp16:2"}) {
    EXPECT_NE(error_of(text).find("--compress " + std::string(text)), std::string::npos) << text;
  }
}

TEST(Compression, HasNothingToDoWhereNothingIsSent) {
  const auto error = [](const std::string& compress, const std::string& allreduce) -> std::string {
    try {
      check_compression(parse_compression(compress), comm::parse_allreduce(allreduce));
    } catch (const Error& wrong) {
      EXPECT_EQ(wrong.code(), ExitCode::usage);
      return wrong.what();
    }
    return "";
  };
  for (const std::string allreduce : {"shm", "ps"}) {
    const std::string text = error("bf16", allreduce);
    EXPECT_NE(text.find("--compress bf16"), std::string::npos) << text;
    EXPECT_NE(text.find("--allreduce " + allreduce), std::string::npos) << text;
    EXPECT_EQ(error("none", allreduce), "");
  }
  for (const char* allreduce : {"auto", "ring", "mpi", "hierarchical"}) {
    EXPECT_EQ(error("topk", allreduce), "");
  }
}

}  // namespace
}  // namespace cputrain::exchange
