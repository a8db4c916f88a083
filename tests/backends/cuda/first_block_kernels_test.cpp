#include "backends/cuda/kernels/products/first_block.h"

#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/moved_images.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

/// Sizes and numbers are others for each seed. Checked kernels, too, and in other orders.
TEST(FirstBlockKernels, AreLoopsInDouble) {
  for (const std::uint64_t seed : {1, 2}) {
    for (const compute::CasePlan& plan : first_block_plans(Numbers::bf16, seed, test_stream())) {
      const compute::SelftestCase made = compute::run_case(plan);
      EXPECT_TRUE(made.passed()) << made.name << ": " << made.wrong;
    }
  }
}

/// As max pools with a ReLU do.
TEST(FirstBlockKernels, KeepNaNWhichWinsNothing) {
  constexpr int kSide = 6, kChannels = 8, kNumbers = kSide / 2 * kSide / 2 * kChannels;
  const DeviceArray<std::uint8_t> bytes(std::vector<std::uint8_t>(kSide * kSide * 3, 1));
  const DeviceArray<compute::ImageMove> moves(mirrored(1, kSide, kSide));
  const DeviceArray<PassFacts> facts(
      std::vector<PassFacts>{{.bytes = bytes.data(), .moves = moves.data()}});
  const FirstBlock block{.load = {.images = 1,
                                  .height = kSide,
                                  .width = kSide,
                                  .scale = 1,
                                  .offset = 0,
                                  .facts = facts.data()},
                         .zeros = 1,
                         .dst = {kSide / 2, kSide / 2, kChannels}};
  // A tap of channel 2 is NaN, and the bias of channel 5.
  std::vector<float> weights(static_cast<std::size_t>(block.weights()), 1), bias(kChannels, 1);
  weights[2 * FirstBlock::kWeightsEach + 4 * kChannelBlock] = kNaN;
  bias[5] = kNaN;
  const DeviceMap w(Numbers::bf16, weights), dst = DeviceMap::poisoned(Numbers::bf16, kNumbers);
  const DeviceArray<float> b(bias);
  const auto winners = DeviceArray<WinnerWord>::poisoned(kNumbers / kWinnersOfWord);
  first_block_forward(test_stream().get(), block, 1, w.data(), b.data(), dst.data(),
                      winners.data());
  const auto values = dst.read();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool nan = i % kChannels == 2 || i % kChannels == 5;
    EXPECT_EQ(std::isnan(values[i]), nan) << i;
  }
  for (const WinnerWord word : winners.read()) {
    for (int number = 0; number < kWinnersOfWord; ++number) {
      const bool won =
          word & (winner(number, 0) | winner(number, 1) | winner(number, 2) | winner(number, 3));
      EXPECT_EQ(won, number != 2 && number != 5) << number;
    }
  }
}

}  // namespace
}  // namespace cputrain::cuda
