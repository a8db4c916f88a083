#include <cassert>

#include "backends/cuda/kernels/batch_norm/channel_parts.h"
#include "backends/cuda/kernels/products/convolution_windows.h"

/// diff_src[position][input channel] = sum over the taps that cover it, and output channels, of
/// diff_dst * weights: a convolution of diff_dst with transposed weights, input channels first. A
/// part for each class of positions. Where there is one part alone it can make slopes, too.
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

namespace {

/// Classes differ by one in their positions, and in their taps.
struct ClassDivisor {
  Divisor most, less;

  static ClassDivisor of(int all, int stride) {
    const int count = pieces(all, stride);
    return {Divisor(count), Divisor(count > 1 ? count - 1 : 1)};
  }
  CPUTRAIN_DEVICE const Divisor& by(int count) const {
    return count == most.number() ? most : less;
  }
};

struct BackwardData {
  static constexpr bool kDepthInside = true;

  struct Part : WindowProduct {
    PositionClass of_rows, of_columns;
  };

  template <class N>
  struct Problem {
    int images, channels;           ///< src's
    PositionClasses rows, columns;  ///< src's
    ClassDivisor high, wide, tap_columns;
    ChunkMap dst;
    Divisor dst_chunks;
    const void* weights;  ///< [class][input channel][row][column][output channel]
    GemmResult<AddAndSlopes<N>> result;

    CPUTRAIN_DEVICE Part part(int number) const {
      const int stride = rows.stride;
      const PositionClass of_rows = rows.of(number / stride),
                          of_columns = columns.of(number % stride);
      // Transposed weights lie by classes: those of earlier rows have all columns, then come
      // earlier classes of columns with this class's rows.
      const int before = of_rows.taps_before * columns.size + of_rows.taps * of_columns.taps_before;
      const int count = images * of_rows.count * of_columns.count;
      return {{count,
               channels,
               of_rows.taps * of_columns.taps * dst.chunks * kNumbersOfChunk<N>,
               {dst,
                count,
                {high.by(of_rows.count), wide.by(of_columns.count)},
                of_rows.first_window,
                of_columns.first_window,
                1,
                1},
               {of_rows.taps, tap_columns.by(of_columns.taps), dst_chunks, -1},
               chunk_of(weights, before * channels * dst.chunks)},
              of_rows,
              of_columns};
    }

    /// A class's positions are `stride` apart in src.
    CPUTRAIN_DEVICE std::int64_t row_of_result(const Part& part, int row) const {
      if (rows.stride == 1) return row;
      const Position at = part.windows.numbers.position(row);
      const int y = part.of_rows.first + at.row * rows.stride;
      const int x = part.of_columns.first + at.column * rows.stride;
      return offset_of_row(offset_of_row(at.image, rows.positions) + y, columns.positions) + x;
    }
  };

  template <class N, class Tile>
  using Iterator = WindowIterator<N, Tile>;
  template <class N, class Tile>
  using BiasGradient = NoBiasGradient;
};

constexpr int kSide = 32, kRowsAtOnce = 8;

/// A block transposes kSide input by kSide output channels of a tap. Inputs are along the
/// side of the grid that has no limit of 65535: dense layers read whole maps as channels.
template <class Stored>
__global__ void __launch_bounds__(kSide* kRowsAtOnce)
    transpose_weights_kernel(int inputs, int outputs, TransposedTaps taps, const Stored* weights,
                             Stored* transposed) {
  // A number more in a row: columns are read from different banks.
  auto& square = shared<Stored[kSide][kSide + 1]>();
  const BlockNumber block = BlockNumber::of_thread();
  const auto [across, down] = ThreadNumber::of_thread();
  const int first_input = block.x * kSide, first_output = block.z * kSide;
  const int tap = block.y, size = taps.size.number();
  {
    const int input = first_input + across, output = first_output + down;
    const std::int64_t pitch = offset_of_row(size * size, inputs);
    const Stored* from = weights + (output * pitch + offset_of_row(tap, inputs) + input);
#pragma unroll
    for (int i = 0; i < kSide; i += kRowsAtOnce, from += kRowsAtOnce * pitch) {
      if (input < inputs && output + i < outputs) square[down + i][across] = *from;
    }
  }
  __syncthreads();
  const int input = first_input + down, output = first_output + across;
  const TransposedTaps::Tap own = taps.tap(tap);
  const std::int64_t pitch = offset_of_row(own.taps, outputs);
  const std::int64_t first = offset_of_row(own.before, inputs) + own.number;
  Stored* to = transposed + (first * outputs + input * pitch + output);
#pragma unroll
  for (int i = 0; i < kSide; i += kRowsAtOnce, to += kRowsAtOnce * pitch) {
    if (output < outputs && input + i < inputs) *to = square[across][down + i];
  }
}

template <class N>
void transpose_weights(Stream stream, const WindowShape& s, const void* weights, void* transposed) {
  using Stored = typename N::Stored;
  const int inputs = s.src.channels, outputs = s.dst.channels;
  launch(stream, "transpose_weights", transpose_weights_kernel<Stored>,
         grid_of(pieces(inputs, kSide), s.size * s.size, pieces(outputs, kSide)),
         grid_of(kSide, kRowsAtOnce), 0, inputs, outputs, TransposedTaps::of(s.size, s.stride),
         static_cast<const Stored*>(weights), static_cast<Stored*>(transposed));
}

}  // namespace

void convolution_backward_data(Stream stream, const ConvolutionCall& call, const void* diff_dst,
                               const void* weights, void* diff_src, bool add,
                               const NormSlopes& slopes) {
  const WindowShape& s = call.shape;
  assert(s.pixels == 1);
  float* const transposed = call.workspace;
  with_numbers(call.numbers, [&]<class N>(N) {
    transpose_weights<N>(stream, s, weights, transposed);
    using Stored = typename N::Stored;
    auto* const values = static_cast<Stored*>(diff_src);
    const AddAndSlopes<N> epilogue{{values, nullptr, add ? values : nullptr},
                                   slopes.sums,
                                   slopes.pass,
                                   static_cast<const Stored*>(slopes.src),
                                   static_cast<const Stored*>(slopes.output)};
    const GemmResult<AddAndSlopes<N>> result{epilogue, transposed + s.weights(), s.inputs()};
    const ChunkMap dst = ChunkMap::of<N>(s.dst, diff_dst);
    launch_product<BackwardData, N>(stream, "convolution_backward_data",
                                    {s.images,
                                     s.src.channels,
                                     {s.src.height, s.top, s.size, s.stride},
                                     {s.src.width, s.left, s.size, s.stride},
                                     ClassDivisor::of(s.src.height, s.stride),
                                     ClassDivisor::of(s.src.width, s.stride),
                                     ClassDivisor::of(s.size, s.stride),
                                     dst,
                                     Divisor(dst.chunks),
                                     transposed,
                                     result},
                                    data_extent(s), call.plan.data);
  });
}

}  // namespace cputrain::cuda
