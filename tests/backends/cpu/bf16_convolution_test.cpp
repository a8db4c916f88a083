#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/dnnl_primitives.h"
#include "backends/cpu/kernels/instruction_set.h"
#include "tests/backends/cpu/numbers.h"

/// The library's kernels of bf16, one sum at a time: each is given factors of its own, so that an
/// error is that kernel's alone.
namespace cputrain::cpu::bf16_convolution_test {
namespace {

using Numbers = std::vector<float>;

/// The nearest bf16, ties to even: the upper half of the float's bits.
float rounded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t odd = bits >> 16 & 1;
  return std::bit_cast<float>((bits + 0x7fff + odd) & 0xffff0000);
}

struct Sizes {
  std::string name;
  int images, in, out, height, width;  ///< of the source
  int kernel, stride, pad;
  int dst(int size) const { return (size + 2 * pad - kernel) / stride + 1; }
};

const Sizes kOrdinary{"ordinary", 2, 16, 32, 5, 7, 3, 1, 1};

ConvolutionProblem problem_of(const Sizes& s) {
  const compute::SampleLayout src{{s.height, s.width, s.in}, s.in == 3 ? 1 : 16};
  const compute::SampleLayout dst{{s.dst(s.height), s.dst(s.width), s.out}, 16};
  return {s.images, src, dst, s.kernel, s.stride, {s.pad, s.pad}, {s.pad, s.pad}, true};
}

/// Row by row, as the plain loops below read them.
std::size_t map_index(const Shape& shape, int image, int c, int y, int x) {
  return ((static_cast<std::size_t>(image) * shape.channels + c) * shape.height + y) * shape.width +
         x;
}
std::size_t map_size(const ConvolutionProblem& p, const compute::SampleLayout& layout) {
  return layout.shape.size() * static_cast<std::size_t>(p.images);
}
std::size_t pixels_of(const compute::SampleLayout& layout) {
  return static_cast<std::size_t>(layout.shape.height) * layout.shape.width;
}

/// Calls f(index in src, in the kernel, in dst) for every product of the convolution.
template <class F>
void for_products(const ConvolutionProblem& p, const F& f) {
  const Shape &src = p.src.shape, &dst = p.dst.shape;
  for (int image = 0; image < p.images; ++image)
    for (int out = 0; out < dst.channels; ++out)
      for (int in = 0; in < src.channels; ++in)
        for (int y = 0; y < dst.height; ++y)
          for (int x = 0; x < dst.width; ++x)
            for (int row = 0; row < p.kernel; ++row)
              for (int column = 0; column < p.kernel; ++column) {
                const int from_y = y * p.stride + row - p.rows.before,
                          from_x = x * p.stride + column - p.columns.before;
                if (from_y < 0 || from_y >= src.height || from_x < 0 || from_x >= src.width)
                  continue;
                const std::size_t kernel = static_cast<std::size_t>(out) * src.channels + in;
                f(map_index(src, image, in, from_y, from_x),
                  (kernel * p.kernel + row) * p.kernel + column, map_index(dst, image, out, y, x));
              }
}

/// Sums in double, and how far a sum in float may be off.
class Sums {
 public:
  explicit Sums(std::size_t count) : sums_(count), sizes_(count), terms_(count) {}

  void add(std::size_t i, double a, double b = 1) {
    sums_[i] += a * b;
    sizes_[i] += std::abs(a * b);
    ++terms_[i];
  }

  /// In whatever order they are added, no term passes more additions than there are terms, and each
  /// rounds to 2^-24 of a partial sum. tdpbf16ps (AMX) makes two chains of 16 and adds them to each
  /// other and to the result, vdpbf16ps a chain of 2: fewer. A float product rounds once more.
  double bound(std::size_t i) const { return (terms_[i] + 2) * 0x1p-24 * sizes_[i]; }

  /// Says which is the worst, and of how many.
  void expect_near(const Numbers& results, const std::string& what) const {
    ASSERT_EQ(results.size(), sums_.size()) << what;
    std::size_t wrong = 0, worst = 0;
    const auto off = [&](std::size_t i) { return std::abs(results[i] - sums_[i]); };
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (off(i) <= bound(i)) continue;  // NaN goes on
      ++wrong;
      if (!(off(i) - bound(i) <= off(worst) - bound(worst))) worst = i;
    }
    EXPECT_EQ(wrong, 0U) << "of " << sums_.size() << " sums: " << what << "; the worst, at "
                         << worst << ", is " << results[worst] << ", not " << sums_[worst] << " +- "
                         << bound(worst);
  }

  bool finds(const Numbers& results) const {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (!(std::abs(results[i] - sums_[i]) <= bound(i))) return true;
    }
    return false;
  }

  Numbers in_float() const { return {sums_.begin(), sums_.end()}; }

 private:
  std::vector<double> sums_, sizes_;
  std::vector<int> terms_;
};

class Bf16Convolution : public ::testing::TestWithParam<Sizes> {
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

  /// Filled with NaN: what a kernel leaves alone shows.
  Tensor result(int name, const dnnl::memory::desc& plain, const dnnl::memory::desc& desc) const {
    return convert(name, plain, Numbers(plain.get_size() / sizeof(float), std::nanf("")), desc);
  }
  void run(const Operation& operation, const std::vector<Call::Argument>& arguments) {
    std::vector<std::byte> scratch(operation.scratchpad + 64);
    Call(context_, operation, aligned(scratch), arguments).run();
  }
  /// What the sums are of: where the library has no kernel of bf16, floats stay floats.
  static double factor(const Operation& operation, float value) {
    return operation.bf16 ? rounded(value) : value;
  }
  static std::string said(const char* direction, const Operation& operation) {
    return std::string(direction) + " by " + operation.implementation +
           (operation.bf16 ? "" : ", in float");
  }

  const DnnlContext context_ = make_dnnl_context();
  const ConvolutionProblem problem_ = problem_of(GetParam());
  const dnnl::memory::desc plain_src_ = plain(problem_.src), plain_dst_ = plain(problem_.dst),
                           bias_desc_ = vector_desc(problem_.dst.shape.channels),
                           plain_kernel_{{problem_.dst.shape.channels, problem_.src.shape.channels,
                                          problem_.kernel, problem_.kernel},
                                         NumberType::f32,
                                         dnnl::memory::format_tag::oihw};
  const Numbers map_ = random_numbers(map_size(problem_, problem_.src), 1),
                kernel_ = random_numbers(plain_kernel_.get_size() / sizeof(float), 2),
                diff_ = random_numbers(map_size(problem_, problem_.dst), 3),
                bias_ = random_numbers(static_cast<std::size_t>(problem_.dst.shape.channels), 4);

 private:
  dnnl::memory::desc plain(const compute::SampleLayout& layout) const {
    return activation_desc({layout.shape, 1}, problem_.images);
  }
};

/// Factors are rounded once; products and sums are as exact as those of floats.
TEST_P(Bf16Convolution, ForwardAddsProductsOfRoundedFactors) {
  const Operation operation =
      convolution_forward(context_, problem_, ConvolutionAlgorithm::bf16, PostOp::none);
  const Tensor src = convert(DNNL_ARG_SRC, plain_src_, map_, operation.src),
               weights = convert(DNNL_ARG_WEIGHTS, plain_kernel_, kernel_, operation.weights),
               bias = convert(DNNL_ARG_BIAS, bias_desc_, bias_, bias_desc_),
               dst = result(DNNL_ARG_DST, plain_dst_, operation.dst);
  run(operation, {src.argument, weights.argument, bias.argument, dst.argument});
  Sums sums(diff_.size());
  for_products(problem_, [&](std::size_t from, std::size_t weight, std::size_t to) {
    sums.add(to, factor(operation, map_[from]), factor(operation, kernel_[weight]));
  });
  const std::size_t pixels = pixels_of(problem_.dst);
  for (std::size_t i = 0; i < diff_.size(); ++i) sums.add(i, bias_[i / pixels % bias_.size()]);
  sums.expect_near(read(dst, plain_dst_), said("forward", operation));
}

TEST_P(Bf16Convolution, BackwardDataAddsProductsOfRoundedFactors) {
  const Operation operation =
      convolution_backward_data(context_, problem_, ConvolutionAlgorithm::bf16);
  const Tensor diff = convert(DNNL_ARG_DIFF_DST, plain_dst_, diff_, operation.dst),
               weights = convert(DNNL_ARG_WEIGHTS, plain_kernel_, kernel_, operation.weights),
               src = result(DNNL_ARG_DIFF_SRC, plain_src_, operation.src);
  run(operation, {diff.argument, weights.argument, src.argument});
  Sums sums(map_.size());
  for_products(problem_, [&](std::size_t to, std::size_t weight, std::size_t from) {
    sums.add(to, factor(operation, diff_[from]), factor(operation, kernel_[weight]));
  });
  sums.expect_near(read(src, plain_src_), said("backward data", operation));
}

TEST_P(Bf16Convolution, BackwardWeightsAddsProductsOfRoundedFactors) {
  const Operation operation =
      convolution_backward_weights(context_, problem_, ConvolutionAlgorithm::bf16);
  const Tensor src = convert(DNNL_ARG_SRC, plain_src_, map_, operation.src),
               diff = convert(DNNL_ARG_DIFF_DST, plain_dst_, diff_, operation.dst),
               weights = result(DNNL_ARG_DIFF_WEIGHTS, plain_kernel_, operation.weights),
               bias = result(DNNL_ARG_DIFF_BIAS, bias_desc_, bias_desc_);
  run(operation, {src.argument, diff.argument, weights.argument, bias.argument});
  Sums sums(kernel_.size()), bias_sums(bias_.size());
  for_products(problem_, [&](std::size_t pixel, std::size_t to, std::size_t gradient) {
    sums.add(to, factor(operation, map_[pixel]), factor(operation, diff_[gradient]));
  });
  const std::size_t pixels = pixels_of(problem_.dst);
  for (std::size_t i = 0; i < diff_.size(); ++i) {
    bias_sums.add(i / pixels % bias_.size(), factor(operation, diff_[i]));
  }
  sums.expect_near(read(weights, plain_kernel_), said("backward weights", operation));
  bias_sums.expect_near(read(bias, bias_desc_), said("the bias's gradient", operation));
}

TEST(Bf16Kernels, OfOrdinaryLayersAreThere) {
  if (!supports_bf16()) GTEST_SKIP() << "this machine has no bf16 instructions";
  constexpr auto kBf16 = ConvolutionAlgorithm::bf16;
  const DnnlContext context = make_dnnl_context();
  const ConvolutionProblem problem = problem_of(kOrdinary);
  for (const Operation& operation : {convolution_forward(context, problem, kBf16, PostOp::none),
                                     convolution_backward_data(context, problem, kBf16),
                                     convolution_backward_weights(context, problem, kBf16)}) {
    EXPECT_TRUE(operation.bf16) << operation.implementation;
    EXPECT_EQ(operation.implementation.find("amx") != std::string::npos, supports_amx())
        << operation.implementation;
  }
}

/// The library would take plain loops for the gradient of these weights.
TEST(Bf16Kernels, WithoutOneItIsFloats) {
  if (!supports_bf16()) GTEST_SKIP() << "this machine has no bf16 instructions";
  const compute::SampleLayout samples{{20, 20, 3}, 1}, padded{{18, 18, 20}, 16};
  const ConvolutionProblem first{2, samples, padded, 3, 1, {0, 0}, {0, 0}, true};
  const Operation operation =
      convolution_backward_weights(make_dnnl_context(), first, ConvolutionAlgorithm::bf16);
  EXPECT_FALSE(operation.implementation.starts_with("ref")) << operation.implementation;
  EXPECT_EQ(operation.bf16, operation.implementation.find("bf16") != std::string::npos);
}

/// Forward, of factors that are rounded.
Sums sums_of(const ConvolutionProblem& problem, const Numbers& map, const Numbers& kernel) {
  Sums sums(map_size(problem, problem.dst));
  for_products(problem, [&](std::size_t src, std::size_t weight, std::size_t dst) {
    sums.add(dst, rounded(map[src]), rounded(kernel[weight]));
  });
  return sums;
}

class Bf16Bounds : public ::testing::TestWithParam<Sizes> {};

TEST_P(Bf16Bounds, FindMistakes) {
  const ConvolutionProblem problem = problem_of(GetParam());
  const auto in = static_cast<std::size_t>(problem.src.shape.channels);
  const auto taps = static_cast<std::size_t>(problem.kernel * problem.kernel);
  const Numbers map = random_numbers(map_size(problem, problem.src), 1);
  const Numbers kernel =
      random_numbers(static_cast<std::size_t>(problem.dst.shape.channels) * in * taps, 2);
  const Sums right = sums_of(problem, map, kernel);
  EXPECT_FALSE(right.finds(right.in_float()));

  Numbers swapped = kernel, dropped = kernel, nearly = right.in_float();
  for (std::size_t i = 0; i < taps; ++i) std::swap(swapped[i], swapped[taps + i]);
  for (std::size_t i = taps / 2; i < dropped.size(); i += taps) dropped[i] = 0;
  *std::ranges::max_element(nearly) *= 1.01F;
  EXPECT_TRUE(right.finds(sums_of(problem, map, swapped).in_float())) << "two channels of a filter";
  EXPECT_TRUE(right.finds(sums_of(problem, map, dropped).in_float())) << "the tap in the middle";
  EXPECT_TRUE(right.finds(nearly)) << "one number, 1 % off";
  EXPECT_TRUE(right.finds(Numbers(nearly.size(), std::nanf("")))) << "NaN";
}

const Sizes kSizes[] = {kOrdinary,
                        {"of_pixels", 3, 3, 10, 6, 6, 3, 1, 0},
                        {"of_one_pixel_each", 2, 16, 48, 9, 11, 1, 1, 0},
                        {"stride_2", 3, 16, 16, 9, 11, 3, 2, 1},
                        {"odd_channels", 3, 20, 7, 9, 11, 3, 1, 1},
                        {"one_filter", 3, 16, 1, 9, 11, 3, 1, 0},
                        {"wider_than_the_map", 3, 16, 32, 4, 4, 13, 1, 6},
                        {"wider_than_the_map_odd_channels", 3, 10, 7, 4, 4, 13, 1, 6}};
std::string name_of(const ::testing::TestParamInfo<Sizes>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Sizes, Bf16Convolution, ::testing::ValuesIn(kSizes), name_of);
INSTANTIATE_TEST_SUITE_P(Sizes, Bf16Bounds, ::testing::ValuesIn(kSizes), name_of);

}  // namespace
}  // namespace cputrain::cpu::bf16_convolution_test
