#include "model/layer.h"

#include <gtest/gtest.h>

#include "core/error.h"

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
  try {
    output_shape(Convolution{8, 3}, {2, 9, 3});
    FAIL() << "a 3x3 window on 2 rows";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("3"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("2"), std::string::npos);
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
  EXPECT_EQ(parameters(Dense{5}, {2, 3, 4})[0].extents, (std::vector{24, 5}));
  EXPECT_TRUE(parameters(MaxPool{}, {4, 4, 4}).empty());
}

TEST(Macs, CountDirectConvolution) {
  EXPECT_EQ(macs(Convolution{64, 3}, {127, 127, 32}), 125.0 * 125 * 64 * 9 * 32);
  EXPECT_EQ(macs(Dense{512}, {1, 1, 25088}), 25088.0 * 512);
  EXPECT_EQ(macs(Relu{}, {9, 9, 9}), 0);
}

}  // namespace
}  // namespace cputrain::model
