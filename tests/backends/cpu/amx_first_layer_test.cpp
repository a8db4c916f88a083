// The first convolution in tiles of bf16, from bytes of images: small integers against exact sums,
// then numbers that are rounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "backends/cpu/amx/convolution.h"
#include "tests/backends/cpu/each_tiles.h"
#include "tests/backends/cpu/team.h"

namespace cputrain::cpu::amx::amx_first_layer_test {
namespace {

using Floats = std::vector<float>;

struct ImageCase {
  int height, width, outs;
  model::PadAmount rows, columns;
  bool pool = true, relu = true;
  float scale = 0.25f, offset = 0;
  int images = 1, threads = 1;
};

class ImageProblem {
 public:
  /// Integers as weights, so that sums are exact and windows have ties; or numbers of all bits.
  ImageProblem(const ImageCase& c, bool integers, const Kernels& kernels)
      : c_(c),
        wide_{{c.height + c.rows.before + c.rows.after - 2,
               c.width + c.columns.before + c.columns.after - 2, c.outs},
              kBlock},
        dst_(wide_),
        bytes_(to_size(c.images * c.height * c.width * 3)),
        team_(c.threads),
        weights(27 * to_size(c.outs)),
        bias(to_size(c.outs)) {
    if (c.pool) dst_.shape = {wide_.shape.height / 2, wide_.shape.width / 2, c.outs};
    for (std::uint8_t& byte : bytes_) {
      byte = static_cast<std::uint8_t>(integers ? generator_() % 8 : generator_() % 256);
    }
    const auto number = [&] {
      const float drawn = 2 * unit_(generator_) - 1;
      return integers ? std::round(3 * drawn) : drawn;
    };
    diff.resize(to_size(c.images) * dst_.size());
    for (Floats* numbers : {&weights, &bias, &diff}) std::ranges::generate(*numbers, number);
    for (int i = 0; i < c.images; ++i) {
      pointers_.push_back(bytes_.data() + to_size(i * c.height * c.width * 3));
    }
    tested_.emplace(ConvolutionShape{.src = {{c.height, c.width, 3}, 1},
                                     .wide = wide_,
                                     .dst = dst_,
                                     .rows = c.rows,
                                     .columns = c.columns,
                                     .pool = c.pool,
                                     .relu = c.relu,
                                     .image = model::Input{.scale = c.scale, .offset = c.offset}},
                    c.threads, kernels);
    memory_.resize(std::max(tested_->pass_bytes(), tested_->gradient_bytes()) + 64);
  }

  void forward(Floats& made, std::vector<std::uint8_t>& winners) {
    made.assign(diff.size(), -77);
    winners.assign(diff.size(), 99);
    tested_->forward(c_.images, pointers_.data(), weights.data(), bias.data(), made.data(),
                     c_.pool ? winners.data() : nullptr, scratch_in(memory_));
  }
  void backward(Floats& kernel, Floats& bias_gradients, bool adds) {
    tested_->backward_weights(c_.images, pointers_.data(), {diff.data(), dst.data(), win.data()},
                              kernel.data(), bias_gradients.data(), adds, scratch_in(memory_));
  }

  /// Sums in double: outputs into `dst` and `win`, then gradients.
  void expect_sums() {
    dst.assign(diff.size(), 0);
    win.assign(diff.size(), 0);
    kernel_sums.assign(weights.size(), 0);
    bias_sums.assign(bias.size(), 0);
    for (std::size_t i = 0; i < dst.size(); ++i) expect_sum(i);
  }

  ImageCase c_;

 private:
  double number(int image, int y, int x, int colour) const {
    if (y < 0 || x < 0 || y >= c_.height || x >= c_.width) return 0;
    return bytes_[to_size(((image * c_.height + y) * c_.width + x) * 3 + colour)] *
               double{c_.scale} +
           c_.offset;
  }
  std::size_t weight(int out, int k) const { return to_size((out / 16 * 27 + k) * 16 + out % 16); }

  double sum_at(int image, int y, int x, int out) const {
    double sum = bias[to_size(out)];
    for (int k = 0; k < 27; ++k) {
      sum += weights[weight(out, k)] *
             number(image, y + k / 9 - c_.rows.before, x + k % 9 / 3 - c_.columns.before, k % 3);
    }
    return sum;
  }

  /// For the `i`th number of all images, counted as shapes do.
  void expect_sum(std::size_t i) {
    const Shape& s = dst_.shape;
    const int image = static_cast<int>(i / dst_.size()), at = static_cast<int>(i % dst_.size());
    const int out = at % s.channels, x = at / s.channels % s.width, y = at / s.channels / s.width;
    const std::size_t place = to_size(image) * dst_.size() + dst_.position(to_size(at));
    const int step = c_.pool ? 2 : 1;
    int winner = 0;
    double best = sum_at(image, step * y, step * x, out);
    for (int p = 1; p < step * step; ++p) {
      const double other = sum_at(image, 2 * y + p / 2, 2 * x + p % 2, out);
      if (other > best) {
        best = other;
        winner = p;
      }
    }
    dst[place] = static_cast<float>(c_.relu ? std::max(best, 0.0) : best);
    win[place] = static_cast<std::uint8_t>(winner);
    if (c_.relu && best <= 0) return;
    bias_sums[to_size(out)] += diff[place];
    for (int k = 0; k < 27; ++k) {
      kernel_sums[weight(out, k)] +=
          diff[place] * number(image, step * y + winner / 2 + k / 9 - c_.rows.before,
                               step * x + winner % 2 + k % 9 / 3 - c_.columns.before, k % 3);
    }
  }

  compute::SampleLayout wide_, dst_;
  std::vector<std::uint8_t> bytes_;
  std::vector<const std::uint8_t*> pointers_;
  std::mt19937 generator_{11};
  std::uniform_real_distribution<float> unit_;
  std::optional<Convolution> tested_;
  std::vector<std::byte> memory_;
  Team team_;

 public:
  Floats weights, bias, diff, dst;
  std::vector<std::uint8_t> win;
  std::vector<double> kernel_sums, bias_sums;
};

double distance(const Floats& made, const std::vector<double>& wanted) {
  double off = 0, all = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    off += (made[i] - wanted[i]) * (made[i] - wanted[i]);
    all += wanted[i] * wanted[i];
  }
  return std::sqrt(off / all);
}

class AmxFirstLayer : public EachTiles {
 protected:
  void check(const ImageCase& c) {
    SCOPED_TRACE(::testing::Message() << c.height << " x " << c.width << " to " << c.outs);
    ImageProblem p(c, true, GetParam().kernels());
    p.expect_sums();
    Floats made;
    std::vector<std::uint8_t> winners;
    p.forward(made, winners);
    EXPECT_EQ(made, p.dst);
    EXPECT_TRUE(!c.pool || winners == p.win);
    Floats kernel(p.weights.size(), -77), bias(p.bias.size(), -77);
    for (const int times : {1, 2}) {
      p.backward(kernel, bias, times == 2);
      for (std::size_t i = 0; i < kernel.size(); ++i) {
        ASSERT_EQ(kernel[i], times * p.kernel_sums[i]) << i;
      }
      for (std::size_t i = 0; i < bias.size(); ++i) ASSERT_EQ(bias[i], times * p.bias_sums[i]);
    }
  }
};

TEST_P(AmxFirstLayer, PooledWithoutPadding) {
  check({4, 4, 16, {}, {}});
  check({8, 9, 32, {}, {}});
  check({13, 40, 48, {}, {}, true, false});
}

TEST_P(AmxFirstLayer, Padding) {
  check({9, 10, 16, {1, 1}, {1, 1}});
  check({6, 35, 32, {2, 2}, {2, 2}});
  check({7, 18, 16, {2, 0}, {0, 1}});
  check({1, 1, 16, {1, 1}, {1, 1}, false});
}

TEST_P(AmxFirstLayer, WithoutAPool) {
  check({9, 10, 32, {1, 1}, {1, 1}, false});
  check({5, 20, 16, {}, {}, false, false});
}

/// Bytes are taken 16 at a time, pixels of outputs 16 and 32 at a time.
TEST_P(AmxFirstLayer, WidthsAroundWholeVectors) {
  for (const int width : {5, 16, 17, 18, 19, 33, 34, 35}) {
    check({5, width, 16, {1, 1}, {1, 1}, false});
  }
}

/// Numbers from -1 to 1, and with an offset of halves: both exact, and zeros outside of the image.
TEST_P(AmxFirstLayer, OffsetsOfNumbers) {
  check({6, 7, 16, {1, 1}, {1, 1}, true, true, 0.5f, -1});
  check({6, 7, 16, {2, 2}, {0, 1}, false, false, 0.25f, -0.125f});
}

TEST_P(AmxFirstLayer, ThreadsShareImages) {
  check({26, 15, 32, {}, {}, true, true, 0.25f, 0, 1, 3});
  check({19, 15, 48, {1, 1}, {1, 1}, true, true, 0.25f, 0, 5, 2});
}

/// Off by rounding of weights, and of gradients, alone: bytes are exact.
TEST_P(AmxFirstLayer, RoundsWeightsAndGradientsToTheNearest) {
  ImageCase c{20, 37, 32, {1, 1}, {1, 1}, false, false, 1 / 255.0f, 0, 2};
  ImageProblem p(c, false, GetParam().kernels());
  p.expect_sums();
  Floats made, kernel(p.weights.size()), bias(p.bias.size());
  std::vector<std::uint8_t> winners;
  p.forward(made, winners);
  const double forward = distance(made, {p.dst.begin(), p.dst.end()});
  p.backward(kernel, bias, false);
  for (const double off : {forward, distance(kernel, p.kernel_sums)}) {
    EXPECT_LE(off, 2e-3);
    EXPECT_GE(off, 1e-4) << "factors were not rounded";
  }
  EXPECT_LE(distance(bias, p.bias_sums), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Tiles, AmxFirstLayer, all_tiles(), name_of_tiles);

}  // namespace
}  // namespace cputrain::cpu::amx::amx_first_layer_test
