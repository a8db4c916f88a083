#include "backends/cpu/kernels/alive_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/kernels/dense_product.h"
#include "tests/backends/cpu/each_instruction_set.h"
#include "tests/backends/cpu/numbers.h"
#include "tests/backends/cpu/team.h"

/// Products that skip zeros, against plain loops in double, with every instruction set that this
/// machine has, on 1 to 3 threads.
namespace cputrain::cpu::alive_rows_test {
namespace {

using alive_rows::Sizes;

struct Problem {
  Problem(std::size_t images, std::size_t in, std::size_t out, float density)
      : sizes{images, in, out, in},
        x(numbers(images * in, density, 1)),
        weights(numbers(in * out, 1, 2)),
        diff_y(numbers(images * out, 1, 3)),
        y(numbers(images * out, 1, 4)),
        diff_x(numbers(images * in, 1, 5)),
        diff_weights(numbers(in * out, 1, 6)) {}

  Sizes sizes;
  std::vector<float> x, weights, diff_y;
  std::vector<float> y, diff_x, diff_weights;  ///< what is there before
};

struct Results {
  std::size_t alive;
  std::vector<float> y, diff_x, diff_weights;
  bool operator==(const Results&) const = default;
};

Results run(InstructionSet set, Problem p, bool add, int threads) {
  const Team team(threads);
  std::vector<std::uint64_t> masks(alive_rows::mask_count(p.sizes));
  std::vector<float> scratch(alive_rows::forward_scratch(p.sizes));
  const std::size_t alive = cpu::alive_rows::find_alive(set, p.sizes, p.x.data(), masks.data());
  cpu::alive_rows::forward(set, p.sizes, masks.data(), p.x.data(), p.weights.data(), scratch.data(),
                           p.y.data());
  cpu::alive_rows::backward_data(set, p.sizes, masks.data(), p.weights.data(), p.diff_y.data(), add,
                                 p.diff_x.data());
  cpu::alive_rows::backward_weights(set, p.sizes, masks.data(), p.x.data(), p.diff_y.data(), add,
                                    p.diff_weights.data());
  return {alive, p.y, p.diff_x, p.diff_weights};
}

void expect_right(const Problem& p, bool add, const Results& results, double tolerance = 3e-6) {
  const auto [images, in, out, row_x] = p.sizes;
  std::vector<double> y(p.y.begin(), p.y.end()), diff_x(images * in), diff_weights(in * out);
  if (add) diff_x.assign(p.diff_x.begin(), p.diff_x.end());
  if (add) diff_weights.assign(p.diff_weights.begin(), p.diff_weights.end());
  std::size_t alive = 0;
  for (std::size_t i = 0; i < images; ++i) {
    for (std::size_t r = 0; r < in; ++r) {
      const double x = p.x[i * in + r];
      alive += x != 0;
      double dot = 0;
      for (std::size_t c = 0; c < out; ++c) {
        const double weight = p.weights[r * out + c], diff = p.diff_y[i * out + c];
        y[i * out + c] += x * weight;
        diff_weights[r * out + c] += x * diff;
        dot += weight * diff;
      }
      if (x != 0) diff_x[i * in + r] += dot;
    }
  }
  EXPECT_EQ(results.alive, alive);
  EXPECT_LE(distance(results.y, y), tolerance);
  EXPECT_LE(distance(results.diff_x, diff_x), tolerance);
  EXPECT_LE(distance(results.diff_weights, diff_weights), tolerance);
}

class AliveRows : public EachInstructionSet {};

TEST_P(AliveRows, MultiplyLikePlainLoopsOnAnyNumberOfThreads) {
  for (const std::size_t images : {1, 2, 3, 5, 32}) {
    for (const float density : {0.0f, 0.05f, 0.5f, 1.0f}) {
      for (const bool add : {false, true}) {
        SCOPED_TRACE(::testing::Message() << images << " images, density " << density);
        // Rows and columns that fill neither the last block nor the last tile.
        const Problem problem(images, 1217, 160, density);
        const Results results = run(GetParam(), problem, add, 1);
        expect_right(problem, add, results);
        for (const int threads : {2, 3}) {
          EXPECT_TRUE(results == run(GetParam(), problem, add, threads)) << threads << " threads";
        }
      }
    }
  }
}

TEST_P(AliveRows, FewRowsAndColumns) {
  for (const std::size_t in : {1, 63, 64, 65}) {
    const Problem problem(3, in, 16, 0.5f);
    expect_right(problem, false, run(GetParam(), problem, false, 2));
  }
}

/// A rank that has some of a layer's inputs reads columns of x.
TEST_P(AliveRows, ImagesMayLieApart) {
  const Problem near(5, 300, 48, 0.3f);
  Problem apart = near;
  apart.sizes.row_x = 317;
  const auto spread = [&](const std::vector<float>& rows) {
    std::vector<float> result(5 * apart.sizes.row_x, 7);
    for (std::size_t i = 0; i < 5; ++i) {
      std::copy_n(rows.data() + i * 300, 300, result.data() + i * apart.sizes.row_x);
    }
    return result;
  };
  apart.x = spread(near.x);
  apart.diff_x = spread(near.diff_x);
  Results expected = run(GetParam(), near, true, 1);
  expected.diff_x = spread(expected.diff_x);  // and nothing between
  EXPECT_TRUE(expected == run(GetParam(), apart, true, 1));
}

/// Each alone in its image, so that no other number can hide a lost one.
TEST_P(AliveRows, NanIsAliveAndMinusZeroIsNot) {
  Problem problem(3, 100, 16, 0);
  problem.x[70] = std::numeric_limits<float>::quiet_NaN();
  problem.x[100 + 3] = -0.0f;
  problem.x[200 + 99] = std::numeric_limits<float>::denorm_min();
  const Results results = run(GetParam(), problem, false, 1);
  EXPECT_EQ(results.alive, 2u);
  EXPECT_TRUE(std::isnan(results.y[0]));
  EXPECT_TRUE(std::isnan(results.diff_weights[70 * 16]));
  EXPECT_NE(results.diff_x[70], 0);
  EXPECT_EQ(results.diff_x[100 + 3], 0);
  EXPECT_NE(results.diff_x[200 + 99], 0);
}

Results run_product(Problem p, bool add) {
  const Team team(1);
  const Sizes& s = p.sizes;
  DenseProduct product({s.in, s.out, s.images, s.row_x}, true);
  std::vector<std::byte> kept(product.kept_bytes()), for_forward(product.forward_bytes());
  product.use(kept.data(), for_forward.data());
  product.forward(s.images, p.x.data(), p.weights.data(), true, p.y.data());
  product.backward_data(s.images, p.diff_y.data(), p.weights.data(), add, p.diff_x.data());
  product.backward_weights(s.images, p.x.data(), p.diff_y.data(), add, p.diff_weights.data());
  const auto alive = s.images * s.in - static_cast<std::size_t>(std::ranges::count(p.x, 0.0f));
  return {alive, p.y, p.diff_x, p.diff_weights};
}

/// More images than go at a time; and small layers and dense images, for which it is a GEMM.
TEST(DenseProductTest, MultipliesLikePlainLoops) {
  for (const bool add : {false, true}) {
    for (const std::size_t images : {1, 33, 70}) {
      for (const float density : {0.05f, 1.0f}) {
        for (const std::size_t out : {32, 64, 65}) {
          const Problem problem(images, 16384, out, density);
          const Results results = run_product(problem, add);
          if (density == 1 || out == 64) expect_right(problem, add, results, 1e-5);  // long sums
          // A GEMM writes gradients of zeros, too.
          const bool skipped = results.diff_x[0] == (add ? problem.diff_x[0] : 0);
          EXPECT_EQ(skipped, problem.x[0] == 0 && out == 64);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllSets, AliveRows, all_instruction_sets(), name_of_set);

}  // namespace
}  // namespace cputrain::cpu::alive_rows_test
