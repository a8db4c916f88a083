#include "backends/cuda/kernels/products/convolution_windows.h"
#include "backends/cuda/kernels/products/gemm_slopes.h"
#include "backends/cuda/kernels/products/position_classes.h"

/// diff_src[position][input channel] = sum over the taps that cover it, and output channels, of
/// diff_dst * weights: a convolution of diff_dst with transposed weights, input channels first. A
/// part for each class of positions. Where there is one part alone it can make slopes, too.
namespace cputrain::cuda {
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
  struct Square {  // a number more in a row: columns are read from different banks
    Stored numbers[kSide][kSide + 1];
  };
  auto& square = shared<Square>();
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
      if (input < inputs && output + i < outputs) square.numbers[down + i][across] = *from;
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
    if (output < outputs && input + i < inputs) *to = square.numbers[across][down + i];
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
