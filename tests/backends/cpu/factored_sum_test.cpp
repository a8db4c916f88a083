#include "backends/cpu/kernels/factored_sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/backends/cpu/numbers.h"
#include "tests/backends/cpu/team.h"

/// Sums of products against plain loops in double, with every instruction set that this machine
/// has, on 1 to 3 threads and from parts that begin and end inside rows.
namespace cputrain::cpu::factored_sum_test {
namespace {

struct Problem {
  compute::Factors factors;
  std::vector<std::vector<float>> chunks;

  Problem(const compute::Factors& f, std::size_t count, float density) : factors(f) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::vector<float> chunk = numbers(f.rows * f.images, density, 2 * i);
      const std::vector<float> diff_y = numbers(f.images * f.columns, 1, 2 * i + 1);
      chunk.insert(chunk.end(), diff_y.begin(), diff_y.end());
      chunks.push_back(std::move(chunk));
    }
  }

  std::vector<Array> arrays() {
    std::vector<Array> arrays;
    for (auto& chunk : chunks) arrays.push_back(Array::of<float>(chunk));
    return arrays;
  }

  std::vector<double> expected(const std::vector<float>& before) const {
    std::vector<double> sum(before.begin(), before.end());
    for (const auto& chunk : chunks) {
      for (std::size_t i = 0; i < sum.size(); ++i) {
        const std::size_t row = i / factors.columns, column = i % factors.columns;
        for (std::size_t image = 0; image < factors.images; ++image) {
          sum[i] += static_cast<double>(chunk[row * factors.images + image]) *
                    chunk[factors.rows * factors.images + image * factors.columns + column];
        }
      }
    }
    return sum;
  }
};

TEST(FactoredSum, AgreesWithPlainLoops) {
  for (const compute::Factors& factors :
       {compute::Factors{8, 130, 512}, compute::Factors{1, 7, 16}, compute::Factors{5, 65, 144}}) {
    for (const float density : {0.0f, 0.1f, 1.0f}) {
      Problem problem(factors, 3, density);
      const std::vector<float> before = numbers(factors.rows * factors.columns, 1, 99);
      const std::vector<double> expected = problem.expected(before);
      for (const InstructionSet set :
           {InstructionSet::plain, InstructionSet::avx2, InstructionSet::avx512}) {
        if (!supports(set)) continue;
        std::vector<float> first;
        for (const int threads : {1, 2, 3}) {
          const Team team(threads);
          std::vector<float> sum = before;
          const std::size_t cut = sum.size() / static_cast<std::size_t>(threads + 1) / 16 * 16;
          for (const Range part : {Range{0, cut}, Range{cut, sum.size()}}) {
            add_products_in_parallel(set, factors, problem.arrays(), part,
                                     Array::of<float>(sum).slice(part.begin, part.end));
          }
          for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], expected[i], 1e-5);
          if (first.empty()) first = sum;
          ASSERT_EQ(sum, first);
        }
      }
    }
  }
}

TEST(FactoredSum, TransposesWithZerosForImagesThatAreNotThere) {
  const compute::Factors factors{4, 3, 16};
  const std::vector<float> x{1, 2, 3, 99, 4, 5, 6, 99};  // two images, a gap behind each
  std::vector<float> transposed(12, 7);
  transpose_for_factors(factors, x.data(), 4, 2, transposed.data());
  EXPECT_EQ(transposed, (std::vector<float>{1, 4, 0, 0, 2, 5, 0, 0, 3, 6, 0, 0}));
}

}  // namespace
}  // namespace cputrain::cpu::factored_sum_test
