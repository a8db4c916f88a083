#include "backends/cuda/kernels/pools.h"

#include <string>

#include "backends/cuda/kernels/elementwise.h"
#include "backends/reference/layers.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

struct PoolCase {
  int images, height, width, channels, size, stride;
  model::Padding padding;

  std::string name() const {
    return std::to_string(size) + " x " + std::to_string(size) + ", stride " +
           std::to_string(stride) + (padding == model::Padding::same ? ", same" : ", valid") +
           ", map " + std::to_string(height) + " x " + std::to_string(width) + " x " +
           std::to_string(channels);
  }
  Shape src() const { return {height, width, channels}; }
  Shape dst() const { return model::output_shape(model::MaxPool{size, stride, padding}, src()); }
  WindowShape window() const {
    const Shape d = dst();
    const int stored = padded_channels(channels);
    return {images,
            {height, width, stored},
            {d.height, d.width, stored},
            size,
            stride,
            model::pad_amount(padding, height, size, stride).before,
            model::pad_amount(padding, width, size, stride).before};
  }
  std::size_t src_numbers() const { return static_cast<std::size_t>(images) * src().size(); }
  std::size_t dst_numbers() const { return static_cast<std::size_t>(images) * dst().size(); }
};

/// All of them in exact. Precisions differ in how packs are read and written alone.
std::vector<PoolCase> pool_cases(Numbers numbers) {
  if (numbers != Numbers::exact) {
    return {{2, 7, 5, 3, 2, 2, model::Padding::valid},
            {2, 7, 5, 21, 3, 2, model::Padding::same},
            {2, 7, 5, 20, 2, 3, model::Padding::same},
            {1, 15, 17, 5, 15, 2, model::Padding::same},
            {1, 4, 4, 520, 2, 2, model::Padding::valid}};  // more packs than a block has columns
  }
  std::vector<PoolCase> cases;
  for (const auto padding : {model::Padding::valid, model::Padding::same}) {
    for (const int size : {1, 2, 3, 4}) {
      for (const int stride : {1, 2, 3}) {
        for (const int channels : {1, 3, 20, 21}) {
          cases.push_back({2, 7, 5, channels, size, stride, padding});
        }
      }
    }
    cases.push_back({1, 15, 17, 5, 15, 2, padding});
    cases.push_back({3, 4, 4, 264, 2, 2, padding});  // more packs than a block has columns
  }
  return cases;
}

/// What the reference makes of a pool, in T: dst, and diff_src added to `before`.
template <class T, class Layer>
std::tuple<std::vector<T>, std::vector<T>> reference_pool(const PoolCase& c,
                                                          const std::vector<float>& src,
                                                          const std::vector<float>& diff_dst,
                                                          const std::vector<float>& before) {
  const std::vector<T> values(src.begin(), src.end()), diff(diff_dst.begin(), diff_dst.end());
  std::vector<T> dst(diff.size()), diff_src(before.begin(), before.end());
  const reference::LayerArgs<T> args{c.images,        c.src(), c.dst(), values.data(),
                                     dst.data(),      nullptr, nullptr, diff.data(),
                                     diff_src.data(), nullptr, nullptr};
  const Layer layer{c.size, c.stride, c.padding};
  reference::forward(layer, args);
  reference::backward(layer, args);
  return {dst, diff_src};
}

/// What a pool reads, without padding.
struct PoolNumbers {
  const std::vector<float>&src, &diff_dst, &before;
};

/// Maps on the device, with padding. Gradients are added to `before`, or written over poison.
struct PoolMaps {
  PoolMaps(Numbers numbers, int images, const WindowShape& shape, int channels,
           const PoolNumbers& dense, bool add)
      : dst_size(static_cast<std::size_t>(images) * shape.dst.size()),
        src(numbers, with_padding(dense.src, channels)),
        dst(DeviceMap::poisoned(numbers, dst_size)),
        diff_dst(numbers, with_padding(dense.diff_dst, channels)),
        diff_src(add ? DeviceMap(numbers, with_padding(dense.before, channels))
                     : DeviceMap::poisoned(numbers,
                                           static_cast<std::size_t>(images) * shape.src.size())) {}

  std::size_t dst_size;
  DeviceMap src, dst, diff_dst, diff_src;
};

/// Few different numbers, so that most windows have several largest ones.
std::vector<float> tied_numbers(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(generator() % 4) - 2;
  return values;
}

/// What is no number, and infinities, in between.
std::vector<float> strange_numbers(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  const float choices[] = {-kInfinity, -kInfinity, -kInfinity, kNaN, 0, -1, kInfinity, -0.0f};
  std::vector<float> values(count);
  for (float& value : values) value = choices[generator() % 8];
  return values;
}

/// `src` has numbers of the format. Gradients are added up in float and rounded once.
void expect_max_pool(Numbers numbers, const PoolCase& c, const std::vector<float>& src) {
  SCOPED_TRACE(word_of(numbers) + (", " + c.name()));
  const auto diff_dst = rounded(numbers, random_floats(c.dst_numbers(), 2));
  const auto before = rounded(numbers, random_floats(c.src_numbers(), 3));
  for (const bool add : {false, true}) {
    const auto [dst, diff_src] = twice([&] {
      const PoolMaps maps(numbers, c.images, c.window(), c.channels, {src, diff_dst, before}, add);
      const auto winners = DeviceArray<std::uint8_t>::poisoned(maps.dst_size);
      max_pool_forward(test_stream().get(), numbers, c.window(), maps.src.data(), maps.dst.data(),
                       winners.data());
      max_pool_backward(test_stream().get(), numbers, c.window(), maps.diff_dst.data(),
                        winners.data(), maps.diff_src.data(), add);
      return std::tuple(maps.dst.read(), maps.diff_src.read());
    });
    const auto [expected_dst, expected_diff] = reference_pool<float, model::MaxPool>(
        c, src, diff_dst, add ? before : std::vector<float>(before.size()));
    expect_same_values(without_padding(dst, c.channels), expected_dst);
    expect_same_values(without_padding(diff_src, c.channels), rounded(numbers, expected_diff));
  }
}

TEST(MaxPoolKernels, AreTheReferenceWithTies) {
  for (const Numbers numbers : kAllNumbers) {
    for (const PoolCase& c : pool_cases(numbers)) {
      expect_max_pool(numbers, c, tied_numbers(c.src_numbers(), 1));
    }
  }
}

/// And the reference, as PyTorch, has NaN wherever one is in the window (layers_test).
TEST(MaxPoolKernels, AreTheReferenceOfNaN) {
  for (const Numbers numbers : kAllNumbers) {
    for (const PoolCase& c : pool_cases(numbers)) {
      if (c.channels < 20) expect_max_pool(numbers, c, strange_numbers(c.src_numbers(), 4));
    }
  }
}

struct Zeros {
  int top, bottom, left, right;
};

/// The map with zeros around it, channels padded.
std::vector<float> surrounded(const std::vector<float>& map, const MapShape& shape, int images,
                              const Zeros& z) {
  const int height = shape.height + z.top + z.bottom, width = shape.width + z.left + z.right;
  const auto at = [&](int image, int rows, int columns, int row, int column) {
    return static_cast<std::size_t>((image * rows + row) * columns + column) *
           static_cast<std::size_t>(shape.channels);
  };
  std::vector<float> made(at(images, height, width, 0, 0));
  for (int image = 0; image < images; ++image) {
    for (int row = 0; row < shape.height; ++row) {
      for (int column = 0; column < shape.width; ++column) {
        std::copy_n(map.begin() + at(image, shape.height, shape.width, row, column), shape.channels,
                    made.begin() + at(image, height, width, row + z.top, column + z.left));
      }
    }
  }
  return made;
}

/// Output and gradient of src.
auto max_pooled(const WindowShape& shape, const std::vector<float>& src) {
  const Stream stream = test_stream().get();
  const auto images = static_cast<std::size_t>(shape.images);
  const auto diffs = random_floats(images * shape.dst.size(), 2);
  const DeviceArray<float> map(src), diff(diffs);
  const auto out = DeviceArray<float>::poisoned(diffs.size());
  const auto winners = DeviceArray<std::uint8_t>::poisoned(diffs.size());
  const auto gradient = DeviceArray<float>::poisoned(src.size());
  max_pool_forward(stream, Numbers::exact, shape, map.data(), out.data(), winners.data());
  max_pool_backward(stream, Numbers::exact, shape, diff.data(), winners.data(), gradient.data(),
                    false);
  return std::pair(out.read(), gradient.read());
}

/// As if they were there. Windows of one number are zero padding itself.
TEST(MaxPoolKernels, SeeZerosOutside) {
  const MapShape map{5, 4, 24};
  const Zeros zeros{1, 2, 2, 1};
  for (const auto& [size, stride] : {std::pair{3, 2}, {2, 2}, {4, 3}, {1, 1}}) {
    const MapShape whole{8, 7, 24}, dst{(8 - size) / stride + 1, (7 - size) / stride + 1, 24};
    const auto src = tied_numbers(2 * map.size(), 1);
    const auto [out, gradient] =
        max_pooled({2, map, dst, size, stride, zeros.top, zeros.left, true}, src);
    const auto [expected, around] =
        max_pooled({2, whole, dst, size, stride}, surrounded(src, map, 2, zeros));
    expect_same_values(out, expected);
    auto inside = surrounded(std::vector<float>(src.size(), 1), map, 2, zeros);
    for (std::size_t i = 0; i < inside.size(); ++i) inside[i] *= around[i];
    expect_same_values(surrounded(gradient, map, 2, zeros), inside);
  }
}

/// Output and gradient of a max pool and a ReLU behind it: as one kernel each way, or as two.
auto pool_and_relu(Numbers numbers, const PoolCase& c, const std::vector<float>& src, bool as_one) {
  const Stream stream = test_stream().get();
  const auto diff_dst = rounded(numbers, random_floats(c.dst_numbers(), 2));
  const auto before = rounded(numbers, random_floats(c.src_numbers(), 3));
  const PoolMaps maps(numbers, c.images, c.window(), c.channels, {src, diff_dst, before}, true);
  const auto winners = DeviceArray<std::uint8_t>::poisoned(maps.dst_size);
  max_pool_forward(stream, numbers, c.window(), maps.src.data(), maps.dst.data(), winners.data(),
                   as_one);
  if (!as_one) {
    auto *const dst = maps.dst.data(), *const diff = maps.diff_dst.data();
    activate(stream, numbers, model::Relu{}, maps.dst_size, dst, dst);
    activate_backward(stream, numbers, model::Relu{}, maps.dst_size, dst, diff, diff, false);
  }
  max_pool_backward(stream, numbers, c.window(), maps.diff_dst.data(), winners.data(),
                    maps.diff_src.data(), true);
  return std::tuple(maps.dst.read(), maps.diff_src.read());
}

TEST(MaxPoolKernels, HaveTheirReluWithThem) {
  for (const PoolCase& c : {PoolCase{2, 7, 5, 21, 2, 2, model::Padding::valid},
                            PoolCase{2, 7, 5, 3, 3, 2, model::Padding::same}}) {
    for (const Numbers numbers : kAllNumbers) {
      for (const auto& src :
           {tied_numbers(c.src_numbers(), 1), strange_numbers(c.src_numbers(), 4)}) {
        const auto [out, gradient] = pool_and_relu(numbers, c, src, true);
        const auto [expected_out, expected_gradient] = pool_and_relu(numbers, c, src, false);
        expect_same_values(out, expected_out);
        expect_same_values(gradient, expected_gradient);
      }
    }
  }
}

// 3 x 3 windows with stride 2 over 4 x 4, one row and column of them outside: written down by hand.
TEST(MaxPoolKernels, CountWinnersInTheirWindow) {
  const std::vector<float> src{1, 1, 9, 2,  //
                               4, 0, 9, 3,  //
                               5, 5, 0, 0,  //
                               5, 5, 0, 7};
  const WindowShape shape{1, {4, 4, 8}, {2, 2, 8}, 3, 2, 1, 1};
  const DeviceArray<float> map(with_padding(src, 1));
  const auto dst = DeviceArray<float>::poisoned(32);
  const auto winners = DeviceArray<std::uint8_t>::poisoned(32);
  max_pool_forward(test_stream().get(), Numbers::exact, shape, map.data(), dst.data(),
                   winners.data());
  const auto values = dst.read();
  const auto places = winners.read();
  const float expected[] = {4, 9, 5, 9};
  // Rows and columns -1 .. 1 and 1 .. 3 of src: the window's row * 3 + its column.
  const int expected_places[] = {2 * 3 + 1, 1 * 3 + 1, 1 * 3 + 1, 0 * 3 + 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(values[8 * i], expected[i]);
    EXPECT_EQ(places[8 * i], expected_places[i]);
  }
}

/// Sums are floats, and rounded once.
void expect_near(Numbers numbers, const std::vector<float>& actual,
                 const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double bound = 1e-6 + unit_roundoff(numbers) * std::abs(expected[i]);
    ASSERT_NEAR(actual[i], expected[i], bound) << "element " << i;
  }
}

void expect_average_pool(Numbers numbers, const PoolCase& c) {
  SCOPED_TRACE(word_of(numbers) + (", " + c.name()));
  const auto src = rounded(numbers, random_floats(c.src_numbers(), 1));
  const auto diff_dst = rounded(numbers, random_floats(c.dst_numbers(), 2));
  const auto before = rounded(numbers, random_floats(c.src_numbers(), 3));
  for (const bool add : {false, true}) {
    const auto [dst, diff_src] = twice([&] {
      const WindowShape shape = c.window();
      const PoolMaps maps(numbers, c.images, shape, c.channels, {src, diff_dst, before}, add);
      average_pool_forward(test_stream().get(), numbers, shape, maps.src.data(), maps.dst.data());
      average_pool_backward(test_stream().get(), numbers, shape, maps.diff_dst.data(),
                            maps.diff_src.data(), add);
      return std::tuple(maps.dst.read(), maps.diff_src.read());
    });
    const auto [expected_dst, expected_diff] = reference_pool<double, model::AveragePool>(
        c, src, diff_dst, add ? before : std::vector<float>(before.size()));
    expect_near(numbers, without_padding(dst, c.channels), expected_dst);
    expect_near(numbers, without_padding(diff_src, c.channels), expected_diff);
  }
}

TEST(AveragePoolKernels, AreTheReference) {
  for (const Numbers numbers : kAllNumbers) {
    for (const PoolCase& c : pool_cases(numbers)) expect_average_pool(numbers, c);
  }
}

struct GlobalCase {
  int images, height, width, channels;
};

/// Means of every channel of every image.
std::vector<double> means(const GlobalCase& c, const std::vector<float>& src) {
  const auto channels = static_cast<std::size_t>(c.channels);
  const auto positions = static_cast<std::size_t>(c.height * c.width);
  std::vector<double> sums(static_cast<std::size_t>(c.images) * channels);
  for (std::size_t i = 0; i < src.size(); ++i) {
    sums[i / (positions * channels) * channels + i % channels] +=
        static_cast<double>(src[i]) / static_cast<double>(positions);
  }
  return sums;
}

/// The gradient of each number, added to `before`.
std::vector<double> gradients_of_means(const GlobalCase& c, const std::vector<float>& diff_dst,
                                       const std::vector<float>& before) {
  const auto channels = static_cast<std::size_t>(c.channels);
  const auto positions = static_cast<std::size_t>(c.height * c.width);
  std::vector<double> gradients(before.begin(), before.end());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::size_t at = i / (positions * channels) * channels + i % channels;
    gradients[i] += static_cast<double>(diff_dst[at]) / static_cast<double>(positions);
  }
  return gradients;
}

void expect_global_pool(Numbers numbers, const GlobalCase& c) {
  SCOPED_TRACE(std::string(word_of(numbers)) + ", " + std::to_string(c.height) + " x " +
               std::to_string(c.width) + " x " + std::to_string(c.channels));
  const auto positions = static_cast<std::size_t>(c.height * c.width);
  const std::size_t pooled = static_cast<std::size_t>(c.images * c.channels);
  const MapShape shape{c.height, c.width, padded_channels(c.channels)};
  const WindowShape whole{c.images, shape, {1, 1, shape.channels}};
  const auto src = rounded(numbers, random_floats(pooled * positions, 1));
  const auto before = rounded(numbers, random_floats(src.size(), 3));
  const auto diff_dst = rounded(numbers, random_floats(pooled, 2));
  for (const bool add : {false, true}) {
    const auto [dst, diff_src] = twice([&] {
      const PoolMaps maps(numbers, c.images, whole, c.channels, {src, diff_dst, before}, add);
      global_average_pool_forward(test_stream().get(), numbers, c.images, shape, maps.src.data(),
                                  maps.dst.data());
      global_average_pool_backward(test_stream().get(), numbers, c.images, shape,
                                   maps.diff_dst.data(), maps.diff_src.data(), add);
      return std::tuple(maps.dst.read(), maps.diff_src.read());
    });
    expect_near(numbers, without_padding(dst, c.channels), means(c, src));
    expect_near(numbers, without_padding(diff_src, c.channels),
                gradients_of_means(c, diff_dst, add ? before : std::vector<float>(before.size())));
  }
}

TEST(GlobalAveragePoolKernels, AreMeans) {
  for (const Numbers numbers : kAllNumbers) {
    for (const GlobalCase& c :
         {GlobalCase{2, 1, 1, 5}, GlobalCase{3, 5, 7, 1}, GlobalCase{2, 5, 7, 21},
          GlobalCase{1, 9, 40, 3}, GlobalCase{2, 4, 4, 264}}) {
      expect_global_pool(numbers, c);
    }
  }
}

// Without memory: whatever was launched would be a fault.
TEST(PoolKernels, LaunchNothingForNoImages) {
  const Stream stream = test_stream().get();
  const WindowShape shape{0, {4, 4, 8}, {2, 2, 8}, 2, 2, 0, 0};
  max_pool_forward(stream, Numbers::exact, shape, nullptr, nullptr, nullptr);
  max_pool_backward(stream, Numbers::exact, shape, nullptr, nullptr, nullptr, false);
  average_pool_forward(stream, Numbers::exact, shape, nullptr, nullptr);
  average_pool_backward(stream, Numbers::exact, shape, nullptr, nullptr, true);
  global_average_pool_forward(stream, Numbers::exact, 0, shape.src, nullptr, nullptr);
  global_average_pool_backward(stream, Numbers::exact, 0, shape.src, nullptr, nullptr, false);
  test_stream().synchronize();
}

}  // namespace
}  // namespace cputrain::cuda
