// Convolutions of floats, each the sum of three factors of bf16, in tiles: against sums in double,
// beside chains of fused multiply-adds of floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/amx/convolution.h"
#include "tests/backends/cpu/each_tiles.h"
#include "tests/backends/cpu/team.h"

namespace cputrain::cpu::amx::amx_floats_test {
namespace {

using Floats = std::vector<float>;

struct FloatCase {
  int height, width, ins, outs, kernel, images;
  int threads = 1;
};

/// A convolution of padding `same` in double and in floats, and by tiles.
class FloatProblem {
 public:
  FloatProblem(const FloatCase& c, const Kernels& kernels)
      : c_(c),
        src_{{c.height, c.width, c.ins}, kBlock},
        dst_{{c.height, c.width, c.outs}, kBlock},
        tested_({.src = src_,
                 .wide = dst_,
                 .dst = dst_,
                 .rows = {c.kernel / 2, c.kernel / 2},
                 .columns = {c.kernel / 2, c.kernel / 2},
                 .pool = false,
                 .relu = false,
                 .kernel = c.kernel,
                 .parts = 3},
                c.threads, kernels),
        map(src_.size() * images()),
        weights(static_cast<std::size_t>(c.kernel * c.kernel * c.ins * c.outs)),
        diff(dst_.size() * images()),
        memory_(std::max(tested_.pass_bytes(), tested_.gradient_bytes()) + 64),
        team_(c.threads) {}

  /// Numbers of each kind by `draw`.
  template <class Draw>
  void fill(const Draw& draw) {
    for (float& x : map) x = draw(0);
    for (float& x : weights) x = draw(1);
    for (float& x : diff) x = draw(2);
  }

  Floats forward() {
    Floats made(diff.size());
    tested_.forward(c_.images, map.data(), weights.data(), nullptr, made.data(), nullptr,
                    scratch_in(memory_));
    return made;
  }
  Floats backward_data() {
    Floats made(map.size());
    tested_.backward_data(c_.images, outputs(), weights.data(), made.data(), false,
                          scratch_in(memory_));
    return made;
  }
  Floats backward_weights() {
    Floats made(weights.size()), bias(static_cast<std::size_t>(c_.outs));
    tested_.backward_weights(c_.images, map.data(), outputs(), made.data(), bias.data(), false,
                             scratch_in(memory_));
    return made;
  }

  /// Calls f(source, weight, output) for every product.
  template <class F>
  void for_products(const F& f) const {
    const int k = c_.kernel;
    for (int i = 0; i < c_.images * c_.height * c_.width * k * k; ++i) {
      const int tap = i % (k * k), pixel = i / (k * k) % (c_.height * c_.width);
      const int x = pixel % c_.width, y = pixel / c_.width;
      const int from_y = y + tap / k - k / 2, from_x = x + tap % k - k / 2;
      if (from_y < 0 || from_x < 0 || from_y >= c_.height || from_x >= c_.width) continue;
      const auto image = static_cast<std::size_t>(i / (k * k * c_.height * c_.width));
      for (int n = 0; n < c_.ins * c_.outs; ++n) {
        const int in = n / c_.outs, out = n % c_.outs;
        const int weight =
            (((out / 16 * (c_.ins / 16) + in / 16) * k * k + tap) * 16 + in % 16) * 16 + out % 16;
        f(image * src_.size() + at(src_, from_y, from_x, in), static_cast<std::size_t>(weight),
          image * dst_.size() + at(dst_, y, x, out));
      }
    }
  }

  /// All three passes are off the sums in double by no more than floats are, `slack` times, or by
  /// a unit in the last place.
  void expect_errors_of_floats(double slack = 1) {
    Sums forward_sums(diff.size()), data(map.size()), kernel(weights.size());
    for_products([&](std::size_t s, std::size_t w, std::size_t d) {
      forward_sums.add(d, map[s], weights[w]);
      data.add(s, diff[d], weights[w]);
      kernel.add(w, map[s], diff[d]);
    });
    forward_sums.expect(forward(), slack, "forward");
    data.expect(backward_data(), slack, "data");
    kernel.expect(backward_weights(), slack, "weights");
  }

  std::size_t images() const { return static_cast<std::size_t>(c_.images); }
  const compute::SampleLayout& outputs_layout() const { return dst_; }

 private:
  struct Sums {
    explicit Sums(std::size_t n) : exact(n), chains(n) {}
    void add(std::size_t i, float a, float b) {
      exact[i] += double{a} * b;
      chains[i] = std::fma(a, b, chains[i]);
    }
    double distance(const Floats& made) const {
      double off = 0, all = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        off += (made[i] - exact[i]) * (made[i] - exact[i]);
        all += exact[i] * exact[i];
      }
      return std::sqrt(off / all);
    }
    void expect(const Floats& made, double slack, const char* what) const {
      // Chains of few terms are rounded less often than the six products are.
      constexpr double kLastPlace = 0x1p-23;
      EXPECT_LE(distance(made), std::max(kLastPlace, slack * distance(chains))) << what;
    }
    std::vector<double> exact;
    Floats chains;
  };

  static std::size_t at(const compute::SampleLayout& map, int y, int x, int channel) {
    const Shape& s = map.shape;
    return map.position(static_cast<std::size_t>((y * s.width + x) * s.channels + channel));
  }
  Convolution::Outputs outputs() const { return {diff.data(), nullptr, nullptr}; }
  FloatCase c_;
  compute::SampleLayout src_, dst_;
  Convolution tested_;

 public:
  Floats map, weights, diff;

 private:
  std::vector<std::byte> memory_;
  Team team_;
};

class AmxFloats : public EachTiles {
 protected:
  FloatProblem problem(const FloatCase& c) const { return {c, GetParam().kernels()}; }

  float normal() { return normal_(generator_); }
  /// Maps behind a ReLU, weights as training begins with them, gradients of many magnitudes.
  float realistic(int what, int terms) {
    if (what == 0) return std::max(0.0f, normal());
    if (what == 1) return normal() * std::sqrt(2.0f / static_cast<float>(terms));
    return std::ldexp(normal(), -static_cast<int>(generator_() % 20));
  }
  void check_realistic(const FloatCase& c) {
    SCOPED_TRACE(::testing::Message() << c.kernel << ": " << c.height << " x " << c.width << ", "
                                      << c.ins << " to " << c.outs);
    FloatProblem p = problem(c);
    p.fill([&](int what) { return realistic(what, c.kernel * c.kernel * c.ins); });
    p.expect_errors_of_floats();
  }

  std::mt19937 generator_{7};
  std::normal_distribution<float> normal_;
  std::uniform_real_distribution<float> unit_;
};

const FloatCase kUsual[] = {{9, 18, 48, 32, 3, 2}, {8, 8, 48, 48, 3, 3}, {8, 8, 64, 48, 1, 2}};

TEST_P(AmxFloats, RoundNoMoreThanChainsOfFloats) {
  for (const FloatCase& c : kUsual) check_realistic(c);
  check_realistic({5, 33, 16, 80, 3, 1, 3});
}

/// Maps of one tap lie in rows of 32 pixels, of 16, or in one row.
TEST_P(AmxFloats, OneTapTakesMapsOfAnySize) {
  check_realistic({4, 8, 32, 32, 1, 1});
  check_realistic({6, 16, 16, 48, 1, 3, 2});
  check_realistic({4, 4, 48, 16, 1, 12});
  check_realistic({7, 7, 80, 64, 1, 2, 3});
  check_realistic({1, 1, 32, 32, 1, 1});
}

TEST_P(AmxFloats, NumbersOfManyMagnitudes) {
  for (const FloatCase& c : kUsual) {
    FloatProblem p = problem(c);
    p.fill([&](int) { return std::ldexp(normal(), static_cast<int>(generator_() % 41) - 20); });
    p.expect_errors_of_floats();
  }
}

/// Pairs of neighbouring channels, of pixels and of outputs all but cancel each other.
TEST_P(AmxFloats, TermsThatCancelEachOther) {
  for (const FloatCase& c : kUsual) {
    FloatProblem p = problem(c);
    p.fill([&](int) { return normal(); });
    const auto pair = [&](Floats& numbers, std::size_t by, float sign) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (i / by % 2 == 1) numbers[i] = sign * numbers[i - by] * (1 + 1e-4f * normal());
      }
    };
    pair(p.map, 1, -1);
    pair(p.weights, 16, 1);
    pair(p.weights, 1, 1);
    pair(p.diff, 1, -1);
    p.expect_errors_of_floats();
  }
}

/// The bound of in_range(): largest numbers of 2^-48, the least that must go through.
TEST_P(AmxFloats, TheSmallestNumbersInRange) {
  for (const FloatCase& c : kUsual) {
    FloatProblem p = problem(c);
    p.fill([&](int) { return std::ldexp(2 * unit_(generator_) - 1, -48); });
    p.map[0] = p.weights[0] = p.diff[0] = kLeastLargest;
    EXPECT_TRUE(in_range(p.map.data(), p.map.size()));
    // A product loses less than 2^-27 of the largest, beside what floats round: amx/README.md.
    p.expect_errors_of_floats(1.5);
  }
}

TEST(AmxRange, NeedsOneNumberThatIsNotTiny) {
  Floats numbers(5000);
  EXPECT_TRUE(in_range(numbers.data(), numbers.size())) << "zeros";
  EXPECT_TRUE(in_range(nullptr, 0));
  numbers[4999] = std::nextafter(kLeastLargest, 0.0f);
  EXPECT_FALSE(in_range(numbers.data(), numbers.size()));
  numbers[1] = -1e-40f;
  EXPECT_FALSE(in_range(numbers.data(), numbers.size()));
  for (const float large : {-kLeastLargest, 1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    numbers[4998] = large;
    EXPECT_TRUE(in_range(numbers.data(), numbers.size())) << large;
  }
}

/// What is not finite stays that, and where it belongs; a number beyond bf16's largest counts as
/// infinite.
TEST_P(AmxFloats, NumbersThatAreNotFiniteStayInSight) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3.4e38f}) {
    FloatProblem p = problem({4, 8, 16, 16, 1, 1});
    p.fill([&](int) { return 1 + unit_(generator_); });
    p.map[0] = bad;  // the first pixel's
    const Floats made = p.forward();
    for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(std::isfinite(made[i]), i >= 16) << i;
  }
}

TEST_P(AmxFloats, BitsDependOnNoNumberOfThreads) {
  for (FloatCase c : {FloatCase{11, 21, 32, 48, 3, 3}, FloatCase{8, 12, 32, 48, 1, 3}}) {
    std::vector<Floats> forward, data;
    for (const int threads : {1, 2, 7}) {
      c.threads = threads;
      generator_.seed(3);
      normal_.reset();
      FloatProblem p = problem(c);
      p.fill([&](int) { return normal(); });
      forward.push_back(p.forward());
      data.push_back(p.backward_data());
      EXPECT_EQ(forward.back(), forward.front());
      EXPECT_EQ(data.back(), data.front());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, AmxFloats, all_tiles(), name_of_tiles);

}  // namespace
}  // namespace cputrain::cpu::amx::amx_floats_test
