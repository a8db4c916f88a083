#include <cmath>
#include <map>

#include "emulated/device_fixture.h"
#include "emulated/test_kernels.h"

/// Kernels in which nothing is wrong compute what they should, in every order, without a report.
namespace cputrain::emulated {
namespace {

constexpr std::size_t kNumbers = 1000;

struct Results {
  std::vector<float> x, y;
  std::vector<std::uint8_t> pixels, bytes;
  std::vector<double> sums;
  std::vector<unsigned> words;
};

std::vector<float> some_floats() {
  std::vector<float> x(kNumbers);
  for (std::size_t i = 0; i < kNumbers; ++i) x[i] = static_cast<float>(i * 7 % 31) - 11;
  return x;
}

std::vector<std::uint8_t> some_pixels() {
  std::vector<std::uint8_t> pixels(kNumbers);
  for (std::size_t i = 0; i < kNumbers; ++i) pixels[i] = static_cast<std::uint8_t>(i * 13 % 256);
  return pixels;
}

/// Reads back `floats`, `bytes` and `sums` elements of what the kernel wrote.
Results run(const std::string& kernel, std::size_t floats, std::size_t bytes, std::size_t sums) {
  Results r;
  r.x = some_floats();
  r.pixels = some_pixels();
  const DeviceArray<float> x(r.x, "x"), y(kNumbers, "y");
  const DeviceArray<std::uint8_t> pixels(r.pixels, "pixels"), of_bytes(kNumbers, "bytes");
  const DeviceArray<double> of_sums(64, "sums");
  const DeviceArray<unsigned> words(std::vector<unsigned>(128, 0), "words");
  const cuda::OwnedStream stream;
  launch_right(kernel, stream.get(),
               {x.data(), pixels.data(), y.data(), of_sums.data(), words.data(), of_bytes.data()});
  stream.synchronize();
  r.y = y.values(floats);
  r.bytes = of_bytes.values(bytes);
  r.sums = of_sums.values(sums);
  r.words = words.values();
  return r;
}

template <class T, class F>
void expect_elements(const std::vector<T>& values, std::size_t size, const F& f) {
  ASSERT_EQ(values.size(), size);
  for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(values[i], f(i)) << "element " << i;
}

class RightKernels : public OnDevice, public testing::WithParamInterface<Settings> {
 protected:
  RightKernels() { restart(GetParam()); }
};

using Floats = std::vector<float>;

/// Kernels of which each element of y follows from x.
struct Elementwise {
  const char* kernel;
  std::size_t size;
  float (*y)(const Floats& x, std::size_t i);
};

const std::vector<Elementwise> kElementwise{
    {"neighbours_in_warp", 64, [](const Floats& x, std::size_t i) { return x[i ^ 1]; }},
    {"double_buffer", 64,
     [](const Floats& x, std::size_t i) { return x[63 - i] + x[127 - i] + x[191 - i]; }},
    {"halves_of_warps", 64,
     [](const Floats& x, std::size_t i) {
       return i % 32 >= 16 ? x[i ^ 8] : x[i % 32 == 15 ? i : i + 1];
     }},
    {"copies_with_zeros", 64, [](const Floats& x, std::size_t i) { return i < 60 ? x[i] : 0; }},
    {"all_read_one", 64,
     [](const Floats& x, std::size_t i) { return x[0] + static_cast<float>(i); }},
    {"three_dimensions", 288, [](const Floats&, std::size_t i) { return static_cast<float>(i); }},
    {"reads_constants", 64, [](const Floats&, std::size_t i) {
       float sum = 0;
       for (std::size_t j = i; j < i + 4; ++j) sum += static_cast<float>(1 << j % 8);
       return sum;
     }}};

TEST_P(RightKernels, ElementsFollowFromThoseThatWereRead) {
  for (const Elementwise& e : kElementwise) {
    SCOPED_TRACE(e.kernel);
    const Results r = run(e.kernel, e.size, 0, 0);
    expect_elements(r.y, e.size, [&](std::size_t i) { return e.y(r.x, i); });
  }
}

TEST_P(RightKernels, BlocksMayAddAtomically) {
  EXPECT_EQ(run("atomics_of_blocks", 0, 0, 0).words[0], 3u * 64);
}

TEST_P(RightKernels, BallotGathersAllLanes) {
  const Results r = run("ballots", 0, 0, 0);
  unsigned lanes[2] = {};
  for (unsigned i = 0; i < 64; ++i) lanes[i / 32] |= (i % 3 == 0 ? 1u : 0u) << i % 32;
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(r.words[i], lanes[i / 32]);
}

TEST_P(RightKernels, NeighbouringBytesAreNoRace) {
  const Results r = run("neighbouring_bytes", 0, kNumbers, 0);
  expect_elements(r.bytes, kNumbers,
                  [&](std::size_t i) { return static_cast<std::uint8_t>(r.pixels[i] + 1); });
}

TEST_P(RightKernels, SumsInDoubleWithWideIndices) {
  const Results r = run("sums_in_double", 0, 0, 64);
  expect_elements(r.sums, 64, [&](std::size_t i) {
    double sum = 0;
    for (std::size_t j = i; j < kNumbers; j += 64) {
      sum += static_cast<double>(r.x[j]) / static_cast<double>(j + 1);
    }
    return sum;
  });
}

TEST_P(RightKernels, ShufflesAddABlock) {
  const Results r = run("sum_of_block", 1, 0, 0);
  float sum = 0;
  for (std::size_t i = 0; i < 64; ++i) sum += r.x[i];
  EXPECT_EQ(r.y[0], sum);  // small integers
}

TEST_P(RightKernels, FunctionsAreTheDevices) {
  const Results r = run("functions_of_devices", 64, 0, 0);
  for (std::size_t i = 0; i < 64; ++i) {
    const double least = std::min<double>(r.x[i], 3);
    const double root = std::sqrt(static_cast<double>(std::max<std::size_t>(i, 4)));
    EXPECT_NEAR(r.y[i], 2 * least + 1 / root, 1e-5) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, RightKernels,
                         testing::Values(Settings{}, Settings{.order = Order::reverse},
                                         Settings{.order = Order::random, .seed = 1},
                                         Settings{.order = Order::random, .seed = 2},
                                         Settings{.gpu = Gpu::a100}),
                         [](const auto& test) { return "number" + std::to_string(test.index); });

TEST(RightKernelsTest, AllAreTested) { EXPECT_EQ(right_kernels().size(), 13u); }

}  // namespace
}  // namespace cputrain::emulated
