#include "cuda/probes/loops/emulated_loops.h"

#include "backends/cuda/kernels/products/gemm.h"
#include "cuda/probes/loops/transposed_operands.h"

namespace cputrain::cuda::probes {
namespace {

template <class Loop, class Tile, Parts kParts, class Iterator, class Problem>
__global__ void loop_kernel(Problem problem, bool own_rows, int steps, float* tiles) {
  const auto nothing = [] {};
  run_block<Loop, Tile, kParts, Iterator>(problem, own_rows, steps, tiles, nothing, nothing);
}

template <class Loop, class Tile, Parts kParts, class Iterator, class Problem>
void launch_loop(Stream stream, const Problem& problem, const LoopArguments& of) {
  launch(stream, "loop", loop_kernel<Loop, Tile, kParts, Iterator, Problem>, grid_of(of.blocks),
         dim3(Tile::kThreads), Loop::kMemoryBytes, problem, of.own_rows, of.steps, of.tiles);
}

/// A loop on rows and columns that lie one behind the other.
template <class N, class Tile, class Loop, Parts kParts = Parts::all>
EmulatedLoop window_loop(const std::string& name, int instructions = 0) {
  const auto launch = [](Stream stream, const LoopArguments& of) {
    const int rows = (of.own_rows ? of.blocks : 1) * Tile::kRows;
    launch_loop<Loop, Tile, kParts, WindowIterator<N, Tile>>(
        stream, product_of_short_rows<N>(rows, Tile::kColumns, of.steps, of.a, of.b), of);
  };
  return {name,  N::kNumbers, Tile::kRows,  Tile::kColumns, false,
          false, false,       instructions, launch};
}
template <class N, class Tile, Parts kParts = Parts::all>
EmulatedLoop warp_loop(const std::string& name, int instructions = 0) {
  return window_loop<N, Tile, WarpLoop<N, Tile, WindowIterator<N, Tile>>, kParts>(name,
                                                                                  instructions);
}
template <class N, class Tile, class FormOfA = RowByRow, class FormOfB = RowByRow>
EmulatedLoop group_loop(const std::string& name) {
  using Iterator = WindowIterator<N, Tile>;
  return window_loop<N, Tile, GroupLoop<N, Tile, Iterator, FormOfA, FormOfB>>(name);
}

/// A loop on columns, and perhaps rows, that lie side by side.
template <class Tile, class Iterator, class Loop>
EmulatedLoop operand_loop(const std::string& name, bool transposed_a) {
  const auto launch = [](Stream stream, const LoopArguments& of) {
    launch_loop<Loop, Tile, Parts::all, Iterator>(stream, MatrixProduct{of.a, of.b}, of);
  };
  return {name, Numbers::bf16, Tile::kRows, Tile::kColumns, transposed_a, true, true, 0, launch};
}
template <class Tile, class FormOfB = DepthByDepth>
EmulatedLoop half_transposed_loop(const std::string& name) {
  using Iterator = MatrixIterator<Tile, DepthInside<Tile::kRows>, Panels<Tile::kColumns>>;
  using Loop = GroupLoop<Bf16Numbers, Tile, Iterator, RowByRow, FormOfB>;
  return operand_loop<Tile, Iterator, Loop>(name, false);
}
template <class Tile, class FormOfA = DepthByDepth>
EmulatedLoop transposed_group_loop(const std::string& name) {
  using Iterator = MatrixIterator<Tile, Panels<Tile::kRows>, Panels<Tile::kColumns>>;
  using Loop = GroupLoop<Bf16Numbers, Tile, Iterator, FormOfA, DepthByDepth>;
  return operand_loop<Tile, Iterator, Loop>(name, true);
}
template <class Tile>
EmulatedLoop transposed_warp_loop(const std::string& name) {
  using Iterator = MatrixIterator<Tile, RowsInside<Bf16Numbers, Tile::kRows>,
                                  RowsInside<Bf16Numbers, Tile::kColumns>>;
  return operand_loop<Tile, Iterator, WarpLoop<Bf16Numbers, Tile, Iterator>>(name, true);
}

using Small = GroupTile<64, 64, 1, 2>;
using Long = GroupTile<128, 64, 1, 2>;
using Large = GroupTile<128, 128, 1, 1>;
using Wide = GroupTile<128, 256, 2, 2>;

struct WrongStride : RowByRow {
  static constexpr PieceDistances kDistances{kChunkBytes, kPieceBytes / 2};
};
struct WrongSwizzle : RowByRow {
  static constexpr unsigned kSwizzle = kSwizzle128 + 1;
};
struct WrongAdvance : RowByRow {
  static constexpr int kInstructionBytes = kChunkBytes;
};
struct SwappedDistances : DepthByDepth {
  static constexpr PieceDistances kDistances{kPieceBytes, kPanelBytes};
};
struct WrongDepth : DepthByDepth {
  static constexpr int kInstructionBytes = 8 * kStepBytes;
};
struct NotTransposed : DepthByDepth {
  static constexpr bool kTransposed = false;
};
/// Copies begin to a stage whose products nobody has waited for.
struct TooFewStages : Small {
  static constexpr int kStages = kAhead + 1;
};
/// Patterns do not begin with their 1024 bytes.
struct ShiftedStages : Small {
  struct Stage {
    alignas(128) unsigned char a[kRows * kStepBytes];
    alignas(128) unsigned char gap[128];
    alignas(128) unsigned char b[kColumns * kStepBytes];
  };
};

}  // namespace

std::vector<EmulatedLoop> right_loops() {
  return {warp_loop<Bf16Numbers, TileOf<kTile128x128>>("mma bf16 128x128"),
          warp_loop<Tf32Numbers, TileOf<kTile256x64>>("mma tf32 256x64"),
          group_loop<Bf16Numbers, Small>("wgmma bf16 64x64"),
          group_loop<Bf16Numbers, Long>("wgmma bf16 128x64"),
          group_loop<Bf16Numbers, Large>("wgmma bf16 128x128"),
          group_loop<Bf16Numbers, Wide>("wgmma bf16 128x256"),
          group_loop<Tf32Numbers, Small>("wgmma tf32 64x64"),
          group_loop<Tf32Numbers, Large>("wgmma tf32 128x128"),
          group_loop<Tf32Numbers, Wide>("wgmma tf32 128x256"),
          half_transposed_loop<Small>("wgmma bf16 64x64, b transposed"),
          half_transposed_loop<Large>("wgmma bf16 128x128, b transposed"),
          transposed_group_loop<Large>("wgmma bf16 128x128, transposed"),
          transposed_group_loop<Wide>("wgmma bf16 128x256, transposed"),
          transposed_warp_loop<TileOf<kTile128x128>>("mma bf16 128x128, transposed")};
}

std::vector<EmulatedLoop> partial_loops() {
  constexpr int kOf128x128 = kTile128x128.stages * kInstructionsOfStep;
  constexpr int kOf128x64 = kTile128x64.stages * kInstructionsOfStep;
  constexpr int kOfSmall = Small::kStages * kInstructionsOfStep;
  using SmallLoop =
      GroupLoop<Bf16Numbers, Small, WindowIterator<Bf16Numbers, Small>, RowByRow, RowByRow>;
  return {warp_loop<Bf16Numbers, TileOf<kTile128x128>, Parts::products>("products alone", 1),
          warp_loop<Tf32Numbers, TileOf<kTile128x64>, Parts::products>("products alone, tf32", 1),
          warp_loop<Bf16Numbers, TileOf<kTile128x128>, Parts::loads_and_products>("without copies",
                                                                                  kOf128x128),
          warp_loop<Tf32Numbers, TileOf<kTile128x64>, Parts::loads_and_products>(
              "without copies, tf32", kOf128x64),
          window_loop<Bf16Numbers, Small, SmallLoop, Parts::loads_and_products>(
              "wgmma without copies", kOfSmall)};
}

std::vector<EmulatedLoop> loops_of_loads() {
  return {warp_loop<Bf16Numbers, TileOf<kTile64x64>, Parts::loads>("loads alone"),
          warp_loop<Bf16Numbers, TileOf<kTile64x64>, Parts::loads_and_copies>("loads and copies"),
          warp_loop<Tf32Numbers, TileOf<kTile256x64>, Parts::loads_and_copies>(
              "loads and copies, tf32")};
}

std::vector<EmulatedLoop> wrong_loops() {
  return {group_loop<Bf16Numbers, Small, WrongStride>("stride of A"),
          group_loop<Bf16Numbers, Small, RowByRow, WrongStride>("stride of B"),
          group_loop<Tf32Numbers, Small, RowByRow, WrongStride>("stride of B, tf32"),
          group_loop<Bf16Numbers, Small, RowByRow, WrongSwizzle>("swizzle"),
          group_loop<Bf16Numbers, Small, WrongAdvance>("advance of A"),
          group_loop<Bf16Numbers, Small, RowByRow, WrongAdvance>("advance of B"),
          group_loop<Bf16Numbers, ShiftedStages>("boundary of B"),
          group_loop<Bf16Numbers, TooFewStages>("stages"),
          half_transposed_loop<Large, SwappedDistances>("distances of panels"),
          half_transposed_loop<Small, WrongDepth>("advance of panels"),
          half_transposed_loop<Small, NotTransposed>("transposed B taken for plain"),
          transposed_group_loop<Large, WrongDepth>("advance of A's panels")};
}

}  // namespace cputrain::cuda::probes
