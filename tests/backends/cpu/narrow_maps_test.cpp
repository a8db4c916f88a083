// Maps of 16 bits: the loops that read and write them, and what a program with them keeps and
// computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/kernels/batch_norm_kernels.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/reference/reference_backend.h"
#include "core/random/random.h"
#include "tests/backends/cpu/numbers.h"
#include "tests/backends/trial.h"

namespace cputrain::cpu::narrow_maps_test {
namespace {

using Map = std::vector<Bf16>;

/// The nearest number of 8 bits, ties to even, by arithmetic in double.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double step =
      std::ldexp(1.0, std::max(exponent - 8, -133));  // denormal ones are 2^-133 apart
  return std::nearbyint(value / step) * step;
}

double value_of(Bf16 number) { return static_cast<double>(kernels::to_float(number)); }

Map random_map(std::size_t count, std::uint64_t seed) {
  Map map(count);
  kernels::convert(random_numbers(count, seed).data(), map.data(), count);
  return map;
}

/// `number` is `exact`, computed in float and rounded: half a place off, and what sums in float
/// are.
void expect_rounded(Bf16 number, double exact, double sums) {
  EXPECT_NEAR(value_of(number), exact, std::abs(exact) * 0x1p-8 + sums);
}

/// Floats of any bits, those halfway between two numbers, and the ends of the range.
TEST(NarrowMaps, RoundToTheNearest) {
  const RandomStream random(1, Purpose::noise);
  std::vector<float> floats{0.0f,
                            -0.0f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max(),
                            0x1.01p0f,
                            0x1.03p0f,
                            -0x1.01p-130f};
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const std::uint32_t bits = random.at(i)[0];
    for (const std::uint32_t some : {bits, (bits & 0xffff0000U) | 0x8000U}) {
      if (!std::isnan(std::bit_cast<float>(some))) floats.push_back(std::bit_cast<float>(some));
    }
  }
  Map map(floats.size());
  kernels::convert(floats.data(), map.data(), map.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    const double nearest = rounded(static_cast<double>(floats[i]));
    const bool overflows = std::abs(nearest) >= 0x1p128;
    const double expected =
        overflows ? std::copysign(std::numeric_limits<double>::infinity(), nearest) : nearest;
    EXPECT_EQ(value_of(map[i]), expected) << floats[i];
    EXPECT_EQ(std::signbit(value_of(map[i])), std::signbit(floats[i])) << floats[i];
  }
}

/// Also those whose payload lies in the bits that are cut off, and would round to infinity or 0.
TEST(NarrowMaps, KeepNan) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xffc00000U, 0xffffffffU}) {
    const std::vector<float> floats(16, std::bit_cast<float>(bits));
    Map map(16), normalized(16);
    kernels::convert(floats.data(), map.data(), 16);
    const std::vector<float> ones(16, 1.0f), zeros(16);
    kernels::normalize(16, true, map.data(), ones.data(), zeros.data(), 1, normalized.data());
    kernels::rectify(model::Relu{}, map.data(), 16);
    for (int i = 0; i < 16; ++i) {
      EXPECT_TRUE(std::isnan(value_of(map[i]))) << std::hex << bits;
      EXPECT_TRUE(std::isnan(value_of(normalized[i]))) << std::hex << bits;
    }
  }
}

/// Counts that no vector divides, too.
TEST(NarrowMaps, AreAddedAndCutAsFloatsAre) {
  for (const std::size_t n : {1u, 15u, 16u, 33u, 1000u}) {
    const Map a = random_map(n, 2), b = random_map(n, 3);
    const std::vector<float> f = random_numbers(n, 4);
    std::vector<std::uint8_t> kept(n);
    for (std::size_t i = 0; i < n; ++i) kept[i] = i % 3 == 0;
    Map sum(n), added = b, added_float = b, cut = a, diff = b, dropped = a;
    kernels::sum(a.data(), b.data(), sum.data(), n);
    kernels::add(a.data(), added.data(), n);
    kernels::add(f.data(), added_float.data(), n);
    kernels::rectify(model::Relu{}, cut.data(), n);
    kernels::rectify_backward(model::Relu{}, a.data(), diff.data(), n);
    kernels::keep(kept.data(), 1.25f, dropped.data(), n);
    std::vector<float> wide(n);
    kernels::convert(a.data(), wide.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = value_of(a[i]), y = value_of(b[i]);
      EXPECT_EQ(value_of(sum[i]), rounded(x + y));
      EXPECT_EQ(value_of(added[i]), rounded(x + y));
      expect_rounded(added_float[i], static_cast<double>(f[i]) + y, 0x1p-23);
      EXPECT_EQ(value_of(cut[i]), std::max(x, 0.0));
      EXPECT_EQ(value_of(diff[i]), x > 0 ? y : 0);
      EXPECT_EQ(value_of(dropped[i]), kept[i] ? rounded(1.25 * x) : 0);
      EXPECT_EQ(static_cast<double>(wide[i]), x);
    }
  }
}

/// The loops of batch normalization beside sums in double over the same numbers.
class NarrowBatchNorm : public ::testing::TestWithParam<std::size_t> {
 protected:
  static constexpr int kBlock = 16;
  static constexpr double kSums = 1e-5;
  double src(std::size_t pixel, int lane) const { return value_of(src_[pixel * kBlock + lane]); }
  /// The gradient that passes the ReLU.
  double diff(std::size_t pixel, int lane) const {
    const bool alive = static_cast<float>(src(pixel, lane)) * scale_[lane] + shift_[lane] > 0;
    return alive ? value_of(diff_[pixel * kBlock + lane]) : 0;
  }

  const std::size_t pixels_ = GetParam();
  const Map src_ = random_map(pixels_ * kBlock, 5), diff_ = random_map(pixels_ * kBlock, 6);
  const std::vector<float> scale_ = random_numbers(kBlock, 7), shift_ = random_numbers(kBlock, 8),
                           mean_ = random_numbers(kBlock, 9), slope_ = random_numbers(kBlock, 10),
                           offset_ = random_numbers(kBlock, 11);
  const kernels::Normalization known_{true, scale_.data(), shift_.data(), mean_.data()};
};

TEST_P(NarrowBatchNorm, Measures) {
  std::vector<double> mean(kBlock), squares(kBlock);
  kernels::add_moments(kBlock, src_.data(), pixels_, 0, mean.data(), squares.data());
  for (int lane = 0; lane < kBlock; ++lane) {
    double sum = 0, spread = 0;
    for (std::size_t i = 0; i < pixels_; ++i) sum += src(i, lane);
    const double centre = sum / static_cast<double>(pixels_);
    for (std::size_t i = 0; i < pixels_; ++i) spread += std::pow(src(i, lane) - centre, 2);
    EXPECT_NEAR(mean[lane], centre, kSums);
    EXPECT_NEAR(squares[lane], spread, kSums * static_cast<double>(pixels_));
  }
}

TEST_P(NarrowBatchNorm, Normalizes) {
  Map dst(src_.size());
  kernels::normalize(kBlock, true, src_.data(), scale_.data(), shift_.data(), pixels_, dst.data());
  for (std::size_t i = 0; i < dst.size(); ++i) {
    const double exact = value_of(src_[i]) * static_cast<double>(scale_[i % kBlock]) +
                         static_cast<double>(shift_[i % kBlock]);
    expect_rounded(dst[i], std::max(exact, 0.0), 0x1p-23);
  }
}

TEST_P(NarrowBatchNorm, AddsSlopes) {
  std::vector<double> sums(kBlock), products(kBlock);
  kernels::add_slopes(kBlock, known_, src_.data(), diff_.data(), pixels_, sums.data(),
                      products.data());
  for (int lane = 0; lane < kBlock; ++lane) {
    double sum = 0, product = 0;
    for (std::size_t i = 0; i < pixels_; ++i) {
      sum += diff(i, lane);
      product += diff(i, lane) * (src(i, lane) - static_cast<double>(mean_[lane]));
    }
    EXPECT_NEAR(sums[lane], sum, kSums * static_cast<double>(pixels_));
    EXPECT_NEAR(products[lane], product, kSums * static_cast<double>(pixels_));
  }
}

TEST_P(NarrowBatchNorm, PassesGradientsOn) {
  for (const bool adds : {false, true}) {
    const Map before = random_map(src_.size(), 12);
    Map to = before;
    kernels::normalize_backward(kBlock, known_, src_.data(), diff_.data(), slope_.data(),
                                offset_.data(), pixels_, adds, to.data());
    for (std::size_t i = 0; i < to.size(); ++i) {
      const int lane = static_cast<int>(i % kBlock);
      const double own = static_cast<double>(scale_[lane]) * diff(i / kBlock, lane) +
                         static_cast<double>(slope_[lane]) *
                             (src(i / kBlock, lane) - static_cast<double>(mean_[lane])) +
                         static_cast<double>(offset_[lane]);
      expect_rounded(to[i], own + (adds ? value_of(before[i]) : 0), 0x1p-21);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pixels, NarrowBatchNorm, ::testing::Values(1, 7, 64, 65, 1000));

// ---- programs ----

constexpr Shape kImage{33, 30, 3};
constexpr int kClasses = 3, kImages = 7;

struct Wish {
  bool normalizes, kinks;
};

/// A bottleneck block of ResNet50V2 behind a stem, with or without normalization, ReLUs and a max
/// pool; channels that no block divides. Its dense layer reads a map that is not flat.
model::Graph residual(const Wish& wish) {
  model::Graph graph(kImage);
  const auto finish = [&] {
    if (wish.normalizes) graph.add(model::BatchNorm{});
    if (wish.kinks) graph.add(model::Relu{});
  };
  const auto convolution = [&](int filters, int kernel, int stride = 1) {
    return graph.add(model::Convolution{.filters = filters,
                                        .kernel = kernel,
                                        .stride = stride,
                                        .padding = model::Padding::same,
                                        .bias = !wish.normalizes});
  };
  convolution(48, 3, 2);
  finish();
  const int trunk = wish.kinks ? graph.add(model::MaxPool{3, 2, model::Padding::same})
                               : graph.add(model::AveragePool{3, 2, model::Padding::same});
  convolution(16, 1);
  finish();
  convolution(21, 3);
  finish();
  const int branch = convolution(48, 1);
  graph.add(model::Add{}, "", {trunk, branch});
  finish();
  testing::add_layers(graph, model::Dropout{0.2f}, model::AveragePool{}, model::Flatten{},
                      model::Dense{kClasses}, model::SoftmaxCrossEntropy{});
  return graph;
}

double largest(const std::vector<double>& numbers) {
  double most = 0;
  for (const double number : numbers) most = std::max(most, std::abs(number));
  return most;
}

class NarrowPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_backend_has_bf16()) GTEST_SKIP() << "this machine has no bf16 instructions";
  }
  static std::size_t workspace(const model::Graph& graph, bool bf16) {
    const auto backend = make_cpu_backend(1, {.bf16 = bf16});
    testing::Trial trial(*backend, graph, {kImages});
    return trial.program().workspace_bytes();
  }
  const testing::Samples images_ = testing::make_images(kImages, kImage, kClasses);
};

/// Smooth ones as closely as all with bf16. Where there are kinks, some gradients take another way;
/// those of another map would be as far as they are long.
TEST_F(NarrowPrograms, ComputeWhatPlainLoopsInDoubleDo) {
  const auto exact = reference::make_reference_backend(DType::f64);
  for (const bool kinks : {false, true}) {
    const model::Graph graph = residual({.normalizes = true, .kinks = kinks});
    testing::Trial whole(*exact, graph, {kImages});
    const testing::Outcome expected = whole.train(images_, {kImages});
    for (const KernelChoice& kernels :
         {KernelChoice{.bf16 = true}, KernelChoice{.winograd = true, .bf16 = true},
          KernelChoice{.winograd = true, .skip_zeros = true, .bf16 = true, .measure = true}}) {
      const auto backend = make_cpu_backend(2, kernels);
      testing::Trial trial(*backend, graph, {kImages});
      const testing::Outcome actual = trial.train(images_, {kImages});
      EXPECT_NEAR(actual.tally.loss, expected.tally.loss, 2e-2 * expected.tally.loss);
      for (std::size_t p = 0; p < expected.gradients.size(); ++p) {
        const auto &got = actual.gradients[p], &wanted = expected.gradients[p];
        const std::string what =
            whole.program().layout().parameters[p].name + (kinks ? ", kinks" : "");
        if (largest(wanted) < 1e-9) {  // a shift that the next normalization takes away
          EXPECT_LE(largest(got), 1e-2) << what;
        } else {
          EXPECT_LE(testing::relative_distance(got, wanted), kinks ? 0.3 : 2e-2) << what;
        }
      }
    }
  }
}

TEST_F(NarrowPrograms, RepeatTheirBits) {
  const model::Graph graph = residual({.normalizes = true, .kinks = true});
  const auto backend = make_cpu_backend(1, {.winograd = true, .bf16 = true});
  const auto outcome = [&] {
    testing::Trial trial(*backend, graph, {kImages});
    return trial.train(images_, {kImages});
  };
  const testing::Outcome first = outcome(), again = outcome();
  EXPECT_EQ(first.gradients, again.gradients);
  EXPECT_EQ(first.probabilities, again.probabilities);
}

/// Half a network's maps, and small blocks that are floats for a while.
TEST_F(NarrowPrograms, TakeLessMemory) {
  model::Graph graph({64, 64, 3});
  graph.add(model::Convolution{.filters = 64, .kernel = 3});
  for (int i = 0; i < 6; ++i) {
    testing::add_layers(graph, model::BatchNorm{}, model::Relu{},
                        model::Convolution{.filters = 64, .kernel = 1});
  }
  testing::add_layers(graph, model::GlobalAveragePool{}, model::Dense{kClasses},
                      model::SoftmaxCrossEntropy{});
  EXPECT_LT(static_cast<double>(workspace(graph, true)),
            0.65 * static_cast<double>(workspace(graph, false)));
}

/// Their kernels know floats: no smaller, and as large as copies make them.
TEST_F(NarrowPrograms, WithoutNormalizationKeepFloats) {
  const model::Graph graph = residual({.normalizes = false, .kinks = true});
  EXPECT_GE(workspace(graph, true), workspace(graph, false));
}

}  // namespace
}  // namespace cputrain::cpu::narrow_maps_test
