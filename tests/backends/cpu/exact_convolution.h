#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "compute/executor/memory_plan.h"
#include "model/layer.h"

namespace cputrain::cpu {

struct ExactCase {
  int height, width, in_blocks, out_blocks;
  model::PadAmount rows, columns;
  bool pool, relu;
  double density;
  int images, threads;
};

/// What every implementation is checked with: pooled without padding, one window, padding, without
/// a pool, and threads that share images.
inline std::vector<ExactCase> common_cases() {
  return {{8, 8, 1, 1, {0, 0}, {0, 0}, true, true, 0.4, 1, 1},
          {13, 22, 2, 3, {0, 0}, {0, 0}, true, true, 0.3, 2, 1},
          {23, 41, 1, 2, {0, 0}, {0, 0}, true, false, 0.5, 1, 1},
          {4, 4, 1, 1, {0, 0}, {0, 0}, true, true, 0.5, 1, 1},
          {5, 5, 1, 1, {0, 0}, {0, 0}, true, true, 0.5, 1, 3},
          {9, 10, 2, 1, {1, 1}, {1, 1}, true, true, 0.4, 2, 1},
          {20, 37, 1, 1, {1, 1}, {1, 1}, true, true, 0.4, 1, 1},
          {7, 8, 1, 1, {0, 1}, {1, 0}, true, true, 0.4, 1, 1},
          {6, 5, 1, 1, {2, 2}, {2, 2}, true, true, 0.4, 1, 1},
          {9, 10, 1, 2, {1, 1}, {1, 1}, false, true, 0.4, 1, 1},
          {21, 18, 2, 1, {0, 0}, {0, 0}, false, false, 0.5, 2, 1},
          {1, 1, 1, 1, {1, 1}, {1, 1}, false, true, 0.9, 2, 1},
          {3, 40, 1, 1, {1, 1}, {1, 1}, false, true, 0.5, 1, 2},
          {26, 15, 2, 2, {0, 0}, {0, 0}, true, true, 0.4, 1, 3},
          {26, 15, 1, 3, {1, 1}, {1, 1}, true, true, 0.4, 5, 2},
          {19, 15, 1, 3, {1, 1}, {1, 1}, false, true, 0.4, 3, 4}};
}

/// wide: the convolution's output; dst: the block's.
struct ExactShape {
  compute::SampleLayout src, wide, dst;
  model::PadAmount rows, columns;
  bool pool, relu;
};

/// What the ways back read.
struct ExactOutputs {
  const float* diff;
  const float* dst;
  const std::uint8_t* winners;  ///< null: no pool
};

/// A convolution of stride 1 with 3 x 3 taps, what follows it and both ways back, against loops in
/// double. Numbers are small integers, so that every sum is exact and ties between the pixels of a
/// window are common. `Tested` is made from an ExactShape and a number of threads, and has the
/// three calls that are made here.
template <class Tested>
class ExactConvolution {
 public:
  template <class... Arguments>
  ExactConvolution(const ExactCase& c, int block, const Arguments&... more) : c_(c), b_(block) {
    const Shape src{c.height, c.width, c.in_blocks * b_};
    const Shape wide{c.height + c.rows.before + c.rows.after - 2,
                     c.width + c.columns.before + c.columns.after - 2, c.out_blocks * b_};
    const Shape dst = c.pool ? Shape{wide.height / 2, wide.width / 2, wide.channels} : wide;
    shape_ = {{src, b_}, {wide, b_}, {dst, b_}, c.rows, c.columns, c.pool, c.relu};
    tested_ = std::make_unique<Tested>(shape_, c.threads, more...);
    src_ = draw(shape_.src.size() * images(), 4, c.density);
    weights_ = draw(kernel_size(), 3, 1);
    bias_ = draw(static_cast<std::size_t>(wide.channels), 2, 1);
    diff_ = draw(shape_.dst.size() * images(), 3, 0.8);
    forward_expected();
  }

  void check_all() {
    SCOPED_TRACE(fmt::format("{} x {}, blocks {} to {}, pad {}+{}, pool {}, relu {}, {} images",
                             c_.height, c_.width, c_.in_blocks, c_.out_blocks, c_.rows.before,
                             c_.columns.after, c_.pool, c_.relu, c_.images));
    check_forward();
    check_backward_data();
    check_backward_weights();
    if (c_.threads > 1) check_same_bits();
  }

 private:
  static constexpr auto kOutside = static_cast<std::size_t>(-1);

  void check_forward() {
    std::vector<float> dst(dst_.size(), -77);
    std::vector<std::uint8_t> winners(dst_.size(), 99);
    tested_->forward(c_.images, src_.data(), weights_.data(), bias_.data(), dst.data(),
                     c_.pool ? winners.data() : nullptr);
    EXPECT_EQ(dst, dst_);
    EXPECT_TRUE(!c_.pool || winners == winners_);
  }

  void check_backward_data() {
    std::vector<float> diff_src(src_.size(), -77), expected(src_.size());
    for_terms([&](std::size_t src, std::size_t weight, float diff) {
      if (src != kOutside) expected[src] += weights_[weight] * diff;
    });
    tested_->backward_data(c_.images, outputs(), weights_.data(), diff_src.data(), false);
    EXPECT_EQ(diff_src, expected);
    tested_->backward_data(c_.images, outputs(), weights_.data(), diff_src.data(), true);
    for (float& x : expected) x *= 2;
    EXPECT_EQ(diff_src, expected);
  }

  void check_backward_weights() {
    std::vector<float> kernel(kernel_size(), -77), bias(bias_.size(), -77);
    std::vector<float> expected(kernel.size()), expected_bias(bias.size());
    for_terms([&](std::size_t src, std::size_t weight, float diff) {
      if (src != kOutside) expected[weight] += src_[src] * diff;
    });
    for_gradients([&](std::size_t, int channel, int, int, float diff) {
      expected_bias[static_cast<std::size_t>(channel)] += diff;
    });
    tested_->backward_weights(c_.images, src_.data(), outputs(), kernel.data(), bias.data(), false);
    EXPECT_EQ(kernel, expected);
    EXPECT_EQ(bias, expected_bias);
    tested_->backward_weights(c_.images, src_.data(), outputs(), kernel.data(), bias.data(), true);
    for (float& x : expected) x *= 2;
    for (float& x : expected_bias) x *= 2;
    EXPECT_EQ(kernel, expected);
    EXPECT_EQ(bias, expected_bias);
  }

  /// The sums of numbers that are rounded, so that another order of additions would show. The last
  /// check: it changes the numbers.
  void check_same_bits() {
    for (float& x : src_) x *= 0.1f;
    for (float& x : diff_) x *= 0.3f;
    std::vector<float> first(kernel_size()), again(kernel_size()), bias(bias_.size());
    const auto run = [&](std::vector<float>& kernel) {
      tested_->backward_weights(c_.images, src_.data(), outputs(), kernel.data(), bias.data(),
                                false);
    };
    run(first);
    for (int i = 0; i < 20; ++i) {
      run(again);
      ASSERT_EQ(again, first);
    }
  }

  std::size_t images() const { return static_cast<std::size_t>(c_.images); }
  std::size_t kernel_size() const {
    return static_cast<std::size_t>(9 * c_.in_blocks * c_.out_blocks * b_ * b_);
  }

  std::vector<float> draw(std::size_t n, int largest, double density) {
    std::vector<float> numbers(n);
    std::uniform_int_distribution<int> size(1, 2 * largest);
    std::bernoulli_distribution there(density);
    for (float& x : numbers) {
      const int k = size(generator_);
      x = there(generator_) ? static_cast<float>(k > largest ? largest - k : k) : 0;
    }
    return numbers;
  }

  /// Position in a blocked map of all images; kOutside beyond its borders.
  static std::size_t at(const compute::SampleLayout& map, std::size_t image, int y, int x,
                        int channel) {
    const Shape& s = map.shape;
    if (y < 0 || x < 0 || y >= s.height || x >= s.width) return kOutside;
    return image * map.size() +
           map.position(static_cast<std::size_t>((y * s.width + x) * s.channels + channel));
  }
  std::size_t weight_at(int out, int in, int tap) const {
    return static_cast<std::size_t>(
        (((out / b_ * c_.in_blocks + in / b_) * 9 + tap) * b_ + in % b_) * b_ + out % b_);
  }

  double convolved(std::size_t image, int y, int x, int out) const {
    double sum = bias_[static_cast<std::size_t>(out)];
    for (int in = 0; in < shape_.src.shape.channels; ++in) {
      for (int tap = 0; tap < 9; ++tap) {
        const std::size_t from = at(shape_.src, image, y + tap / 3 - c_.rows.before,
                                    x + tap % 3 - c_.columns.before, in);
        if (from != kOutside) sum += double{src_[from]} * weights_[weight_at(out, in, tap)];
      }
    }
    return sum;
  }

  void forward_expected() {
    dst_.resize(shape_.dst.size() * images());
    winners_.resize(dst_.size());
    const Shape& s = shape_.dst.shape;
    const int size = c_.pool ? 2 : 1;
    for (std::size_t image = 0; image < images(); ++image) {
      for (int i = 0; i < s.height * s.width * s.channels; ++i) {
        const int channel = i % s.channels, x = i / s.channels % s.width;
        const int y = i / s.channels / s.width;
        double best = convolved(image, y * size, x * size, channel);
        int winner = 0;
        for (int k = 1; k < size * size; ++k) {
          const double other = convolved(image, y * 2 + k / 2, x * 2 + k % 2, channel);
          if (other > best) best = other, winner = k;
        }
        const std::size_t to = at(shape_.dst, image, y, x, channel);
        dst_[to] = static_cast<float>(c_.relu ? std::max(best, 0.0) : best);
        winners_[to] = static_cast<std::uint8_t>(winner);
      }
    }
  }

  ExactOutputs outputs() const {
    return {diff_.data(), dst_.data(), c_.pool ? winners_.data() : nullptr};
  }

  /// f(image, channel, y, x of the convolution's output, gradient) for each that counts.
  template <class F>
  void for_gradients(const F& f) const {
    const Shape& s = shape_.dst.shape;
    for (std::size_t image = 0; image < images(); ++image) {
      for (int i = 0; i < s.height * s.width * s.channels; ++i) {
        const int channel = i % s.channels, x = i / s.channels % s.width;
        const int y = i / s.channels / s.width;
        const std::size_t from = at(shape_.dst, image, y, x, channel);
        if (c_.relu && dst_[from] <= 0) continue;
        const int winner = winners_[from];
        c_.pool ? f(image, channel, 2 * y + winner / 2, 2 * x + winner % 2, diff_[from])
                : f(image, channel, y, x, diff_[from]);
      }
    }
  }
  /// f(position in src or kOutside, position in weights, gradient) for each product.
  template <class F>
  void for_terms(const F& f) const {
    for_gradients([&](std::size_t image, int channel, int y, int x, float diff) {
      for (int in = 0; in < shape_.src.shape.channels; ++in) {
        for (int tap = 0; tap < 9; ++tap) {
          const std::size_t src = at(shape_.src, image, y + tap / 3 - c_.rows.before,
                                     x + tap % 3 - c_.columns.before, in);
          if (src != kOutside) f(src, weight_at(channel, in, tap), diff);
        }
      }
    });
  }

  ExactCase c_;
  int b_;
  ExactShape shape_{};
  std::mt19937 generator_{7};
  std::unique_ptr<Tested> tested_;
  std::vector<float> src_, weights_, bias_, diff_, dst_;
  std::vector<std::uint8_t> winners_;
};

}  // namespace cputrain::cpu
