// A main loop of wgmma on the product's tiles in shared memory: is it right, and how fast beside
// the product's own of mma.sync: E19.
#include "cuda/probes/groups.h"
#include "cuda/probes/loops/loop_bench.h"
#include "cuda/probes/loops/transposed_operands.h"

namespace cputrain::cuda::probes {
namespace {

constexpr double kGainWanted = 1.15;  // below it a second main loop is not worth its lines

__global__ void has_wgmma_kernel(bool* has) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  *has = true;
#endif
}

/// Empty where the instruction is there.
std::string why_not() {
  if (properties_of_device().major != 9) return "only Hopper has the instruction";
  const TestStream stream;
  const TestArray<char> has(sizeof(bool));
  has_wgmma_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<bool*>(has.data()));
  stream.wait("a kernel");
  return has.read()[0] ? "" : "this program was not compiled for sm_90a";
}

struct Speed {
  double multiply_adds = 0;  ///< of a multiprocessor, in a clock
  double teraflops = 0;      ///< of all of them, at the clock of short loops
  double megahertz = 0;      ///< that clock
};

template <class Tile>
Speed speed_of(const LoopPace& pace, int depth_of_step) {
  const double in_clock = double{Tile::kRows} * Tile::kColumns * depth_of_step / pace.cycles;
  return {in_clock, 2e-6 * in_clock * pace.megahertz * multiprocessors(), pace.megahertz};
}

/// Two where they fit.
template <class Loop>
unsigned blocks_each(const LoopBench& bench) {
  return bench.fits<Loop>(2) ? 2 : 1;
}

std::size_t other_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t others = 0;
  for (std::size_t i = 0; i < a.size(); ++i) others += a[i] != b[i];
  return others;
}

/// What one loop says.
struct Found {
  Speed own_rows, same_rows, without_copies;
  std::size_t wrong = 0, sums = 0;  ///< of integers and of fractions
  std::vector<float> fractions{};   ///< sums of a tile
};

template <class N>
class WindowProbe {
 public:
  explicit WindowProbe(LoopBench& bench)
      : bench_(bench),
        integers_(integers, 2 * bench.multiprocessors() * kMostRows, kMostColumns, kLoopSteps),
        fractions_(fractions, kMostRows, kMostColumns, kFewSteps) {}

  template <class Tile>
  Found ask_warps() {
    return ask<Tile, WarpLoop<N, Tile, WindowIterator<N, Tile>>>();
  }
  template <class Tile>
  Found ask_groups() {
    return ask<Tile, GroupLoop<N, Tile, WindowIterator<N, Tile>, RowByRow, RowByRow>>();
  }

 private:
  static constexpr std::size_t kMostRows = 256, kMostColumns = 256;
  static constexpr int kFewSteps = 16;

  template <class Tile, class Loop>
  Found ask() {
    const unsigned each = blocks_each<Loop>(bench_);
    const auto speed = [&]<Parts kParts = Parts::all>(const WindowNumbers<N>& numbers,
                                                      const LoopRun& run) {
      const LoopPace pace = bench_.pace<Loop, Tile, kParts, WindowIterator<N, Tile>>(
          numbers.template product<Tile>(run.own_rows), run);
      return speed_of<Tile>(pace, kDepthOfStep<N>);
    };
    Found found;
    const std::vector<std::size_t> blocks{0, each * bench_.multiprocessors() - 1};
    found.without_copies =
        speed.template operator()<Parts::loads_and_products>(integers_, {each, false});
    found.same_rows = speed(integers_, {each, false});
    found.own_rows = speed(integers_, {each, true});
    found.wrong = integers_.template wrong_sums_of<Tile>(bench_, blocks, true, 0);
    static_cast<void>(speed(fractions_, {each, false, kFewSteps}));
    found.wrong += fractions_.template wrong_sums_of<Tile>(bench_, blocks, false,
                                                           kFewSteps * kInstructionsOfStep);
    found.sums = 2 * blocks.size() * Tile::kRows * Tile::kColumns;
    found.fractions = bench_.tile(0, Tile::kRows * Tile::kColumns);
    return found;
  }

  LoopBench& bench_;
  WindowNumbers<N> integers_, fractions_;
};

/// The quickest tile of each instruction.
struct Best {
  double speed = 0;
  std::string tile{};

  void look_at(const Speed& other, const std::string& name) {
    if (other.multiply_adds > speed) *this = {other.multiply_adds, name};
  }
};

void say_speed(const std::string& name, const Speed& speed, const Found& wgmma, const Found& mma,
               const std::string& compared) {
  const std::string bits =
      wgmma.fractions.size() == mma.fractions.size()
          ? words(", %zu of %zu of fractions have other bits than mma.sync's",
                  other_bits(wgmma.fractions, mma.fractions), mma.fractions.size())
          : "";
  say({.name = name,
       .question = "E19",
       .value = speed.teraflops,
       .unit = "TFLOP/s",
       .verdict = verdict_of(wgmma.wrong == 0 && mma.wrong == 0),
       .text = words("%zu of %zu sums are wrong (of mma.sync %zu)%s; %.0f TFLOP/s at %.0f MHz, %s",
                     wgmma.wrong, wgmma.sums, mma.wrong, bits.c_str(), speed.teraflops,
                     speed.megahertz, compared.c_str())});
}

double times(const Speed& a, const Speed& b) { return a.multiply_adds / b.multiply_adds; }

/// `mma`: of the tile of the same size, or of half the size.
void say_groups(const std::string& name, const Found& wgmma, const Found& mma) {
  say_speed(name, wgmma.own_rows, wgmma, mma,
            words("%.2f times the %.0f of mma.sync on a %stile of this size; %.2f times where all "
                  "blocks copy the same lines, %.2f times without copies (%.0f TFLOP/s)",
                  times(wgmma.own_rows, mma.own_rows), mma.own_rows.teraflops,
                  wgmma.fractions.size() == mma.fractions.size() ? "" : "half ",
                  times(wgmma.same_rows, mma.same_rows),
                  times(wgmma.without_copies, mma.without_copies), wgmma.without_copies.teraflops));
}

void say_gain(const std::string& name, const Best& wgmma, const Best& mma, bool right) {
  const double gain = wgmma.speed / mma.speed;
  say({.name = name,
       .question = "E19",
       .value = gain,
       .unit = "times",
       .verdict = verdict_of(right && gain >= kGainWanted),
       .text =
           words("wgmma is %.2f times as fast as mma.sync, each on its best tile, %s and %s "
                 "(%.2f or more is assumed, and that all sums are right, which they are%s)",
                 gain, wgmma.tile.c_str(), mma.tile.c_str(), kGainWanted, right ? "" : " not")});
}

template <class N>
void ask_windows(LoopBench& bench) {
  WindowProbe<N> probe(bench);
  Best best_group, best_warp;
  bool right = true;
  Found mma;
  const auto warps = [&]<class Tile>(Tile, const char* tile) {
    mma = probe.template ask_warps<Tile>();
    best_warp.look_at(mma.own_rows, tile);
  };
  const auto groups = [&]<class Tile>(Tile, const char* tile) {
    const Found wgmma = probe.template ask_groups<Tile>();
    best_group.look_at(wgmma.own_rows, tile);
    right = right && wgmma.wrong == 0;
    say_groups(words("wgmma-%s-%s", N::kWord, tile), wgmma, mma);
  };
  warps(TileOf<kTile256x64>{}, "256x64");
  warps(TileOf<kTile64x64>{}, "64x64");
  groups(GroupTile<64, 64, 1, 2>{}, "64x64");
  warps(TileOf<kTile128x64>{}, "128x64");
  groups(GroupTile<128, 64, 1, 2>{}, "128x64");
  warps(TileOf<kTile128x128>{}, "128x128");
  groups(GroupTile<128, 128, 1, 1>{}, "128x128");
  groups(GroupTile<128, 256, 2, 2>{}, "128x256");
  // The fence may wait for copies that are on their way: none is, one step ahead.
  groups(GroupTile<128, 256, 2, 1>{}, "128x256-one-ahead");
  say_gain(words("wgmma-%s-gain", N::kWord), best_group, best_warp, right);
}

/// Operands of bf16 that lie depth by depth: weights as they are kept, for the data's gradient;
/// both operands of the weights' gradient. All blocks copy the same lines.
class TransposedProbe {
 public:
  TransposedProbe(LoopBench& bench, bool transposed_a)
      : bench_(bench), transposed_a_(transposed_a) {}

  template <class Tile, class Iterator, class Loop>
  Found ask() {
    Found found;
    const auto run = [&](WindowNumbers<Bf16Numbers>::Maker make, int steps) {
      constexpr std::size_t kDepth = kStepsOfRows * kDepthOfStep<Bf16Numbers>;
      const Matrix a = make(Numbers::bf16, Tile::kRows, kDepth, 1);
      const Matrix b = make(Numbers::bf16, Tile::kColumns, kDepth, 2);
      const TestArray<std::byte> there_a(a.bytes(transposed_a_)), there_b(b.bytes(true));
      const LoopPace pace = bench_.pace<Loop, Tile, Parts::all, Iterator>(
          MatrixProduct{there_a.data(), there_b.data()},
          {.blocks_each = blocks_each<Loop>(bench_), .steps = steps});
      found.fractions = bench_.tile(0, Tile::kRows * Tile::kColumns);
      found.sums += found.fractions.size();
      const double instructions = make == integers ? 0 : steps * kInstructionsOfStep;
      const PlainColumns plain(b, Tile::kColumns, static_cast<std::size_t>(steps), kDepth);
      found.wrong +=
          wrong_sums(plain.tile(a, 0, Tile::kRows), found.fractions.data(), instructions);
      return speed_of<Tile>(pace, kDepthOfStep<Bf16Numbers>);
    };
    found.same_rows = run(integers, kLoopSteps);
    static_cast<void>(run(fractions, 16));
    return found;
  }

 private:
  LoopBench& bench_;
  bool transposed_a_;
};

template <class GroupA, class WarpA, class FormOfA>
void ask_transposed(LoopBench& bench, bool transposed_a, const char* name) {
  using Tile = GroupTile<128, 128, 1, 1>;
  using OfGroups = MatrixIterator<Tile, GroupA, Panels<128>>;
  using OfWarps = MatrixIterator<TileOf<kTile128x128>, WarpA, RowsInside<Bf16Numbers, 128>>;
  TransposedProbe probe(bench, transposed_a);
  const Found wgmma =
      probe.ask<Tile, OfGroups, GroupLoop<Bf16Numbers, Tile, OfGroups, FormOfA, DepthByDepth>>();
  const Found mma = probe.ask<TileOf<kTile128x128>, OfWarps,
                              WarpLoop<Bf16Numbers, TileOf<kTile128x128>, OfWarps>>();
  say_speed(name, wgmma.same_rows, wgmma, mma,
            words("%.2f times the %.0f of mma.sync with ldmatrix.trans, where all blocks copy the "
                  "same lines",
                  times(wgmma.same_rows, mma.same_rows), mma.same_rows.teraflops));
}

}  // namespace

void ask_wgmma() {
  if (const std::string why = why_not(); !why.empty()) {
    say({.name = "wgmma", .question = "E19", .text = "does not apply: " + why});
    return;
  }
  LoopBench bench;
  ask_windows<Bf16Numbers>(bench);
  ask_windows<Tf32Numbers>(bench);
  ask_transposed<DepthInside<128>, DepthInside<128>, RowByRow>(bench, false,
                                                               "wgmma-bf16-columns-transposed");
  ask_transposed<Panels<128>, RowsInside<Bf16Numbers, 128>, DepthByDepth>(
      bench, true, "wgmma-bf16-both-transposed");
}

}  // namespace cputrain::cuda::probes
