#pragma once

#include "backends/cuda/kernels/batch_norm/channel_parts.h"
#include "backends/cuda/kernels/batch_norm/factors.h"
#include "backends/cuda/kernels/products/gemm_sums.h"

namespace cputrain::cuda {

/// Besides, slopes of the batch norm whose diff_dst is stored. Not of slices.
template <class N>
struct AddAndSlopes : BiasAndAdd<N> {
  static constexpr bool kSums = true;

  ChannelSums sums;  ///< without values: none are made
  BatchNormPass pass;
  const typename N::Stored *src, *output;  ///< as sum_slopes() reads them
};

template <class N>
class Epilogue<AddAndSlopes<N>> : public Epilogue<BiasAndAdd<N>> {
  using Base = Epilogue<BiasAndAdd<N>>;

 public:
  using typename Base::Sums;
  using OfColumn = Slopes<ExactNumbers, 1>;

  CPUTRAIN_DEVICE Epilogue(const AddAndSlopes<N>& parameters, int column)
      : Base(parameters, column),
        to_(parameters),
        known_(Normalization<N>::load(parameters.pass.factors, column)) {}

  CPUTRAIN_DEVICE void begin(const Sums&, std::int64_t) {}

  /// The gradient is zero in memory where `output` is, and else ends in the sums alone.
  CPUTRAIN_DEVICE void store(const Sums& sums, std::int64_t at) {
    Sums diffs = Base::result(sums, at);
    const Sums src = Sums::load(to_.src + at);
    const Sums made = to_.output ? Sums::load(to_.output + at) : Sums::all(0);
#pragma unroll
    for (int i = 0; i < Sums::kCount; ++i) {
      if (to_.output && !(made.of[i] > 0)) diffs.of[i] = 0;
    }
    diffs.store(to_.values + at);
    diffs = diffs.stored();
#pragma unroll
    for (int i = 0; i < Sums::kCount; ++i) {
      const bool dead = to_.pass.relu && !to_.output && !(known_.normalized(i, src.of[i]) > 0);
      const float diff = dead ? 0 : diffs.of[i];
      own_.sum.of[i] += diff;
      own_.product.of[i] += diff * (src.of[i] - known_.mean.of[i]);
    }
  }

  template <int kPitch>
  CPUTRAIN_DEVICE void leave(float (*rows)[kPitch], int line, int column) const {
#pragma unroll
    for (int i = 0; i < Sums::kCount; ++i) {
      rows[3 * line][column + i] = own_.sum.of[i];
      rows[3 * line + 1][column + i] = own_.product.of[i];
    }
  }

  template <int kLines, int kPitch>
  CPUTRAIN_DEVICE static OfColumn of_lines(const float (*rows)[kPitch], int column, int) {
    OfColumn made = OfColumn::none();
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      made.merge({{rows[3 * line][column]}, {rows[3 * line + 1][column]}});
    }
    return made;
  }

 private:
  const AddAndSlopes<N>& to_;
  Normalization<N> known_;
  Slopes<N> own_ = Slopes<N>::none();
};

}  // namespace cputrain::cuda
