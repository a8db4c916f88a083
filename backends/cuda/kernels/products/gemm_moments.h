#pragma once

#include "backends/cuda/kernels/batch_norm/channel_parts.h"
#include "backends/cuda/kernels/products/gemm_sums.h"

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

}  // namespace cputrain::cuda
