#include "backends/cpu/winograd/pass.h"

#include <cassert>

#include "backends/cpu/kernels/parallel.h"
#include "backends/cpu/sparse/kernels.h"
#include "core/casts.h"

namespace cputrain::cpu::winograd {
namespace {

std::size_t pairs_of(std::size_t blocks) { return (blocks + kTogether - 1) / kTogether; }

const compute::SampleLayout& written(const Problem& problem, Pass::Way way) {
  if (way == Pass::Way::backward_data) return problem.src;
  return problem.pooled ? *problem.pooled : problem.dst;
}

/// Outputs that windows of a pool have read, which drops an odd last row or column.
Shape read_by_pool(const Shape& pooled) {
  return {2 * pooled.height, 2 * pooled.width, pooled.channels};
}

}  // namespace

/// What one thread computes at a time, and where.
struct Pass::Run {
  std::size_t tile, tile_end;
  std::size_t out, out_end;  ///< blocks
  const float* from;
  const float* weights;  ///< transformed
  const float* bias;
  bool relu;
  float* to;
  std::uint8_t* winners;
  float* patches;  ///< planes of [block of inputs][tile][channel]
  float* sums;     ///< planes of [block of outputs of a sweep][tile][channel]
};

Pass::Pass(const Problem& problem, Way way, int threads, InstructionSet set)
    : way_(way),
      set_(set),
      kernels_(kernels_for(set)),
      from_(way == Way::forward ? problem.src : problem.dst),
      to_(written(problem, way)),
      pools_(way == Way::forward && problem.pooled),
      above_(way == Way::forward ? problem.rows.before : 2 - problem.rows.before),
      left_(way == Way::forward ? problem.columns.before : 2 - problem.columns.before),
      tiles_(problem.images, pools_ ? read_by_pool(to_.shape) : to_.shape),
      block_(to_size(kernels_.block)),
      ins_(from_.blocks()),
      outs_(to_.blocks()) {
  assert(problem.possible() && problem.src.block == kernels_.block);
  cut(to_size(threads));
  weights_plane_ = plane_of(ins_ * outs_ * block_ * block_);
  patches_plane_ = plane_of(ins_ * capacity_ * block_);
  sums_plane_ = plane_of(sweep_ * capacity_ * block_);
}

/// Threads share outputs only where there are few tiles, since each transforms what it reads.
void Pass::cut(std::size_t threads) {
  constexpr std::size_t kTasksPerThread = 4;
  const std::size_t tasks = threads == 1 ? 1 : kTasksPerThread * threads;
  const auto runs_of = [&](std::size_t tiles) { return (tiles_.count() + tiles - 1) / tiles; };
  threads_ = threads;
  runs_ = std::max(runs_of(balanced_tiles(from_, to_)), std::min(tasks, runs_of(kFewestTiles)));
  parts_ = std::clamp<std::size_t>((tasks + runs_ - 1) / runs_, 1, pairs_of(outs_));
  capacity_ = runs_of(runs_);
  // Patches that leave the caches are read once, point by point; others once a pair of outputs.
  constexpr std::size_t kCached = 8 << 20;
  const bool cached = kPoints * ins_ * block_ * capacity_ * sizeof(float) <= kCached;
  sweep_ = kTogether * (cached ? 1 : (pairs_of(outs_) + parts_ - 1) / parts_);
}

std::size_t Pass::scratch_bytes() const {
  return kPoints * (weights_plane_ + threads_ * (patches_plane_ + sums_plane_)) * sizeof(float);
}

/// The kernel that leads back has inputs and outputs exchanged and its taps in reverse order.
void Pass::transform_kernel(const float* weights, float* transformed) const {
  const std::size_t square = block_ * block_;
  const auto transpose = sparse::kernels_for(set_).transpose;
  parallel_for(ins_ * outs_, [&](std::size_t i) {
    const std::size_t in = i % ins_, out = i / ins_;
    const KernelPlace place(in, ins_, out, outs_, block_);
    const std::size_t row = place.vectors * block_;
    if (way_ == Way::forward) {
      return kernels_.transform_kernel(weights + (out * ins_ + in) * 9 * square,
                                       transformed + place.at, weights_plane_, row);
    }
    alignas(64) float turned[9 * 16 * 16];
    for (std::size_t tap = 0; tap < 9; ++tap) {
      transpose(weights + ((in * outs_ + out) * 9 + tap) * square, block_,
                turned + (8 - tap) * square, block_);
    }
    kernels_.transform_kernel(turned, transformed + place.at, weights_plane_, row);
  });
}

void Pass::transform_patches(const Run& run) const {
  const std::size_t plane = from_.size() / ins_;
  for (std::size_t in = 0; in < ins_; ++in) {
    tiles_.for_runs(run.tile, run.tile_end, from_, above_, left_, run.from + in * plane,
                    run.patches + in * capacity_ * block_,
                    [&](const TileRun& tiles, const float* map, float* place) {
                      kernels_.transform_patches(map, tiles, place, patches_plane_);
                    });
  }
}

void Pass::finish_tiles(const Run& run, std::size_t out, const float* sums) const {
  const Finish finish{run.bias ? run.bias + out * block_ : nullptr, run.relu};
  float* const to = run.to + out * (to_.size() / outs_);
  if (!pools_) {
    return tiles_.for_runs(run.tile, run.tile_end, to_, 0, 0, to, sums,
                           [&](const TileRun& tiles, float* map, const float* place) {
                             kernels_.finish_tiles(place, sums_plane_, tiles, finish, map);
                           });
  }
  const compute::SampleLayout read{read_by_pool(to_.shape), to_.block};
  tiles_.for_runs(run.tile, run.tile_end, read, to_.size(), 0, 0, to, sums,
                  [&](const TileRun& tiles, float* map, const float* place) {
                    kernels_.pool_tiles(place, sums_plane_, tiles, finish, map,
                                        run.winners ? run.winners + (map - run.to) : nullptr);
                  });
}

/// Points are outside in a sweep, so that patches that leave the caches are read once for all of
/// its blocks of outputs.
void Pass::run_tiles(const Run& run) const {
  transform_patches(run);
  for (std::size_t first = run.out; first < run.out_end; first += sweep_) {
    const std::size_t last = std::min(run.out_end, first + sweep_);
    for (std::size_t point = 0; point < kPoints; ++point) {
      for (std::size_t out = first; out < last; out += kTogether) {
        kernels_.multiply({run.patches + point * patches_plane_,
                           run.weights + point * weights_plane_ + out * ins_ * block_ * block_,
                           run.sums + point * sums_plane_ + (out - first) * capacity_ * block_,
                           capacity_, to_int(run.tile_end - run.tile), to_int(ins_),
                           to_int(std::min(kTogether, last - out))});
      }
    }
    for (std::size_t out = first; out < last; ++out) {
      finish_tiles(run, out, run.sums + (out - first) * capacity_ * block_);
    }
  }
}

void Pass::run(const float* from, const float* weights, const float* bias, bool relu, float* to,
               std::byte* scratch, std::uint8_t* winners) const {
  auto* const transformed = reinterpret_cast<float*>(scratch);
  float* const memory = transformed + kPoints * weights_plane_;
  transform_kernel(weights, transformed);
  const std::size_t pairs = pairs_of(outs_);
  parallel_tasks(runs_ * parts_, [&](std::size_t task, std::size_t thread) {
    const std::size_t i = task / parts_, part = task % parts_;
    float* const own = memory + thread * kPoints * (patches_plane_ + sums_plane_);
    run_tiles({tiles_.count() * i / runs_, tiles_.count() * (i + 1) / runs_,
               pairs * part / parts_ * kTogether,
               std::min(outs_, pairs * (part + 1) / parts_ * kTogether), from, transformed, bias,
               relu, to, winners, own, own + kPoints * patches_plane_});
  });
}

}  // namespace cputrain::cpu::winograd
