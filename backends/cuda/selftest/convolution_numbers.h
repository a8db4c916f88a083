#pragma once

#include "backends/cuda/selftest/maps.h"
#include "backends/cuda/selftest/plain_convolution.h"
#include "backends/cuda/selftest/window_case.h"

namespace cputrain::cuda {

/// What a convolution's kernels read, as they have it: with padding, which is zero.
struct ConvolutionNumbers {
  Floats src, weights, bias, diff_dst;
};

/// `reals`(count) gives that many numbers.
template <class Reals>
ConvolutionNumbers convolution_numbers(const WindowCase& c, Reals reals) {
  const WindowShape shape = c.window();
  const auto kernel = static_cast<std::size_t>(shape.size * shape.columns());
  const auto inputs = static_cast<std::size_t>(c.channels);
  const auto outputs = static_cast<std::size_t>(c.outputs);
  ConvolutionNumbers made;
  made.src = with_padding(reals(static_cast<std::size_t>(shape.positions()) * inputs), c.channels);
  made.weights = with_padding(reals(outputs * kernel * inputs), c.channels);
  made.weights.resize(static_cast<std::size_t>(shape.dst.channels) *
                      static_cast<std::size_t>(shape.taps()));
  // Weights of pixels behind the window.
  const auto row = static_cast<std::size_t>(shape.columns() * shape.src.channels);
  const auto used = static_cast<std::size_t>(shape.size * shape.src.channels / shape.pixels);
  for (std::size_t i = 0; i < made.weights.size(); ++i) {
    if (i % row >= used) made.weights[i] = 0;
  }
  made.bias = with_padding(reals(outputs), c.outputs);
  made.diff_dst =
      with_padding(reals(static_cast<std::size_t>(shape.windows()) * outputs), c.outputs);
  return made;
}

}  // namespace cputrain::cuda
