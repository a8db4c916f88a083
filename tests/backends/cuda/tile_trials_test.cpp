// Tiles that are tried, and trainings that try them.
#include "backends/cuda/ops/tile_trials.h"

#include <gtest/gtest.h>

#include <functional>

#include "backends/cuda/backend.h"
#include "core/casts.h"
#include "emulated/counts.h"
#include "tests/backends/trial.h"

namespace cputrain::cuda {
namespace {

using Tiles = ByProduct<std::vector<TileShape>>;
const Tiles kSome{
    {{kTile64x64, kTile128x32, kTile128x64}, {kTile32x128}, {kTile128x64, kTile64x64}}};

/// Whose first times, before each tile has been used, say the opposite.
void note_all(TileTrials& trials, const std::function<double(const TileShape&)>& seconds) {
  for (int pass = 0; trials.trying(); ++pass) {
    ASSERT_LT(pass, 100);
    ByProduct<double> noted{};
    for (std::size_t i = 0; i < noted.size(); ++i) {
      noted[i] = pass < 2 ? 1e-9 : seconds(trials.tile(i));
    }
    trials.note(noted);
  }
}

TEST(TileTrials, UseEachTileInTurnAndThenTheQuickest) {
  TileTrials trials(kSome);
  std::vector<TileShape> used;
  for (int pass = 0; pass < 9; ++pass) {
    EXPECT_TRUE(trials.trying());
    EXPECT_EQ(trials.tile(1), kTile32x128);
    used.push_back(trials.tile(0));
    trials.note({pass < 3 ? 0.1 : trials.tile(0) == kTile128x32 ? 2.0 : 3.0, 0, 1});
  }
  EXPECT_EQ(used[0], kTile64x64);
  EXPECT_EQ(used[2], kTile128x64);
  EXPECT_EQ(used[4], kTile128x32);
  EXPECT_FALSE(trials.trying());
  EXPECT_FALSE(trials.agreed());
  EXPECT_EQ(trials.tile(0), kTile128x32);
  EXPECT_EQ(trials.tile(2), kTile128x64);  // as quick as the other one
  EXPECT_EQ(trials.methods(), "013");
}

TEST(TileTrials, KeepTheRulesTileOfWhatIsNotMade) {
  TileTrials trials(kSome);
  note_all(trials, [](const TileShape&) { return 0; });
  EXPECT_EQ(trials.tile(0), kTile64x64);
  EXPECT_EQ(trials.tile(2), kTile128x64);
}

TEST(TileTrials, BeginAnewOnlyWhileTheyLast) {
  TileTrials trials(kSome);
  for (int pass = 0; pass < 8; ++pass) trials.note({1, 1, 1});
  trials.try_again();
  EXPECT_EQ(trials.tile(0), kTile64x64);
  note_all(trials, [](const TileShape& tile) { return tile == kTile128x64 ? 1 : 2; });
  EXPECT_EQ(trials.tile(0), kTile128x64);
  trials.try_again();
  EXPECT_FALSE(trials.trying());
}

TEST(TileTrials, EndWithAWordOfTheirKind) {
  TileTrials trials(kSome);
  for (const char* word : {"", "01", "0133", "ddd", "dws", "016", "01/"}) {
    EXPECT_FALSE(trials.is_word(word)) << word;
  }
  ASSERT_TRUE(trials.is_word("142"));
  trials.use_methods("142");
  EXPECT_TRUE(trials.agreed());
  EXPECT_FALSE(trials.trying());
  EXPECT_EQ(trials.tile(0), kTile64x64);  // the other is none of its tiles
  EXPECT_EQ(trials.tile(1), kTile32x128);
  EXPECT_EQ(trials.tile(2), kTile64x64);
}

constexpr Shape kPictureOfTiles{9, 11, 3};

/// With a product that makes moments, and more that make none.
model::Graph network_of_products() {
  return testing::graph_of(kPictureOfTiles, model::Convolution{.filters = 40, .kernel = 3},
                           model::Relu{}, model::Convolution{.filters = 70, .kernel = 3},
                           model::BatchNorm{}, model::Relu{},
                           model::Convolution{.filters = 40, .kernel = 1}, model::Flatten{},
                           model::Dense{5}, model::SoftmaxCrossEntropy{});
}

/// Gradients of so many passes, after each of which ranks agree.
struct Training {
  std::vector<std::vector<std::vector<double>>> gradients;
  std::vector<std::uint64_t> graphs;
  int tried = 0;
};

Training train(Numbers numbers, bool measures) {
  const auto backend = make_device_backend({.numbers = numbers, .measures = measures});
  testing::Trial trial(*backend, network_of_products(), {4});
  compute::Tuner& tuner = trial.program().tuner();
  Training made;
  for (int pass = 0; pass < 24; ++pass) {
    const emulated::Counts before = emulated::counts();
    made.tried += tuner.trying();
    made.gradients.push_back(
        trial.train(testing::make_images(4, kPictureOfTiles, 5), {4}).gradients);
    made.graphs.push_back(difference(emulated::counts(), before).graphs);
    tuner.use_tuned_methods(tuner.take_tuned_methods());
  }
  return made;
}

TEST(TileTrials, ChangeNoBitAndAreNoGraphs) {
  for (const Numbers numbers : {Numbers::exact, Numbers::tf32, Numbers::bf16}) {
    const Training rule = train(numbers, false), tried = train(numbers, true);
    EXPECT_EQ(rule.tried, 0);
    EXPECT_GE(tried.tried, 6);
    EXPECT_LE(tried.tried, 19);
    EXPECT_EQ(tried.gradients, rule.gradients);
    for (int pass = 0; pass < tried.tried; ++pass) EXPECT_EQ(tried.graphs[to_size(pass)], 0u);
    EXPECT_GE(tried.graphs.back(), 1u);
  }
}

}  // namespace
}  // namespace cputrain::cuda
