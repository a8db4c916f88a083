#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "backends/cpu/dnnl_primitives.h"
#include "backends/cpu/kernels/instruction_set.h"
#include "core/random.h"

namespace cputrain::cpu {
namespace {

constexpr int kImages = 2, kIn = 16, kOut = 32, kHeight = 5, kWidth = 7, kTaps = 3;

using Numbers = std::vector<float>;

/// From -1 to 1.
Numbers random_numbers(std::size_t count, std::uint64_t seed) {
  const RandomStream random(seed, Purpose::noise);
  Numbers numbers;
  for (std::uint32_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(random.at(i)[0]) * 0x1p-31f - 1);
  }
  return numbers;
}

/// The nearest bf16, ties to even: the upper half of the float's bits.
double rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t odd = bits >> 16 & 1;
  return std::bit_cast<float>((bits + 0x7fff + odd) & 0xffff0000);
}

/// Row by row, as the plain loops below read them.
std::size_t map_index(int channels, int image, int c, int y, int x) {
  return static_cast<std::size_t>(((image * channels + c) * kHeight + y) * kWidth + x);
}
std::size_t kernel_index(int out, int in, int row, int column) {
  return static_cast<std::size_t>(((out * kIn + in) * kTaps + row) * kTaps + column);
}

/// Calls f(index in src, in the kernel, in dst) for every product of the convolution.
template <class F>
void for_products(const F& f) {
  for (int image = 0; image < kImages; ++image)
    for (int out = 0; out < kOut; ++out)
      for (int in = 0; in < kIn; ++in)
        for (int y = 0; y < kHeight; ++y)
          for (int x = 0; x < kWidth; ++x)
            for (int row = 0; row < kTaps; ++row)
              for (int column = 0; column < kTaps; ++column) {
                const int from_y = y + row - 1, from_x = x + column - 1;
                if (from_y < 0 || from_y >= kHeight || from_x < 0 || from_x >= kWidth) continue;
                f(map_index(kIn, image, in, from_y, from_x), kernel_index(out, in, row, column),
                  map_index(kOut, image, out, y, x));
              }
}

class Bf16Convolution : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!supports_bf16()) GTEST_SKIP() << "this machine has no bf16 instructions";
  }

  /// A tensor in plain order, of another type and layout for the library.
  struct Tensor {
    std::vector<std::byte> data;
    Call::Argument argument;
  };
  Tensor convert(int name, const dnnl::memory::desc& from, const Numbers& numbers,
                 const dnnl::memory::desc& to) const {
    Tensor tensor{std::vector<std::byte>(to.get_size() + 64), {}};
    auto* const data = aligned(tensor.data);
    const Operation operation = reorder(context_, from, to);
    std::vector<std::byte> scratch(operation.scratchpad);
    Call(context_, operation, scratch.data(),
         {{DNNL_ARG_FROM, from, const_cast<float*>(numbers.data())}, {DNNL_ARG_TO, to, data}})
        .run();
    tensor.argument = {name, to, data};
    return tensor;
  }
  Numbers read(const Tensor& tensor, const dnnl::memory::desc& as) const {
    Numbers numbers(as.get_size() / sizeof(float));
    const Operation operation = reorder(context_, tensor.argument.desc, as);
    std::vector<std::byte> scratch(operation.scratchpad);
    Call(context_, operation, scratch.data(),
         {{DNNL_ARG_FROM, tensor.argument.desc, tensor.argument.data},
          {DNNL_ARG_TO, as, numbers.data()}})
        .run();
    return numbers;
  }
  static std::byte* aligned(std::vector<std::byte>& data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data.data());
    return data.data() + (64 - address % 64) % 64;
  }

  Numbers run(const Operation& operation, const Tensor& a, const Tensor& b, int name,
              const dnnl::memory::desc& result, const dnnl::memory::desc& plain) {
    EXPECT_TRUE(operation.bf16) << operation.implementation;
    EXPECT_EQ(operation.implementation.find("amx") != std::string::npos, supports_amx())
        << operation.implementation;
    Tensor out = convert(name, plain, Numbers(plain.get_size() / sizeof(float)), result);
    std::vector<std::byte> scratch(operation.scratchpad + 64);
    Call(context_, operation, aligned(scratch), {a.argument, b.argument, out.argument}).run();
    return read(out, plain);
  }

  static void expect_sums(const Numbers& results, const std::vector<double>& sums) {
    ASSERT_EQ(results.size(), sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(results[i], sums[i], 2e-5) << i;
  }

  const DnnlContext context_ = make_dnnl_context();
  const SampleLayout src_{{kHeight, kWidth, kIn}, 16}, dst_{{kHeight, kWidth, kOut}, 16};
  const ConvolutionProblem problem_{kImages, src_, dst_, kTaps, 1, {1, 1}, {1, 1}, false};
  const dnnl::memory::desc plain_src_ = activation_desc({{kHeight, kWidth, kIn}, 1}, kImages),
                           plain_dst_ = activation_desc({{kHeight, kWidth, kOut}, 1}, kImages),
                           plain_kernel_{{kOut, kIn, kTaps, kTaps},
                                         NumberType::f32,
                                         dnnl::memory::format_tag::oihw};
  const Numbers map_ = random_numbers(kImages * kIn * kHeight * kWidth, 1),
                kernel_ = random_numbers(kOut * kIn * kTaps * kTaps, 2),
                diff_ = random_numbers(kImages * kOut * kHeight * kWidth, 3);
};

/// The library would take plain loops for the gradient of these weights.
TEST_F(Bf16Convolution, WithoutAKernelItIsFloats) {
  const SampleLayout samples{{20, 20, 3}, 1}, padded{{18, 18, 20}, 16};
  const ConvolutionProblem first{kImages, samples, padded, kTaps, 1, {0, 0}, {0, 0}, true};
  const Operation operation =
      convolution_backward_weights(context_, first, ConvolutionAlgorithm::bf16);
  EXPECT_FALSE(operation.implementation.starts_with("ref")) << operation.implementation;
  EXPECT_EQ(operation.bf16, operation.implementation.find("bf16") != std::string::npos);
}

/// Factors are rounded once; products and sums are as exact as those of floats.
TEST_F(Bf16Convolution, ForwardAddsProductsOfRoundedFactors) {
  const Operation operation =
      convolution_forward(context_, problem_, ConvolutionAlgorithm::bf16, Activation::none);
  const Numbers results = run(operation, convert(DNNL_ARG_SRC, plain_src_, map_, operation.src),
                              convert(DNNL_ARG_WEIGHTS, plain_kernel_, kernel_, operation.weights),
                              DNNL_ARG_DST, operation.dst, plain_dst_);
  std::vector<double> sums(diff_.size());
  for_products([&](std::size_t src, std::size_t weight, std::size_t dst) {
    sums[dst] += rounded(map_[src]) * rounded(kernel_[weight]);
  });
  expect_sums(results, sums);
}

TEST_F(Bf16Convolution, BackwardDataAddsProductsOfRoundedFactors) {
  const Operation operation =
      convolution_backward_data(context_, problem_, ConvolutionAlgorithm::bf16);
  const Numbers results =
      run(operation, convert(DNNL_ARG_DIFF_DST, plain_dst_, diff_, operation.dst),
          convert(DNNL_ARG_WEIGHTS, plain_kernel_, kernel_, operation.weights), DNNL_ARG_DIFF_SRC,
          operation.src, plain_src_);
  std::vector<double> sums(map_.size());
  for_products([&](std::size_t src, std::size_t weight, std::size_t dst) {
    sums[src] += rounded(diff_[dst]) * rounded(kernel_[weight]);
  });
  expect_sums(results, sums);
}

TEST_F(Bf16Convolution, BackwardWeightsAddsProductsOfRoundedFactors) {
  const Operation operation =
      convolution_backward_weights(context_, problem_, ConvolutionAlgorithm::bf16);
  const Numbers results = run(operation, convert(DNNL_ARG_SRC, plain_src_, map_, operation.src),
                              convert(DNNL_ARG_DIFF_DST, plain_dst_, diff_, operation.dst),
                              DNNL_ARG_DIFF_WEIGHTS, operation.weights, plain_kernel_);
  std::vector<double> sums(kernel_.size());
  for_products([&](std::size_t src, std::size_t weight, std::size_t dst) {
    sums[weight] += rounded(map_[src]) * rounded(diff_[dst]);
  });
  expect_sums(results, sums);
}

}  // namespace
}  // namespace cputrain::cpu
