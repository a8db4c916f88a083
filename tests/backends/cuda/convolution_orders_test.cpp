#include "emulated/settings.h"
#include "tests/backends/cuda/convolution_trial.h"

namespace cputrain::cuda {
namespace {

/// The orders that the emulated device can run threads and blocks in; the program's at the end.
class Orders {
 public:
  Orders() : before_(emulated::settings()) {}
  ~Orders() { emulated::restart(before_); }
  Orders(const Orders&) = delete;
  Orders& operator=(const Orders&) = delete;

  template <class Run>
  auto in(emulated::Order order, unsigned seed, const Run& run) const {
    emulated::Settings settings = before_;
    settings.order = order;
    settings.seed = seed;
    emulated::restart(settings);
    return run();
  }

  template <class Run>
  void expect_same_bits(const Run& run) const {
    const auto forward = in(emulated::Order::forward, 0, run);
    EXPECT_TRUE(same_bits(forward, in(emulated::Order::reverse, 0, run)));
    for (const unsigned seed : {1u, 2u}) {
      EXPECT_TRUE(same_bits(forward, in(emulated::Order::random, seed, run))) << "seed " << seed;
    }
  }

 private:
  emulated::Settings before_;
};

TEST(ConvolutionTrials, HaveTheBitsOfTheRuleByEveryTile) {
  for (const ConvolutionCase& c :
       {ConvolutionCase{3, 11, 13, 20, 40, 3, 1}, ConvolutionCase{1, 9, 8, 40, 136, 3, 2},
        ConvolutionCase{70, 1, 1, 520, 72, 1, 1}}) {
    for (const Numbers numbers : kAllNumbers) {
      SCOPED_TRACE(testing::PrintToString(c));
      const ConvolutionTrial trial(c, -1, numbers);
      const WindowShape& s = trial.shape();
      const ConvolutionPlan rule = plan_convolution(s, numbers, 132);
      const Floats dst = trial.forward(rule, kNaN), diff_src = trial.data(rule, kNaN);
      const auto gradients = trial.gradients(rule, kNaN);
      for (const TileShape& tile : kTiles) {
        ConvolutionPlan made = rule;
        for (const PlannedProduct& product : kPlannedProducts) {
          if (!may_take(s, rule, product, tile, numbers, false)) continue;
          made.*product.plan = plan_by_tile(product.extent(s), tile, (rule.*product.plan).slices);
        }
        EXPECT_TRUE(same_bits(dst, trial.forward(made, kNaN)));
        EXPECT_TRUE(same_bits(diff_src, trial.data(made, kNaN)));
        EXPECT_TRUE(same_bits(gradients, trial.gradients(made, kNaN)));
      }
    }
  }
}

TEST(ConvolutionOrders, SumsHaveTheSameBitsWhateverBlockIsFirst) {
  const Orders orders;
  for (const ConvolutionCase& c :
       {ConvolutionCase{3, 11, 13, 20, 40, 3, 1}, ConvolutionCase{1, 9, 8, 40, 136, 3, 2},
        ConvolutionCase{5, 1, 1, 1000, 72, 1, 1}}) {
    SCOPED_TRACE(testing::PrintToString(c));
    const ConvolutionTrial trial(c);
    orders.expect_same_bits([&] { return trial.forward(132, kNaN); });
    orders.expect_same_bits([&] { return trial.data(132, kNaN); });
    orders.expect_same_bits([&] { return trial.gradients(132, kNaN); });
  }
}

/// Two tiles of 256 rows, one of them in part; those of TF32 numbers write their tables anew.
TEST(ConvolutionOrders, SumsOf256RowsDoSo) {
  const Orders orders;
  for (const Numbers numbers : {Numbers::tf32, Numbers::bf16}) {
    const ConvolutionTrial trial({3, 13, 12, 64, 64, 3, 1}, -1, numbers);
    const ConvolutionPlan plan = plan_convolution(trial.shape(), numbers, 1);
    ASSERT_EQ(plan.forward.tile, kTile256x64);
    ASSERT_EQ(plan.data.tile, kTile256x64);
    orders.expect_same_bits([&] {
      Floats moments;
      const Floats dst = trial.forward(plan, kNaN, true, nullptr, &moments);
      return std::tuple(dst, moments);
    });
    orders.expect_same_bits([&] {
      Floats slopes;
      const Floats diff_src = trial.data(plan, kNaN, nullptr, &slopes);
      return std::tuple(diff_src, slopes);
    });
    orders.expect_same_bits([&] { return trial.gradients(plan, kNaN); });
  }
}

}  // namespace
}  // namespace cputrain::cuda
