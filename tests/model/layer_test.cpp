#include "model/layer.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::model {
namespace {

TEST(OutputShape, FollowsKerasFormulas) {
  const Shape image{256, 255, 3};
  EXPECT_EQ(output_shape(Convolution{32, 3}, image), (Shape{254, 253, 32}));
  EXPECT_EQ(output_shape(Convolution{8, 3, 2, Padding::same}, image), (Shape{128, 128, 8}));
  EXPECT_EQ(output_shape(Convolution{8, 7, 2, Padding::valid}, image), (Shape{125, 125, 8}));
  EXPECT_EQ(output_shape(MaxPool{2, 2}, {125, 4, 7}), (Shape{62, 2, 7}));  // odd sizes are floored
  EXPECT_EQ(output_shape(AveragePool{3, 2, Padding::same}, {5, 6, 1}), (Shape{3, 3, 1}));
  EXPECT_EQ(output_shape(GlobalAveragePool{}, {7, 5, 9}), (Shape{1, 1, 9}));
  EXPECT_EQ(output_shape(Flatten{}, {14, 14, 128}), (Shape{1, 1, 25088}));
  EXPECT_EQ(output_shape(Dense{512}, {1, 1, 25088}), (Shape{1, 1, 512}));
}

TEST(OutputShape, RefusesAWindowThatDoesNotFit) {
  const std::string text = testing::refused(ExitCode::usage, [&] {
    output_shape(Convolution{8, 3}, {2, 9, 3});
  });
  EXPECT_NE(text.find("3"), std::string::npos);
  EXPECT_NE(text.find("2"), std::string::npos);
}

TEST(OutputShape, FollowsPyTorchsFormulaWithHalfPadding) {
  const Shape image{224, 225, 3};
  EXPECT_EQ(output_shape(Convolution{64, 7, 2, Padding::half}, image), (Shape{112, 113, 64}));
  EXPECT_EQ(output_shape(MaxPool{3, 2, Padding::half}, {112, 113, 64}), (Shape{56, 57, 64}));
  EXPECT_EQ(output_shape(Convolution{8, 3, 1, Padding::half}, {1, 1, 3}), (Shape{1, 1, 8}));
  const PadAmount pad = pad_amount(Padding::half, 112, 7, 2);
  EXPECT_EQ(std::pair(pad.before, pad.after), std::pair(3, 3));
}

TEST(OutputShape, OfMapsThatAreJoined) {
  const std::vector<Shape> maps{{5, 6, 7}, {5, 6, 2}, {5, 6, 7}};
  EXPECT_EQ(output_shape(Concat{}, maps), (Shape{5, 6, 16}));
  const std::vector<Shape> other{{5, 6, 7}, {5, 5, 7}}, one{{5, 6, 7}};
  EXPECT_THROW(output_shape(Concat{}, other), Error);
  EXPECT_THROW(output_shape(Concat{}, one), Error);
  EXPECT_THROW(output_shape(Relu{}, maps), Error);
}

/// Channels that no kernel indexes: more than fit into a number.
TEST(OutputShape, RefusesMoreChannelsThanCanBeCounted) {
  const std::vector<Shape> maps(3, Shape{1, 1, 1'000'000'000});
  EXPECT_THROW(output_shape(Concat{}, maps), Error);
}

TEST(OutputShape, RefusesGroupsThatDivideNeitherSide) {
  const auto grouped = [](int filters, int groups) {
    return Convolution{.filters = filters, .kernel = 3, .groups = groups};
  };
  EXPECT_EQ(output_shape(grouped(8, 4), {9, 9, 12}), (Shape{7, 7, 8}));
  for (const auto& [filters, groups] : {std::pair(8, 5), {9, 4}, {8, 8}}) {
    const std::string text = testing::refused(ExitCode::usage, [&] {
      output_shape(grouped(filters, groups), {9, 9, 12});
    });
    EXPECT_NE(text.find("groups"), std::string::npos);
  }
}

// Keras' `same` puts the odd row of padding at the end.
TEST(PadAmount, PutsTheOddOneLast) {
  const auto same = [](int n, int kernel, int stride) {
    const PadAmount pad = pad_amount(Padding::same, n, kernel, stride);
    return std::pair(pad.before, pad.after);
  };
  EXPECT_EQ(same(5, 3, 1), std::pair(1, 1));
  EXPECT_EQ(same(6, 3, 2), std::pair(0, 1));
  EXPECT_EQ(same(7, 3, 2), std::pair(1, 1));
  EXPECT_EQ(same(4, 1, 2), std::pair(0, 0));
}

TEST(Parameters, HaveKerasExtentsAndDecayOnlyInKernels) {
  const auto convolution = parameters(Convolution{32, 3}, {256, 256, 3});
  ASSERT_EQ(convolution.size(), 2u);
  EXPECT_EQ(convolution[0].extents, (std::vector{3, 3, 3, 32}));
  EXPECT_TRUE(convolution[0].decays);
  EXPECT_EQ(convolution[1].extents, std::vector{32});
  EXPECT_FALSE(convolution[1].decays);
  EXPECT_EQ(parameters(Convolution{32, 3, 1, Padding::valid, false}, {8, 8, 3}).size(), 1u);
  const Convolution depthwise{.filters = 64, .kernel = 3, .groups = 32};
  EXPECT_EQ(parameters(depthwise, {8, 8, 32})[0].extents, (std::vector{3, 3, 1, 64}));
  EXPECT_EQ(parameters(Dense{5}, {2, 3, 4})[0].extents, (std::vector{24, 5}));
  EXPECT_TRUE(parameters(MaxPool{}, {4, 4, 4}).empty());
}

TEST(Macs, CountDirectConvolution) {
  EXPECT_EQ(macs(Convolution{64, 3}, {127, 127, 32}), 125.0 * 125 * 64 * 9 * 32);
  const Convolution depthwise{
      .filters = 32, .kernel = 3, .stride = 2, .padding = Padding::half, .groups = 32};
  EXPECT_EQ(macs(depthwise, {112, 112, 32}), 56.0 * 56 * 32 * 9);
  EXPECT_EQ(macs(Dense{512}, {1, 1, 25088}), 25088.0 * 512);
  EXPECT_EQ(macs(Relu{}, {9, 9, 9}), 0);
}

}  // namespace
}  // namespace cputrain::model
