#include "backends/cpu/sparse/sparse_convolution.h"

#include <algorithm>
#include <atomic>
#include <cassert>

#include "backends/cpu/kernels/parallel.h"
#include "backends/cpu/kernels/sum.h"
#include "backends/cpu/sparse/gather.h"
#include "backends/cpu/sparse/scatter.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

using sparse::Gradients;
using sparse::ScatterPlan;
using sparse::TileLists;

std::size_t plane_size(const compute::SampleLayout& layout) {
  return layout.size() / layout.blocks();
}

/// Where row y of a block of channels begins.
std::size_t start_of(const compute::SampleLayout& map, int block, int y) {
  return to_size(block) * plane_size(map) + to_size(y) * to_size(map.shape.width * map.block);
}

template <class T>
T* row_or_null(T* map, const compute::SampleLayout& layout, int block, int y) {
  return y >= 0 && y < layout.shape.height ? map + start_of(layout, block, y) : nullptr;
}

std::size_t whole_lines(std::size_t floats) { return (floats + 15) / 16 * 16; }

int half(int n) { return (n + 1) / 2; }

/// How the images are cut so that the threads end together. Each part computes one row of tiles
/// twice, so the first images stay whole.
struct Cuts {
  int whole;  ///< images
  int cut;    ///< images behind them, in
  int parts;  ///< each
  Cuts(int images, int rows, int threads) : whole(images), cut(0), parts(1) {
    constexpr int kPartsPerThread = 6;
    if (threads == 1) return;
    whole = std::max(0, images / threads - 1) * threads;
    cut = images - whole;
    const int wanted = (kPartsPerThread * threads + cut - 1) / cut;
    parts = std::clamp(wanted, 1, std::max(1, rows / 4));
  }
  int tasks() const { return whole + cut * parts; }
};

/// How the rows of tiles of a call and the blocks of outputs are cut. Each chunk of rows has its
/// own sums, which are added in their order: the same bits every time, whichever thread takes what.
struct GatherCuts {
  std::size_t threads;
  std::size_t most_chunks;  ///< chunks of rows of tiles; their number decides about bits
  std::size_t tasks;        ///< wanted, so that the threads end together
  std::size_t groups;       ///< the fewest groups of outputs

  /// `size`: numbers of a chunk's sums. A task should find those of its group in the second-level
  /// cache, so a group is at most kGroup; and all sums together at most kFewest of that for each
  /// thread, unless there are too few blocks of outputs to make up for it.
  GatherCuts(int thread_count, std::size_t size, std::size_t blocks)
      : threads(to_size(thread_count)) {
    constexpr std::size_t kTasksPerThread = 8, kGroup = (640 << 10) / sizeof(float);
    tasks = threads == 1 ? 1 : kTasksPerThread * threads;
    const std::size_t fitting = kFewest * threads * kGroup / size;
    const std::size_t needed = std::min((tasks + blocks - 1) / blocks, 2 * threads);
    most_chunks = threads == 1 ? 1 : std::clamp(fitting, needed, tasks);
    groups = std::min(blocks, (size + kGroup - 1) / kGroup);
  }

  /// The number of chunks that so many rows are cut into.
  std::size_t chunks(std::size_t rows) const {
    const std::size_t most = with_large_ones() ? threads + (rows - in_large_ones(rows)) : rows;
    return std::clamp<std::size_t>(most, 1, most_chunks);
  }
  /// Where chunk `i` of `count` begins. Where a thread has kFewest or more, one is large: these
  /// come first and share three quarters of the rows; the rest is cut small, for threads that are
  /// free first.
  std::size_t begin(std::size_t i, std::size_t count, std::size_t rows) const {
    if (!with_large_ones()) return rows * i / count;
    const std::size_t large = in_large_ones(rows);
    if (i <= threads) return large * i / threads;
    return large + (rows - large) * (i - threads) / (count - threads);
  }
  /// Groups of outputs that make tasks enough.
  std::size_t groups_for(std::size_t count, std::size_t blocks) const {
    const std::size_t wanted = with_large_ones() ? 1 : (tasks + count - 1) / count;
    return std::min(blocks, std::max(groups, wanted));
  }

 private:
  static constexpr std::size_t kFewest = 3;  ///< chunks a thread of which one may be large
  bool with_large_ones() const { return threads > 1 && most_chunks >= kFewest * threads; }
  static std::size_t in_large_ones(std::size_t rows) { return rows * 3 / 4; }
};

double part_of_all(std::size_t count, int images, const compute::SampleLayout& map) {
  return to_double(count) / (to_double(map.size()) * images);
}

}  // namespace

bool SparseConvolution::possible(const SparseShape& s) {
  const bool blocked = s.src.block == s.wide.block && (s.src.block == 16 || s.src.block == 8);
  const auto small = [](const model::PadAmount& pad) { return pad.before <= 2 && pad.after <= 2; };
  return blocked && !s.src.padded() && !s.wide.padded() && small(s.rows) && small(s.columns) &&
         s.dst.shape.height > 0 && s.dst.shape.width > 0;
}

SparseConvolution::SparseConvolution(const SparseShape& shape, int threads,
                                     const sparse::Kernels& kernels)
    : shape_(shape), threads_(threads), kernels_(kernels) {
  assert(possible(shape) && shape.src.block == kernels.block);
}

struct SparseConvolution::Scatter : ScatterPlan {
  using cpu::sparse::ScatterPlan::ScatterPlan;

  /// Adds up run(image, first row, last row, scratch) over parts of all images.
  template <class Run>
  std::size_t for_parts(int images, int threads, std::byte* scratch, const Run& f) const {
    const Cuts cuts(images, rows, threads);
    std::atomic<std::size_t> sum = 0;
    parallel_tasks(to_size(cuts.tasks()), [&](std::size_t task, std::size_t t) {
      const int behind = to_int(task) - cuts.whole;
      const int parts = behind < 0 ? 1 : cuts.parts, part = behind < 0 ? 0 : behind % parts;
      const std::size_t image = behind < 0 ? task : to_size(cuts.whole + behind / parts);
      sum += f(image, rows * part / parts, rows * (part + 1) / parts, scratch + t * bytes());
    });
    return sum;
  }
};

SparseConvolution::Scatter SparseConvolution::scatter_over(const compute::SampleLayout& in,
                                                           const compute::SampleLayout& out,
                                                           int rows, int tiles) const {
  return {kernels_, rows, tiles, to_int(in.blocks()), to_int(out.blocks())};
}

/// Tile t reaches outputs 2 t - 2 to 2 t + 1 and completes the first two of them, so there is a row
/// and a column of tiles behind the last window.
SparseConvolution::Scatter SparseConvolution::forward_scatter() const {
  const Shape& wide = shape_.wide.shape;
  const int rows = shape_.pool ? shape_.dst.shape.height : half(wide.height);
  const int columns = shape_.pool ? shape_.dst.shape.width : half(wide.width);
  return scatter_over(shape_.src, shape_.wide, rows + 1, columns + 1);
}

SparseConvolution::Scatter SparseConvolution::backward_scatter() const {
  return scatter_over(shape_.wide, shape_.src, half(shape_.src.shape.height + shape_.rows.before),
                      half(shape_.src.shape.width + shape_.columns.before));
}

struct SparseConvolution::Gather : sparse::GatherPlan {};

SparseConvolution::Gather SparseConvolution::gather_plan() const {
  return {{kernels_, shape_.src, shape_.dst, shape_.rows, shape_.columns, shape_.pool}};
}

std::size_t SparseConvolution::scatter_bytes() const {
  return to_size(threads_) * std::max(forward_scatter().bytes(), backward_scatter().bytes());
}

std::size_t SparseConvolution::gather_bytes() const {
  const Gather plan = gather_plan();
  const GatherCuts cuts(threads_, plan.sums_size(), shape_.dst.blocks());
  return to_size(threads_) * plan.scratch_bytes() +
         cuts.most_chunks * whole_lines(plan.sums_size()) * sizeof(float);
}

double SparseConvolution::forward(int images, const float* src, const float* weights,
                                  const float* bias, float* dst, std::uint8_t* winners,
                                  std::byte* scratch) const {
  const compute::SampleLayout &from = shape_.src, &to = shape_.dst;
  const Scatter plan = forward_scatter();
  const auto run = [&](std::size_t image, int first, int last, std::byte* memory) {
    const float* const map = src + image * from.size();
    float* const out = dst + image * to.size();
    const auto list = [&](int row, int begin, int blocks, TileLists& lists) {
      const auto line = [&](int y) { return row_or_null(map, from, begin, y); };
      const int y = 2 * row - shape_.rows.before;
      kernels_.list_map(
          {line(y), line(y + 1)},
          {plan.tiles, shape_.columns.before, from.shape.width, blocks, plane_size(from)}, lists);
    };
    const auto finish = [&](int row, int block, const sparse::ScatterRow& sums) {
      if (row == 0) return plan.leave(sums);  // completes nothing
      const float* const own_bias = bias ? bias + block * from.block : nullptr;
      if (shape_.pool) {
        const std::size_t at = start_of(to, block, row - 1);
        kernels_.scatter_and_pool(
            sums, {out + at, winners ? winners + image * to.size() + at : nullptr, own_bias,
                   shape_.relu});
      } else {
        const auto line = [&](int y) { return row_or_null(out, to, block, y); };
        kernels_.scatter_and_store(sums, {{line(2 * row - 2), line(2 * row - 1)},
                                          2,
                                          to.shape.width,
                                          own_bias,
                                          shape_.relu,
                                          false});
      }
    };
    return plan.run(first, last, weights, memory, list, finish);
  };
  return part_of_all(plan.for_parts(images, threads_, scratch, run), images, shape_.src);
}

double SparseConvolution::backward_data(int images, const Outputs& outputs, const float* turned,
                                        float* diff_src, bool adds, std::byte* scratch) const {
  const compute::SampleLayout &from = shape_.dst, &to = shape_.src;
  const Scatter plan = backward_scatter();
  const Gradients all{outputs.diff, shape_.relu ? outputs.dst : nullptr,
                      shape_.pool ? outputs.winners : nullptr};
  const auto run = [&](std::size_t image, int first, int last, std::byte* memory) {
    const Gradients own = cpu::sparse::behind(all, image * from.size());
    const auto list = [&](int row, int begin, int blocks, TileLists& lists) {
      const auto line = [&](int y) {
        return y < from.shape.height ? cpu::sparse::behind(own, start_of(from, begin, y))
                                     : Gradients{};
      };
      const sparse::RowShape shape{plan.tiles, 0, from.shape.width, blocks, plane_size(from)};
      if (shape_.pool) {
        kernels_.list_winners(line(row), shape, lists);
      } else {
        kernels_.list_gradients({line(2 * row), line(2 * row + 1)}, shape, lists);
      }
    };
    const auto finish = [&](int row, int block, const sparse::ScatterRow& sums) {
      float* const out = diff_src + image * to.size();
      const auto line = [&](int y) { return row_or_null(out, to, block, y); };
      const int y = 2 * row - shape_.rows.before;
      kernels_.scatter_and_store(
          sums,
          {{line(y), line(y + 1)}, shape_.columns.before, to.shape.width, nullptr, false, adds});
    };
    return plan.run(first, last, turned, memory, list, finish);
  };
  return part_of_all(plan.for_parts(images, threads_, scratch, run), images, shape_.wide);
}

void SparseConvolution::turn_kernel(const float* weights, float* turned) const {
  const auto block = to_size(shape_.src.block);
  const std::size_t square = block * block;
  const std::size_t ins = shape_.src.blocks(), outs = shape_.wide.blocks();
  parallel_for(ins * outs, [&](std::size_t i) {
    const std::size_t in = i / outs, out = i % outs;
    for (std::size_t tap = 0; tap < 9; ++tap) {
      kernels_.transpose(weights + ((out * ins + in) * 9 + tap) * square, block,
                         turned + (i * 9 + 8 - tap) * square, block);
    }
  });
}

void SparseConvolution::backward_weights(int images, const float* src, const Outputs& outputs,
                                         float* diff_weights, float* diff_bias, bool adds,
                                         std::byte* scratch) const {
  const Gather plan = gather_plan();
  const Gradients all{outputs.diff, shape_.relu ? outputs.dst : nullptr,
                      shape_.pool ? outputs.winners : nullptr};
  const auto rows = to_size(plan.tile_rows());
  const std::size_t units = to_size(images) * rows, blocks = shape_.dst.blocks();
  const GatherCuts cuts(threads_, plan.sums_size(), blocks);
  const std::size_t chunks = cuts.chunks(units);
  const std::size_t groups = cuts.groups_for(chunks, blocks);
  const std::size_t size = whole_lines(plan.sums_size());
  auto* const sums = reinterpret_cast<float*>(scratch + to_size(threads_) * plan.scratch_bytes());
  parallel_ranges(chunks * size, [&](std::size_t begin, std::size_t end) {
    std::fill(sums + begin, sums + end, 0.0f);
  });
  parallel_tasks(chunks * groups, [&](std::size_t task, std::size_t thread) {
    const std::size_t chunk = task / groups, group = task % groups;
    const std::size_t end = cuts.begin(chunk + 1, chunks, units);
    for (std::size_t unit = cuts.begin(chunk, chunks, units); unit < end;) {
      const std::size_t image = unit / rows, row = unit % rows;
      const std::size_t row_end = std::min(rows, row + end - unit);
      plan.run(src + image * shape_.src.size(), cpu::sparse::behind(all, image * shape_.dst.size()),
               {to_int(row), to_int(row_end), to_int(blocks * group / groups),
                to_int(blocks * (group + 1) / groups)},
               sums + chunk * size, scratch + thread * plan.scratch_bytes());
      unit += row_end - row;
    }
  });
  add_parts(sums, chunks, size);
  plan.finish(sums, diff_weights, diff_bias, adds);
}

}  // namespace cputrain::cpu
