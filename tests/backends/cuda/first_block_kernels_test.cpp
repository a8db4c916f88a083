#include "backends/cuda/kernels/products/first_block.h"

#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/moved_images.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

/// Sizes and numbers are others for each seed. Checked kernels, too, and in other orders.
class FirstBlockKernels : public ::testing::TestWithParam<Numbers> {};
INSTANTIATE_TEST_SUITE_P(Numbers, FirstBlockKernels, ::testing::ValuesIn(kAllNumbers),
                         [](const auto& test) { return std::string(word_of(test.param)); });

TEST_P(FirstBlockKernels, AreLoopsInDouble) {
  for (const std::uint64_t seed : {1, 2}) {
    for (const compute::CasePlan& plan : first_block_plans(GetParam(), seed, test_stream())) {
      const compute::SelftestCase made = compute::run_case(plan);
      EXPECT_TRUE(made.passed()) << made.name << ": " << made.wrong;
    }
  }
}

/// As max pools with a ReLU do.
TEST_P(FirstBlockKernels, KeepNaNWhichWinsNothing) {
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
  const DeviceMap w(GetParam(), weights), dst = DeviceMap::poisoned(GetParam(), kNumbers);
  const DeviceArray<float> b(bias);
  const auto winners = DeviceArray<WinnerWord>::poisoned(kNumbers / kWinnersOfWord);
  first_block_forward(test_stream().get(), GetParam(), block, 1, w.data(), b.data(), dst.data(),
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

/// What the kernel makes of images `first` to `end` of noise, by so many slices.
std::tuple<std::vector<float>, std::vector<WinnerWord>> forward_of(Numbers numbers, int first,
                                                                   int end, int slices) {
  constexpr int kImages = 3, kSide = 22, kChannels = 40, kOutputs = kSide / 2 * kSide / 2;
  compute::CaseNumbers noise(5, "first block");
  const DeviceArray<std::uint8_t> bytes(noise.bytes(kImages * kSide * kSide * 3));
  const DeviceArray<compute::ImageMove> moves(mirrored(kImages, kSide, kSide));
  const DeviceArray<PassFacts> facts(
      std::vector<PassFacts>{{.bytes = bytes.data(), .moves = moves.data() + first}});
  const FirstBlock block{
      .load = {end - first, kSide, kSide, PerColour{1.0f / 99}, PerColour{-1.3f}, facts.data()},
      .zeros = 1,
      .dst = {kSide / 2, kSide / 2, kChannels}};
  const DeviceMap weights(numbers, noise.reals(static_cast<std::size_t>(block.weights())));
  const auto count = static_cast<std::size_t>(block.load.images * kOutputs * kChannels);
  const DeviceMap dst = DeviceMap::poisoned(numbers, count);
  const auto winners = DeviceArray<WinnerWord>::poisoned(count / kWinnersOfWord);
  first_block_forward(test_stream().get(), numbers, block, slices, weights.data(), nullptr,
                      dst.data(), winners.data());
  return {dst.read(), winners.read()};
}

TEST_P(FirstBlockKernels, HaveTheSameBitsInAnyBatchAndSlices) {
  const auto all = forward_of(GetParam(), 0, 3, 1);
  EXPECT_TRUE(same_bits(forward_of(GetParam(), 0, 3, 7), all));
  auto parts = forward_of(GetParam(), 0, 2, 5);
  const auto last = forward_of(GetParam(), 2, 3, 2);
  const auto append = [](auto& to, const auto& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  append(std::get<0>(parts), std::get<0>(last));
  append(std::get<1>(parts), std::get<1>(last));
  EXPECT_TRUE(same_bits(parts, all));
}

}  // namespace
}  // namespace cputrain::cuda
