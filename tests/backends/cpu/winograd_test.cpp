// Winograd's algorithm against loops in double, by the norm of the difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/winograd/kernel_gradient.h"
#include "backends/cpu/winograd/pass.h"
#include "tests/backends/cpu/each_instruction_set.h"
#include "tests/backends/cpu/numbers.h"
#include "tests/backends/cpu/team.h"

namespace cputrain::cpu::winograd::winograd_test {
namespace {

constexpr double kBound = 3e-6;

struct Case {
  int height, width, in_blocks, out_blocks;
  model::PadAmount rows, columns;
  int images, threads = 1;
  /// Channels on the side that is computed from one that is checked to the next.
  int every = 1;
};

constexpr model::PadAmount kSame{1, 1}, kValid{0, 0};

Problem problem_of(const Case& c, int block) {
  const Shape src{c.height, c.width, c.in_blocks * block};
  const Shape dst{c.height + c.rows.before + c.rows.after - 2,
                  c.width + c.columns.before + c.columns.after - 2, c.out_blocks * block};
  return {c.images, {src, block}, {dst, block}, c.rows, c.columns};
}

/// Length of the difference beside that of what is expected.
class Distance {
 public:
  void add(double actual, double expected) {
    off_ += (actual - expected) * (actual - expected);
    all_ += expected * expected;
  }
  double relative() const { return std::sqrt(off_ / all_); }

 private:
  double off_ = 0, all_ = 0;
};

class Convolution {
 public:
  Convolution(const Case& c, InstructionSet set)
      : c_(c),
        set_(set),
        p_(problem_of(c, kernels_for(set).block)),
        src_(numbers(images() * p_.src.size(), 0.5f, 1)),
        diff_(numbers(images() * p_.dst.size(), 0.9f, 2)),
        weights_(numbers(9 * ins() * outs(), 1, 3)),
        bias_(numbers(outs(), 1, 4)) {}

  std::vector<float> forward(const float* bias, bool relu, int threads) const {
    std::vector<float> dst(diff_.size(), std::nanf(""));
    run(Pass(p_, Pass::Way::forward, threads, set_), threads,
        [&](const Pass& pass, std::byte* scratch) {
          pass.run(src_.data(), weights_.data(), bias, relu, dst.data(), scratch);
        });
    return dst;
  }
  std::vector<float> forward_with_bias(int threads) const {
    return forward(bias_.data(), false, threads);
  }
  std::vector<float> backward_data(int threads) const {
    std::vector<float> diff_src(src_.size(), std::nanf(""));
    run(Pass(p_, Pass::Way::backward_data, threads, set_), threads,
        [&](const Pass& pass, std::byte* scratch) {
          pass.run(diff_.data(), weights_.data(), nullptr, false, diff_src.data(), scratch);
        });
    return diff_src;
  }
  /// Gradients of the kernel, then of the bias.
  std::vector<float> backward_weights(int threads) const {
    std::vector<float> all(weights_.size() + bias_.size(), std::nanf(""));
    run(KernelGradient(p_, threads, set_), threads,
        [&](const KernelGradient& gradient, std::byte* scratch) {
          gradient.run(src_.data(), diff_.data(), all.data(), all.data() + weights_.size(),
                       scratch);
        });
    return all;
  }

  void check_forward() const {
    const std::vector<float> with_bias = forward_with_bias(c_.threads);
    const std::vector<float> with_relu = forward(nullptr, true, c_.threads);
    Distance bias, relu;
    for_pixels(p_.dst, [&](std::size_t image, int y, int x, int out) {
      double sum = 0;
      for_taps(
          [&](int tap, int in) {
            sum += at(src_, p_.src, image, y + tap / 3 - c_.rows.before,
                      x + tap % 3 - c_.columns.before, in) *
                   weights_[weight(out, in, tap)];
          },
          p_.src.shape.channels);
      bias.add(at(with_bias, p_.dst, image, y, x, out), sum + bias_[static_cast<std::size_t>(out)]);
      relu.add(at(with_relu, p_.dst, image, y, x, out), std::max(sum, 0.0));
    });
    EXPECT_LE(bias.relative(), kBound);
    EXPECT_LE(relu.relative(), kBound);
  }

  /// Each window's maximum and its place. Compilers round the last sums of tiles differently in the
  /// two kernels.
  void check_pool() const {
    constexpr double kRounding = 1e-5;
    const std::vector<float> wide = forward(nullptr, false, 1);
    compute::SampleLayout half = p_.dst;
    half.shape.height /= 2;
    half.shape.width /= 2;
    Problem pooled = p_;
    pooled.pooled = half;
    std::vector<float> dst(images() * half.size(), std::nanf("")), inferred = dst;
    std::vector<std::uint8_t> winners(dst.size(), 9);
    run(Pass(pooled, Pass::Way::forward, c_.threads, set_), c_.threads,
        [&](const Pass& pass, std::byte* scratch) {
          pass.run(src_.data(), weights_.data(), bias_.data(), true, dst.data(), scratch,
                   winners.data());
          pass.run(src_.data(), weights_.data(), bias_.data(), true, inferred.data(), scratch);
        });
    EXPECT_EQ(dst, inferred);
    for_pixels(half, [&](std::size_t image, int y, int x, int out) {
      const auto value = [&](int i) {
        return at(wide, p_.dst, image, 2 * y + i / 2, 2 * x + i % 2, out);
      };
      const double most = std::max({value(0), value(1), value(2), value(3)});
      const double bias = bias_[static_cast<std::size_t>(out)];
      EXPECT_NEAR(at(dst, half, image, y, x, out), std::max(most + bias, 0.0), kRounding);
      const auto canonical =
          static_cast<std::size_t>((y * half.shape.width + x) * half.shape.channels + out);
      const int winner = winners[image * half.size() + half.position(canonical)];
      ASSERT_LT(winner, 4);
      EXPECT_NEAR(value(winner), most, kRounding);
    });
  }

  void check_backward_data() const {
    const std::vector<float> actual = backward_data(c_.threads);
    Distance distance;
    for_pixels(p_.src, [&](std::size_t image, int y, int x, int in) {
      double sum = 0;
      for_taps(
          [&](int tap, int out) {
            sum += at(diff_, p_.dst, image, y - tap / 3 + c_.rows.before,
                      x - tap % 3 + c_.columns.before, out) *
                   weights_[weight(out, in, tap)];
          },
          p_.dst.shape.channels);
      distance.add(at(actual, p_.src, image, y, x, in), sum);
    });
    EXPECT_LE(distance.relative(), kBound);
  }

  void check_backward_weights() const {
    const std::vector<float> actual = backward_weights(c_.threads);
    std::vector<double> expected(actual.size());
    for_pixels(p_.dst, [&](std::size_t image, int y, int x, int out) {
      const double diff = at(diff_, p_.dst, image, y, x, out);
      expected[weights_.size() + static_cast<std::size_t>(out)] += diff;
      for_taps(
          [&](int tap, int in) {
            expected[weight(out, in, tap)] +=
                diff * at(src_, p_.src, image, y + tap / 3 - c_.rows.before,
                          x + tap % 3 - c_.columns.before, in);
          },
          p_.src.shape.channels);
    });
    Distance kernel, bias;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (i >= weights_.size()) {
        if ((i - weights_.size()) % static_cast<std::size_t>(c_.every) == 0)
          bias.add(actual[i], expected[i]);
      } else if (out_of(i) % c_.every == 0) {
        kernel.add(actual[i], expected[i]);
      }
    }
    EXPECT_LE(kernel.relative(), kBound);
    EXPECT_LE(bias.relative(), kBound);
  }

 private:
  template <class Kernel, class Run>
  static void run(const Kernel& kernel, int threads, const Run& f) {
    const Team team(threads);
    std::vector<std::byte> scratch(kernel.scratch_bytes());
    f(kernel, scratch.data());
  }

  std::size_t images() const { return static_cast<std::size_t>(c_.images); }
  std::size_t ins() const { return static_cast<std::size_t>(p_.src.shape.channels); }
  std::size_t outs() const { return static_cast<std::size_t>(p_.dst.shape.channels); }

  /// 0 beyond the borders of the map.
  static double at(const std::vector<float>& maps, const compute::SampleLayout& map,
                   std::size_t image, int y, int x, int channel) {
    const Shape& s = map.shape;
    if (y < 0 || x < 0 || y >= s.height || x >= s.width) return 0;
    const auto place = static_cast<std::size_t>((y * s.width + x) * s.channels + channel);
    return maps[image * map.size() + map.position(place)];
  }
  std::size_t weight(int out, int in, int tap) const {
    const int b = p_.src.block;
    return static_cast<std::size_t>(
        (((out / b * c_.in_blocks + in / b) * 9 + tap) * b + in % b) * b + out % b);
  }
  int out_of(std::size_t weight) const {
    const int b = p_.src.block, i = static_cast<int>(weight);
    return i / (9 * b * b * c_.in_blocks) * b + i % b;
  }
  template <class F>
  void for_pixels(const compute::SampleLayout& map, const F& f) const {
    for (std::size_t image = 0; image < images(); ++image) {
      for (int channel = 0; channel < map.shape.channels; channel += c_.every) {
        for (int i = 0; i < map.shape.height * map.shape.width; ++i) {
          f(image, i / map.shape.width, i % map.shape.width, channel);
        }
      }
    }
  }
  template <class F>
  static void for_taps(const F& f, int channels) {
    for (int tap = 0; tap < 9; ++tap) {
      for (int channel = 0; channel < channels; ++channel) f(tap, channel);
    }
  }

  Case c_;
  InstructionSet set_;
  Problem p_;
  std::vector<float> src_, diff_, weights_, bias_;
};

class Winograd : public EachInstructionSet {
 protected:
  static void check(const Case& c) {
    const Convolution convolution(c, GetParam());
    convolution.check_forward();
    convolution.check_backward_data();
    convolution.check_backward_weights();
  }
};

TEST_P(Winograd, MapsOfFewPixels) {
  check({1, 1, 1, 1, kSame, kSame, 1});
  check({1, 1, 2, 1, kSame, kSame, 3});
  check({3, 3, 1, 2, kValid, kValid, 1});
  check({5, 7, 1, 1, kSame, kSame, 3});
  check({2, 9, 1, 1, kSame, kSame, 2});
}

TEST_P(Winograd, WholeTilesAndPartsOfThem) {
  check({8, 8, 2, 2, kSame, kSame, 1});
  check({6, 10, 2, 2, kValid, kValid, 1});
  check({13, 22, 1, 2, kValid, kValid, 1});
  check({14, 15, 2, 1, kSame, kSame, 2});
}

TEST_P(Winograd, PaddingOfEverySize) {
  check({9, 10, 1, 1, {2, 2}, {2, 2}, 1});
  check({7, 8, 1, 1, {0, 1}, {1, 0}, 1});
  check({7, 8, 1, 1, {2, 0}, {0, 2}, 1});
}

TEST_P(Winograd, BlocksWithoutAPartner) {
  check({6, 6, 3, 5, kSame, kSame, 2});
  check({6, 6, 5, 3, kSame, kSame, 2});
}

/// Runs of tiles begin in one image and end in the next.
TEST_P(Winograd, RunsOfTilesAcrossImages) {
  check({21, 18, 2, 1, kSame, kSame, 5});
  check({21, 18, 1, 2, kSame, kSame, 5, 3});
}

TEST_P(Winograd, PoolsTilesAsTheyAreFinished) {
  for (const Case& c :
       {Case{8, 8, 2, 2, kSame, kSame, 1}, Case{14, 15, 1, 3, kSame, kSame, 3},
        Case{13, 9, 2, 1, kValid, kValid, 2}, Case{21, 18, 2, 1, kSame, kSame, 5, 3},
        Case{7, 7, 2, 8, kSame, kSame, 1, 4}, Case{4, 4, 1, 1, kValid, kValid, 2}}) {
    Convolution(c, GetParam()).check_pool();
  }
}

TEST_P(Winograd, ThreadsShareOutputsOfFewTiles) { check({7, 7, 2, 8, kSame, kSame, 1, 4}); }

TEST_P(Winograd, BitsDependOnNoNumberOfThreads) {
  const Convolution convolution({19, 23, 2, 3, kSame, kSame, 3}, GetParam());
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(convolution.forward_with_bias(threads), convolution.forward_with_bias(1));
    EXPECT_EQ(convolution.backward_data(threads), convolution.backward_data(1));
    EXPECT_EQ(convolution.backward_weights(threads), convolution.backward_weights(1));
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, Winograd, all_instruction_sets(), name_of_set);

/// All outputs go through one point before the next where patches are more than the caches hold.
TEST(LargeWinograd, ComputesWhatLeavesTheCaches) {
  const InstructionSet set = best_instruction_set();
  const int blocks = 512 / kernels_for(set).block;
  const Convolution convolution({44, 44, blocks, blocks, kSame, kSame, 1, 1, 170}, set);
  convolution.check_forward();
  convolution.check_backward_weights();
}

}  // namespace
}  // namespace cputrain::cpu::winograd::winograd_test
