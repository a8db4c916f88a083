#include <gtest/gtest.h>

#include <vector>

#include "exchange/exchange.h"

namespace cputrain::exchange {
namespace {

/// Three parameters in model order; in the arena the last lies first: [0,10) pad [16,17) pad
/// [32,132) pad to 144.
compute::ParameterLayout three(DType dtype) {
  return {{{"a", {100}, 100, {32, 132}, true, true, false, 0},
           {"b", {1}, 1, {16, 17}, false, true, false, 0},
           {"c", {10}, 10, {0, 10}, true, true, false, 0}},
          144,
          144,
          dtype};
}

using Ends = std::vector<std::size_t>;

TEST(BucketEnds, AreParameterEndsInArenaOrder) {
  EXPECT_EQ(bucket_ends(three(DType::f32), 0), (Ends{10, 17, 132, 144}));
}

TEST(BucketEnds, BucketsHoldAtLeastTheBytes) {
  EXPECT_EQ(bucket_ends(three(DType::f32), 40), (Ends{10, 132, 144}));
  EXPECT_EQ(bucket_ends(three(DType::f32), 41), (Ends{17, 132, 144}));
  EXPECT_EQ(bucket_ends(three(DType::f32), 17 * 4 + 1), (Ends{132, 144}));
}

TEST(BucketEnds, CountBytesOfTheType) {
  EXPECT_EQ(bucket_ends(three(DType::f64), 80), (Ends{10, 132, 144}));
  EXPECT_EQ(bucket_ends(three(DType::f64), 81), (Ends{17, 132, 144}));
}

TEST(BucketEnds, OneBucketWhereTheArenaIsSmaller) {
  EXPECT_EQ(bucket_ends(three(DType::f32), 1u << 20), (Ends{144}));
}

TEST(BucketEnds, NoneForAnEmptyArena) { EXPECT_EQ(bucket_ends({}, 100), Ends{}); }

}  // namespace
}  // namespace cputrain::exchange
