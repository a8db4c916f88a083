#include "backends/cuda/kernels/products/convolution_windows.h"
#include "backends/cuda/kernels/warp_sums.h"

/// diff_weights[output channel][tap] = sum over windows of diff_dst * src, and diff_bias[output
/// channel] = sum over windows of diff_dst
namespace cputrain::cuda {
namespace {

struct BackwardWeights {
  static constexpr bool kDepthInside = false;

  template <class N>
  struct Problem {
    int rows, columns, depth;  ///< output channels, taps by input channels, windows
    Windows windows;
    Taps taps;
    const void* diff_dst;
    GemmResult<BiasAndAdd<ExactNumbers>> result;
    float* bias_sums;  ///< [slice][part][row]; null: not wanted
    int bias_parts;

    CPUTRAIN_DEVICE const Problem& part(int) const { return *this; }
    CPUTRAIN_DEVICE std::int64_t row_of_result(const Problem&, int row) const { return row; }
  };

  /// The predicated iterator. A is diff_dst: side by side are output channels. B is src by windows:
  /// side by side are taps. A thread copies one chunk of output channels and one tap of each of its
  /// windows. The table has the windows' corners, since all threads need them.
  template <class N, class Tile>
  class Iterator {
   public:
    using A = RowsInside<N, Tile::kRows>;
    using B = RowsInside<N, Tile::kColumns>;
    static constexpr int kTableWindows = 1024;
    [[maybe_unused]] static constexpr int kSteps = kTableWindows / kDepthOfStep<N>;
    struct Table {
      MapOffset windows[kTableWindows];
    };

    CPUTRAIN_DEVICE Iterator(const Problem<N>& problem, const TileOffset& tile)
        : problem_(problem),
          precomputed_(tile.begin * kDepthOfStep<N>),
          row_chunks_(problem.rows / kNumbersOfChunk<N>),
          chunks_of_step_(kDepthOfStep<N> * row_chunks_),
          depths_left_(problem.depth - precomputed_ - of_a_.depth) {
      keep(chunks_of_step_);
      const int chunk = tile.row / kNumbersOfChunk<N> + of_a_.chunk;
      diff_dst_ = (precomputed_ + of_a_.depth) * row_chunks_ + min(chunk, row_chunks_ - 1);
      const int tap = tile.column / kNumbersOfChunk<N> + of_b_.chunk;
      tap_ = problem.taps.offset(tap, problem.windows.map);
    }

    CPUTRAIN_DEVICE void precompute(Table& table, int steps) {
      const int depths = steps * kDepthOfStep<N>;
      const Windows& windows = problem_.windows;
#pragma unroll 1
      for (int i = thread_number(); i < depths; i += Tile::kThreads) {
        const int window = precomputed_ + i;
        table.windows[i] = window < windows.count ? windows.corner(window) : MapOffset::outside();
      }
      precomputed_ += depths;
      next_ = table.windows + of_b_.depth;
    }

    CPUTRAIN_DEVICE void copy(typename Tile::Stage& stage) {
      const ChunkMap& src = problem_.windows.map;
      MapOffset offsets[ShareOfB::kCopies];
#pragma unroll
      for (int i = 0; i < ShareOfB::kCopies; ++i) {
        offsets[i] = next_[i * ShareOfB::kDepthsAtOnce] + tap_;
      }
#pragma unroll
      for (int i = 0; i < ShareOfA::kCopies; ++i) {
        const int at = i * ShareOfA::kDepthsAtOnce;
        of_a_.copy(stage.a, i, chunk_of(problem_.diff_dst, diff_dst_ + at * row_chunks_),
                   at < depths_left_);
      }
#pragma unroll
      for (int i = 0; i < ShareOfB::kCopies; ++i) {
        of_b_.copy(stage.b, i, chunk_of(src.begin, offsets[i].chunk), src.has(offsets[i]));
      }
      depths_left_ -= kDepthOfStep<N>;
      diff_dst_ += chunks_of_step_;
      next_ += kDepthOfStep<N>;
    }

   private:
    using ShareOfA = typename A::template Share<Tile::kThreads>;
    using ShareOfB = typename B::template Share<Tile::kThreads>;

    const Problem<N>& problem_;
    int precomputed_;  ///< windows
    ShareOfA of_a_;
    ShareOfB of_b_;
    int row_chunks_, chunks_of_step_;
    int depths_left_;  ///< from the thread's first window of a step on
    int diff_dst_;     ///< its chunk of that
    MapOffset tap_;
    const MapOffset* next_;
  };

  /// Sums of A's rows, by products with ones. Of the warps that work on the same rows each has a
  /// step in so many, and stores a partial sum.
  template <class N, class Tile>
  class BiasGradient {
   public:
    CPUTRAIN_DEVICE BiasGradient(const Problem<N>& problem, const TileOffset& tile,
                                 const WarpOffset& warp)
        : problem_(problem),
          first_row_(tile.row + warp.row),
          lane_(warp.lane),
          fragments_(warp.row, warp.lane) {
      const int part = (tile.column + warp.column) / Tile::kWarpColumns;
      takes_part_ = problem.bias_sums && part < problem.bias_parts;
      steps_left_ = takes_part_ ? part : 1 << 30;
      sums_at_ = (tile.slice * problem.bias_parts + part) * problem.rows;
    }

    CPUTRAIN_DEVICE void add(const unsigned char* a) {
      // All lanes agree; the vote lets the compiler know.
      if (__any_sync(kAllLanes, --steps_left_ >= 0)) return;
      steps_left_ = problem_.bias_parts - 1;
      Sums<kFragments, 1> of_step{};
#pragma unroll 1
      for (int instruction = 0; instruction < kInstructionsOfStep; ++instruction) {
        RowFragments<kFragments> rows;
        fragments_.read(rows, a, instruction);
        Product<N>::add(of_step, rows, {{{Product<N>::kOne, Product<N>::kOne}}});
      }
#pragma unroll
      for (int i = 0; i < kFragments; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) sums_[i][half] += of_step.of[i][0][2 * half];
      }
    }

    /// All columns are the same: lanes of the first store theirs.
    CPUTRAIN_DEVICE void store() const {
      if (!takes_part_ || lane_ % 4 > 0) return;
#pragma unroll
      for (int i = 0; i < kFragments; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = first_row_ + RowsInside<N, Tile::kRows>::Order::row(i, half, lane_);
          if (row < problem_.rows) problem_.bias_sums[sums_at_ + row] = sums_[i][half];
        }
      }
    }

   private:
    static constexpr int kFragments = Tile::kWarpRows / 16;

    const Problem<N>& problem_;
    int first_row_, lane_;
    typename RowsInside<N, Tile::kRows>::Rows fragments_;
    bool takes_part_;
    int steps_left_;
    int sums_at_;
    float sums_[kFragments][2] = {};
  };
};

/// The last pixel in each row of windows lies behind them.
__global__ void __launch_bounds__(kPackThreads)
    clear_padding_kernel(int rows, int columns, float* diff_weights) {
  const int row = block_number() * kPackThreads + thread_number();
  if (row >= rows) return;
  float* const end = diff_weights + offset_of_row(row + 1, columns);
  *reinterpret_cast<float4*>(end - kChannelsOfPixel) = make_float4(0, 0, 0, 0);
}

}  // namespace

void convolution_backward_weights(Stream stream, const ConvolutionCall& call, const void* src,
                                  const void* diff_dst, float* diff_weights, float* diff_bias,
                                  bool add) {
  const WindowShape& s = call.shape;
  const GemmPlan& plan = call.plan.weights;
  const GemmResult<BiasAndAdd<ExactNumbers>> result{
      {diff_weights, nullptr, add ? diff_weights : nullptr}, call.workspace, s.weights()};
  float* const bias_sums = call.workspace + (plan.slices > 1 ? plan.slices * result.numbers : 0);
  with_numbers(call.numbers, [&]<class N>(N) {
    launch_product<BackwardWeights, N>(
        stream, "convolution_backward_weights",
        {s.dst.channels, s.taps(), s.windows(), windows_on_src<N>(s, src), taps_on_src<N>(s),
         diff_dst, result, diff_bias ? bias_sums : nullptr, call.plan.bias_parts},
        weights_extent(s), plan);
  });
  if (s.size % s.pixels > 0) {
    launch_row(stream, "clear_padding", clear_padding_kernel, 1, s.dst.channels * s.size,
               s.columns() * s.src.channels, diff_weights);
  }
  if (!diff_bias) return;
  const GemmResult<BiasAndAdd<ExactNumbers>> bias{
      {diff_bias, nullptr, add ? diff_bias : nullptr}, bias_sums, s.dst.channels};
  add_slices(stream, bias, plan.slices * call.plan.bias_parts, s.dst.channels);
}

}  // namespace cputrain::cuda
