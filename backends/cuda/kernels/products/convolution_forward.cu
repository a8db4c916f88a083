#include "backends/cuda/kernels/batch_norm/channel_parts.h"
#include "backends/cuda/kernels/products/convolution_windows.h"

/// dst[window][output channel] = sum over taps of src * weights, with bias and another map.
/// Moments are those of what is stored; slices make none.
namespace cputrain::cuda {

/// Besides, moments of what is stored. Not of slices.
template <class N>
struct BiasAddAndMoments : BiasAndAdd<N> {
  static constexpr bool kSums = true;

  ChannelSums sums;  ///< without values: none are made
};

/// A lane adds up distances from its warp's first row, which is one of those that are summed, so
/// that little cancels.
template <class N>
class Epilogue<BiasAddAndMoments<N>> : public Epilogue<BiasAndAdd<N>> {
  using Base = Epilogue<BiasAndAdd<N>>;

 public:
  using typename Base::Sums;
  using OfColumn = Moments<ExactNumbers, 1>;
  using Base::Base;

  CPUTRAIN_DEVICE void begin(const Sums& sums, std::int64_t at) {
    near_ = Base::result(sums, at).stored();
  }

  CPUTRAIN_DEVICE void store(const Sums& sums, std::int64_t at) {
    const Sums made = Base::store(sums, at).stored();
#pragma unroll
    for (int i = 0; i < Sums::kCount; ++i) {
      const float apart = made.of[i] - near_.of[i];
      sum_.of[i] += apart;
      squares_.of[i] += apart * apart;
    }
  }

  template <int kPitch>
  CPUTRAIN_DEVICE void leave(float (*rows)[kPitch], int line, int column) const {
#pragma unroll
    for (int i = 0; i < Sums::kCount; ++i) {
      rows[3 * line][column + i] = near_.of[i];
      rows[3 * line + 1][column + i] = sum_.of[i];
      rows[3 * line + 2][column + i] = squares_.of[i];
    }
  }

  template <int kLines, int kPitch>
  CPUTRAIN_DEVICE static OfColumn of_lines(const float (*rows)[kPitch], int column, int count) {
    float sum = 0, squares = 0;
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      sum += rows[3 * line + 1][column];
      squares += rows[3 * line + 2][column];
    }
    const float apart = sum / count, left = squares - sum * apart;
    return {static_cast<float>(count), {rows[0][column] + apart}, {left < 0 ? 0 : left}};
  }

 private:
  Sums near_ = Sums::all(0), sum_ = Sums::all(0), squares_ = Sums::all(0);
};

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
