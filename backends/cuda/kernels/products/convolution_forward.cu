#include "backends/cuda/kernels/products/convolution_windows.h"
#include "backends/cuda/kernels/products/gemm_moments.h"

/// dst[window][output channel] = sum over taps of src * weights, with bias and another map.
/// Moments are those of what is stored; slices make none.
namespace cputrain::cuda {
namespace {

struct Forward {
  static constexpr bool kDepthInside = true;

  template <class N>
  struct Problem {
    WindowProduct product;
    GemmResult<BiasAddAndMoments<N>> result;

    CPUTRAIN_DEVICE const WindowProduct& part(int) const { return product; }
    CPUTRAIN_DEVICE std::int64_t row_of_result(const WindowProduct&, int row) const { return row; }
  };

  template <class N, class Tile>
  using Iterator = WindowIterator<N, Tile>;
  template <class N, class Tile>
  using BiasGradient = NoBiasGradient;
};

}  // namespace

void convolution_forward(Stream stream, const ConvolutionCall& call, const void* src,
                         const void* weights, const float* bias, const void* added, void* dst,
                         const ChannelSums& moments) {
  const WindowShape& s = call.shape;
  with_numbers(call.numbers, [&]<class N>(N) {
    using Stored = typename N::Stored;
    const BiasAddAndMoments<N> epilogue{
        {static_cast<Stored*>(dst), bias, static_cast<const Stored*>(added)}, moments};
    const GemmResult<BiasAddAndMoments<N>> result{epilogue, call.workspace, s.outputs()};
    launch_product<Forward, N>(stream, "convolution_forward",
                               {{s.windows(), s.dst.channels, s.taps(), windows_on_src<N>(s, src),
                                 taps_on_src<N>(s), weights},
                                result},
                               forward_extent(s), call.plan.forward);
  });
}

}  // namespace cputrain::cuda
