#include "backends/cpu/convolution/convolution_choice.h"

#include <gtest/gtest.h>

namespace cputrain::cpu::convolution_choice_test {
namespace {

TEST(Pieces, CoverEveryImageOnceWithTwoSizesAtMost) {
  for (int images = 1; images <= 70; ++images) {
    for (const std::size_t megabytes : {0, 1, 3, 100}) {
      const auto pieces = cut_into_pieces(images, (megabytes << 20) + 1000, 2);
      int next = 0;
      for (const Piece& piece : pieces) {
        EXPECT_EQ(piece.first, next);
        EXPECT_GE(piece.count, 1);
        EXPECT_LE(piece.count, pieces.front().count);
        EXPECT_GE(piece.count, pieces.front().count - 1);
        next += piece.count;
      }
      EXPECT_EQ(next, images);
    }
  }
}

TEST(Pieces, OneImageAThreadWhereMapsAreLarge) {
  EXPECT_EQ(cut_into_pieces(32, 100 << 20, 1).size(), 32u);
  EXPECT_EQ(cut_into_pieces(32, 100 << 20, 4).size(), 8u);
  EXPECT_EQ(cut_into_pieces(3, 100 << 20, 4).size(), 1u);
  EXPECT_EQ(cut_into_pieces(32, 1000, 1).size(), 1u);
}

TEST(Measuring, WantsAHundredMillionMultiplyAdds) {
  EXPECT_FALSE(worth_measuring(1e7, 9));
  EXPECT_TRUE(worth_measuring(1e7, 10));
}

TEST(FixedMethods, SkipZerosBehindPoolsAndElseAreNarrowWhereTheyMayBe) {
  using enum ConvolutionMethod;
  const auto forward = [](const std::vector<ConvolutionMethod>& possible, bool pooled) {
    return fixed_methods(possible, pooled, false)[Direction::forward];
  };
  EXPECT_EQ(forward({direct, winograd, bf16, sparse}, true), sparse);
  EXPECT_EQ(forward({direct, winograd, bf16, sparse}, false), bf16);
  EXPECT_EQ(forward({direct, winograd, sparse}, false), winograd);
  EXPECT_EQ(forward({direct, sparse}, false), direct);
}

TEST(FixedMethods, TakeWinogradForwardWhereItPoolsTiles) {
  using enum ConvolutionMethod;
  const ConvolutionMethods found = fixed_methods({direct, winograd, bf16, sparse}, true, true);
  EXPECT_EQ(found, (ConvolutionMethods{{winograd, sparse, sparse}}));
  EXPECT_EQ(fixed_methods({direct, sparse}, true, true),
            (ConvolutionMethods{{sparse, sparse, sparse}}));
}

TEST(FixedMethods, AreNarrowWhereZerosAreNotSkipped) {
  using enum ConvolutionMethod;
  EXPECT_EQ(fixed_methods({direct, winograd, bf16}, true, true),
            (ConvolutionMethods{{bf16, bf16, bf16}}));
}

TEST(FixedMethods, TakeTilesForAllWhereTheyAre) {
  using enum ConvolutionMethod;
  for (const bool pooled : {false, true}) {
    EXPECT_EQ(fixed_methods({direct, winograd, bf16, sparse, tiles}, pooled, pooled),
              (ConvolutionMethods{{tiles, tiles, tiles}}));
  }
}

TEST(MeasuresForward, NotWhereRoundingChoosesTheWinnersOfWindows) {
  using enum ConvolutionMethod;
  EXPECT_FALSE(measures_forward({direct, winograd, sparse}, true));
  EXPECT_FALSE(measures_forward({direct, sparse}, true));
  EXPECT_TRUE(measures_forward({direct, winograd, sparse}, false));
  EXPECT_FALSE(measures_forward({direct, winograd}, true));
  EXPECT_TRUE(measures_forward({direct, bf16, sparse}, true));
  EXPECT_TRUE(measures_forward({direct, sparse, tiles}, true));
}

ConvolutionProblem problem(int images, int size, int channels, int kernel = 3, int stride = 1) {
  const int dst = (size - kernel) / stride + 1;
  return {
      images, {{size, size, channels}, 16}, {{dst, dst, 64}, 16}, kernel, stride, {0, 0}, {0, 0},
      true};
}

TEST(WinogradPays, ForThreeByThreeOfStrideOneAndWholeBlocks) {
  const auto forward = [](const ConvolutionProblem& p) {
    return winograd_pays(p, Direction::forward);
  };
  EXPECT_TRUE(forward(problem(8, 62, 64)));
  EXPECT_FALSE(forward(problem(8, 62, 64, 5)));
  EXPECT_FALSE(forward(problem(8, 62, 64, 3, 2)));
  EXPECT_FALSE(forward(problem(8, 62, 3)));
  EXPECT_FALSE(forward(problem(8, 62, 40)));
}

/// 18 pixels without padding are 16 outputs, which are 4 x 4 tiles; 7 are 5, most of whose 2 x 2
/// tiles is thrown away.
TEST(WinogradPays, WhereTilesAreManyAndNearlyFull) {
  EXPECT_TRUE(winograd_pays(problem(1, 18, 64), Direction::forward));
  EXPECT_FALSE(winograd_pays(problem(1, 14, 64), Direction::forward));
  EXPECT_TRUE(winograd_pays(problem(1, 14, 64), Direction::backward_weights));
  EXPECT_TRUE(winograd_pays(problem(1, 14, 64), Direction::backward_data));
  EXPECT_TRUE(winograd_pays(problem(64, 8, 64), Direction::forward));
  EXPECT_FALSE(winograd_pays(problem(64, 7, 64), Direction::forward));
}

}  // namespace
}  // namespace cputrain::cpu::convolution_choice_test
