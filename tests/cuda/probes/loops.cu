// What the main loop of matrix products takes, whole and in parts: mma.sync beside ldmatrix and
// cp.async in the ratio of the product's tiles: E18.
#include "cuda/probes/groups.h"
#include "cuda/probes/loops/assumed.h"
#include "cuda/probes/loops/loop_bench.h"

namespace cputrain::cuda::probes {
namespace {

constexpr double kQuarters = 4;  // of a multiprocessor, each with a tensor core

/// Cycles of a step by what of it is done, with 2 blocks of a multiprocessor and with 1.
struct Measured {
  double products[2], loads[2], loads_and_products[2], loads_and_copies[2], all[2];
  double own_rows;
  std::size_t wrong;
};

template <class N, class Tile>
Measured measured(LoopBench& bench, const WindowNumbers<N>& numbers) {
  using Iterator = WindowIterator<N, Tile>;
  using Loop = WarpLoop<N, Tile, Iterator>;
  const auto cycles = [&]<Parts kParts>(const LoopRun& run) {
    const WindowProduct product = numbers.template product<Tile>(run.own_rows);
    return bench.pace<Loop, Tile, kParts, Iterator>(product, run).cycles;
  };
  Measured m{};
  for (const unsigned blocks : {2u, 1u}) {
    const LoopRun run{.blocks_each = blocks};
    const std::size_t i = 2 - blocks;
    m.products[i] = cycles.template operator()<Parts::products>(run);
    m.loads[i] = cycles.template operator()<Parts::loads>(run);
    m.loads_and_products[i] = cycles.template operator()<Parts::loads_and_products>(run);
    m.loads_and_copies[i] = cycles.template operator()<Parts::loads_and_copies>(run);
    m.all[i] = cycles.template operator()<Parts::all>(run);
  }
  m.own_rows = cycles.template operator()<Parts::all>({.own_rows = true});
  const std::size_t last = 2 * bench.multiprocessors() - 1;
  m.wrong = numbers.template wrong_sums_of<Tile>(bench, {0, last}, true, 0);
  return m;
}

/// What tiles have to say of the figures that the model takes for granted.
struct Figures {
  std::vector<double> counted;  ///< parts of bytes that take time of shared memory
  double most_bytes = 0;        ///< that it moved in a clock
  double beside_loads = 0, others = 0;
};

template <class Tile>
void say_tile(const std::string& name, const Measured& m, const LoopBounds& bounds) {
  constexpr StepCost kCost = cost_of_step<Tile>();
  constexpr double kMoved = kCost.bytes_loaded + kCost.bytes_copied;
  const auto each = [&](double cycles) { return cycles * kQuarters / kCost.products; };
  const double whole = each(m.all[0]);
  const bool foreseen = bounds.least() <= 1.03 * whole && whole <= bounds.most();
  Answer answer{.name = name, .question = "E18", .value = whole, .unit = "cycles"};
  if (assumed_on_hopper(whole) || m.wrong) answer.verdict = verdict_of(foreseen && !m.wrong);
  answer.text = words(
      "with 2 blocks of a multiprocessor (and with 1) an mma.sync takes %.2f (%.2f) cycles of a "
      "quarter alone, %.2f (%.2f) beside ldmatrix, %.2f (%.2f) in the whole loop, %.2f where each "
      "block has rows of its own; of %.0f bytes a clock shared memory moves %.0f (%.0f) by "
      "ldmatrix "
      "alone, %.0f (%.0f) with cp.async, %.0f (%.0f) in the whole loop; assumed of the whole are "
      "%.2f cycles of issue and %.2f of shared memory, in part at the same time%s",
      each(m.products[0]), each(m.products[1]), each(m.loads_and_products[0]),
      each(m.loads_and_products[1]), whole, each(m.all[1]), each(m.own_rows), kSharedBytes,
      kCost.bytes_loaded / m.loads[0], kCost.bytes_loaded / m.loads[1],
      kMoved / m.loads_and_copies[0], kMoved / m.loads_and_copies[1], kMoved / m.all[0],
      kMoved / m.all[1], bounds.issue, bounds.shared,
      m.wrong ? words("; WRONG: %zu sums", m.wrong).c_str() : "");
  say(answer);
}

template <class N, TileShape kTile>
void ask_tile(LoopBench& bench, const WindowNumbers<N>& numbers, Figures& figures) {
  using Tile = TileOf<kTile>;
  const std::string name = words("loop-%s-%dx%d", N::kWord, Tile::kRows, Tile::kColumns);
  if (!bench.fits<WarpLoop<N, Tile, WindowIterator<N, Tile>>>(2)) {
    say({.name = name, .question = "E18", .text = "two blocks do not fit"});
    return;
  }
  const Measured m = measured<N, Tile>(bench, numbers);
  constexpr StepCost kCost = cost_of_step<Tile>();
  constexpr int kMoved = kCost.bytes_loaded + kCost.bytes_copied;
  say_tile<Tile>(name, m, assumed_bounds(kTile, kMoved, kCost.products));
  figures.counted.push_back(m.loads_and_copies[0] * kSharedBytes / kMoved);
  figures.most_bytes = std::max(
      {figures.most_bytes, kCost.bytes_loaded / m.loads[0], kMoved / m.loads_and_copies[0]});
  if (kTile == kTile128x128) {
    figures.beside_loads = m.loads_and_products[0] * kQuarters / kCost.products;
    figures.others = double(kCost.loads) / kCost.products;
  }
}

template <class N>
void ask_numbers(LoopBench& bench, Figures& figures) {
  constexpr std::size_t kMostRows = kTile256x64.rows, kMostColumns = kTile128x128.columns;
  const WindowNumbers<N> numbers(integers, 2 * bench.multiprocessors() * kMostRows, kMostColumns,
                                 kLoopSteps);
  ask_tile<N, kTile128x128>(bench, numbers, figures);
  ask_tile<N, kTile256x64>(bench, numbers, figures);
  ask_tile<N, kTile128x64>(bench, numbers, figures);
  ask_tile<N, kTile64x64>(bench, numbers, figures);
}

void say_figures(const Figures& figures) {
  const double counted = median(figures.counted);
  say({.name = "loop-shared-memory",
       .question = "E18",
       .value = counted,
       .unit = "of all bytes",
       .verdict = verdict_of(counted, assumed_on_hopper(kSharedCounted), 0.08),
       .text = words("ldmatrix and cp.async without products take as long as %.2f of their bytes "
                     "would at %.0f a clock (assumed: %.2f); at most %.1f bytes moved in one",
                     counted, kSharedBytes, kSharedCounted, figures.most_bytes)});
  if (figures.others == 0) return;
  const double assumed = cycles_beside(figures.others);
  say({.name = "loop-mma-beside-ldmatrix",
       .question = "E18",
       .value = figures.beside_loads,
       .unit = "cycles",
       .verdict = verdict_of(figures.beside_loads, assumed_on_hopper(assumed), 0.05),
       .text =
           words("with %.2f ldmatrix beside it an mma.sync of a 128x128 tile takes %.2f cycles; "
                 "%.2f are assumed beside so many others",
                 figures.others, figures.beside_loads, assumed)});
}

}  // namespace

void ask_loops() {
  LoopBench bench;
  Figures figures;
  ask_numbers<Bf16Numbers>(bench, figures);
  ask_numbers<Tf32Numbers>(bench, figures);
  if (!figures.counted.empty()) say_figures(figures);
}

}  // namespace cputrain::cuda::probes
