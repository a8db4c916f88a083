#include "backends/cpu/dnnl_primitives.h"

#include <gtest/gtest.h>

namespace cputrain::cpu::dnnl_primitives_test {
namespace {

/// As behind the last halving of a ResNet on images of 32 or 64 pixels. Plain loops ("ref") take
/// seconds for them.
TEST(Kernels, OfMapsOfAFewPixelsAreNoPlainLoops) {
  const DnnlContext dnnl = make_dnnl_context();
  for (const int size : {1, 2, 3}) {
    const compute::SampleLayout map{{size, size, 512}, preferred_block()};
    const ConvolutionProblem small{4, map, map, 3, 1, {1, 1}, {1, 1}, true};
    constexpr auto kDirect = ConvolutionAlgorithm::direct;
    for (const Operation& made : {convolution_forward(dnnl, small, kDirect, PostOp::none),
                                  convolution_backward_data(dnnl, small, kDirect),
                                  convolution_backward_weights(dnnl, small, kDirect)}) {
      EXPECT_FALSE(made.implementation.starts_with("ref")) << size << " " << made.implementation;
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::dnnl_primitives_test
