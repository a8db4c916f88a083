// Dense layers in tiles of bf16, which are emulated: integers of a few bits against exact sums.
#include "backends/cpu/amx/dense.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/backends/cpu/each_tiles.h"
#include "tests/backends/cpu/team.h"

namespace cputrain::cpu::amx::amx_dense_test {
namespace {

struct Sizes {
  std::size_t images, in, out;
  std::size_t most_images;
};

using Numbers = std::vector<float>;

class Layer {
 public:
  Layer(const Sizes& s, int threads, const Kernels& kernels)
      : s_(s),
        tested_(s.most_images, s.in, s.out, threads, kernels),
        x_(draw(s.images * s.in)),
        weights_(draw(s.in * s.out)),
        diff_(draw(s.images * s.out)),
        memory_(std::max(tested_.forward_bytes(), tested_.backward_bytes()) + 64),
        team_(threads) {}

  void check() {
    Numbers y(diff_.size(), 3), diff_x(x_.size(), -77), diff_weights(weights_.size(), -77);
    Numbers wanted_y = y, wanted_x(x_.size()), wanted_weights(weights_.size());
    for (std::size_t n = 0; n < s_.images; ++n) {
      for (std::size_t i = 0; i < s_.in; ++i) {
        for (std::size_t o = 0; o < s_.out; ++o) {
          const float x = x_[n * s_.in + i], w = weights_[i * s_.out + o],
                      diff = diff_[n * s_.out + o];
          wanted_y[n * s_.out + o] += x * w;
          wanted_x[n * s_.in + i] += diff * w;
          wanted_weights[i * s_.out + o] += x * diff;
        }
      }
    }
    forward(y);
    EXPECT_EQ(y, wanted_y);
    for (const bool adds : {false, true}) {
      tested_.backward_data(s_.images, diff_.data(), weights_.data(), adds, diff_x.data(),
                            scratch_in(memory_));
      EXPECT_EQ(diff_x, times(wanted_x, adds ? 2 : 1));
      tested_.backward_weights(s_.images, x_.data(), diff_.data(), adds, diff_weights.data(),
                               scratch_in(memory_));
      EXPECT_EQ(diff_weights, times(wanted_weights, adds ? 2 : 1));
    }
  }

  void forward(Numbers& y) {
    tested_.forward(s_.images, x_.data(), weights_.data(), y.data(), scratch_in(memory_));
  }
  /// Sums are then rounded, and another order of additions would show.
  void divide() {
    for (float& x : x_) x /= 7;
    for (float& w : weights_) w /= 11;
  }

 private:
  Numbers draw(std::size_t n) {
    Numbers drawn(n);
    std::uniform_int_distribution<int> number(-4, 4);
    for (float& x : drawn) x = static_cast<float>(number(generator_));
    return drawn;
  }
  static Numbers times(Numbers numbers, float factor) {
    for (float& x : numbers) x *= factor;
    return numbers;
  }
  Sizes s_;
  Dense tested_;
  std::mt19937 generator_{5};
  Numbers x_, weights_, diff_;
  std::vector<std::byte> memory_;
  Team team_;
};

class AmxDense : public EachTiles {
 protected:
  static void check(const Sizes& s, int threads = 1) {
    SCOPED_TRACE(::testing::Message() << s.images << " images, " << s.in << " x " << s.out);
    Layer(s, threads, GetParam().kernels()).check();
  }
};

TEST_P(AmxDense, AnyNumberOfImages) {
  for (const std::size_t images : {1, 15, 16, 17, 31, 32, 33, 64, 70}) {
    check({images, 64, 96, images});
  }
}

TEST_P(AmxDense, FewerImagesThanThereIsMemoryFor) { check({18, 80, 48, 64}); }

TEST_P(AmxDense, BlocksWithoutAPartner) {
  check({16, 16, 16, 16});
  check({20, 48, 80, 20});
  check({20, 272, 144, 20});
}

/// More inputs than slabs have rows, and tasks with few of them.
TEST_P(AmxDense, SlabsAndPanels) {
  check({19, 1104, 208, 19});
  check({33, 1040, 176, 40}, 3);
}

TEST_P(AmxDense, BitsDependOnNoNumberOfThreads) {
  std::vector<Numbers> made;
  for (const int threads : {1, 2, 5}) {
    Layer layer({20, 592, 80, 32}, threads, GetParam().kernels());
    layer.divide();
    layer.forward(made.emplace_back(20 * 80));
    EXPECT_EQ(made.back(), made.front());
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, AmxDense, all_tiles(), name_of_tiles);

}  // namespace
}  // namespace cputrain::cpu::amx::amx_dense_test
