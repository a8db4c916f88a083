#include "backends/cpu/winograd/kernel_gradient.h"

#include <cassert>

#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu::winograd {
namespace {

/// Tiles that one thread transforms at a time, and whose gradients of the bias are one sum.
constexpr std::size_t kChunk = 16;

std::size_t chunks_of(std::size_t tiles) { return (tiles + kChunk - 1) / kChunk; }

}  // namespace

/// What lies in scratch, by planes of one point each (kernels.h).
struct KernelGradient::Memory {
  float* sums;       ///< laid out as by KernelPlace
  float* patches;    ///< [block of inputs][tile][channel]
  float* gradients;  ///< [block of outputs][tile][channel]
  float* bias;       ///< [chunk][channel]
};

KernelGradient::KernelGradient(const Problem& problem, int threads, InstructionSet set)
    : problem_(problem),
      kernels_(kernels_for(set)),
      tiles_(problem.images, problem.dst.shape),
      block_(to_size(kernels_.block)),
      ins_(problem.src.blocks()),
      outs_(problem.dst.blocks()) {
  assert(problem.possible() && problem.src.block == kernels_.block);
  // Sums are read and written, a kernel only read: half of the tiles of a forward pass would do,
  // and twice as many channels of them lie here.
  const std::size_t tiles = std::max(kFewestTiles, balanced_tiles(problem.src, problem.dst) / 2);
  capacity_ = kChunk * chunks_of(std::min(tiles_.count(), tiles * to_size(threads)));
  sums_plane_ = plane_of(ins_ * outs_ * block_ * block_);
  patches_plane_ = plane_of(ins_ * capacity_ * block_);
  gradients_plane_ = plane_of(outs_ * capacity_ * block_);
}

KernelGradient::Memory KernelGradient::memory_in(std::byte* scratch) const {
  auto* const sums = reinterpret_cast<float*>(scratch);
  float* const patches = sums + kPoints * sums_plane_;
  float* const gradients = patches + kPoints * patches_plane_;
  return {sums, patches, gradients, gradients + kPoints * gradients_plane_};
}

std::size_t KernelGradient::scratch_bytes() const {
  return (kPoints * (sums_plane_ + patches_plane_ + gradients_plane_) +
          chunks_of(capacity_) * outs_ * block_) *
         sizeof(float);
}

/// `block` counts those of the source, then those of the gradients.
void KernelGradient::transform_chunk(std::size_t first, std::size_t begin, std::size_t end,
                                     std::size_t block, const float* src, const float* diff_dst,
                                     const Memory& memory) const {
  if (block < ins_) {
    const compute::SampleLayout& map = problem_.src;
    tiles_.for_runs(begin, end, map, problem_.rows.before, problem_.columns.before,
                    src + block * (map.size() / ins_),
                    memory.patches + (block * capacity_ + begin - first) * block_,
                    [&](const TileRun& run, const float* plane, float* place) {
                      kernels_.transform_patches(plane, run, place, patches_plane_);
                    });
    return;
  }
  const compute::SampleLayout& map = problem_.dst;
  const std::size_t out = block - ins_;
  float* const bias = memory.bias + ((begin - first) / kChunk * outs_ + out) * block_;
  std::fill_n(bias, block_, 0.0f);
  tiles_.for_runs(begin, end, map, 0, 0, diff_dst + out * (map.size() / outs_),
                  memory.gradients + (out * capacity_ + begin - first) * block_,
                  [&](const TileRun& run, const float* plane, float* place) {
                    kernels_.transform_gradients(plane, run, place, gradients_plane_, bias);
                  });
}

void KernelGradient::transform(std::size_t first, std::size_t last, const float* src,
                               const float* diff_dst, const Memory& memory) const {
  const std::size_t chunks = chunks_of(last - first);
  parallel_for(chunks * (ins_ + outs_), [&](std::size_t task) {
    const std::size_t begin = first + task % chunks * kChunk;
    transform_chunk(first, begin, std::min(last, begin + kChunk), task / chunks, src, diff_dst,
                    memory);
  });
}

void KernelGradient::add_products(std::size_t tiles, bool adds, const Memory& memory) const {
  const std::size_t pairs = (outs_ + kTogether - 1) / kTogether;
  parallel_for(kPoints * pairs, [&](std::size_t task) {
    const std::size_t point = task / pairs, out = task % pairs * kTogether;
    kernels_.add_outer({memory.patches + point * patches_plane_,
                        memory.gradients + point * gradients_plane_ + out * capacity_ * block_,
                        memory.sums + point * sums_plane_ + out * ins_ * block_ * block_, capacity_,
                        to_int(tiles), to_int(ins_), to_int(std::min(kTogether, outs_ - out)),
                        adds});
  });
}

void KernelGradient::add_bias(std::size_t tiles, const Memory& memory, float* diff_bias) const {
  const std::size_t channels = outs_ * block_;
  for (std::size_t chunk = 0; chunk < chunks_of(tiles); ++chunk) {
    const float* const part = memory.bias + chunk * channels;
    for (std::size_t i = 0; i < channels; ++i) diff_bias[i] += part[i];
  }
}

void KernelGradient::finish(const Memory& memory, float* diff_weights) const {
  parallel_for(ins_ * outs_, [&](std::size_t i) {
    const KernelPlace place(i % ins_, ins_, i / ins_, outs_, block_);
    kernels_.finish_kernel(memory.sums + place.at, sums_plane_, place.vectors * block_,
                           diff_weights + i * 9 * block_ * block_);
  });
}

void KernelGradient::run(const float* src, const float* diff_dst, float* diff_weights,
                         float* diff_bias, std::byte* scratch) const {
  const Memory memory = memory_in(scratch);
  if (diff_bias) std::fill_n(diff_bias, outs_ * block_, 0.0f);
  for (std::size_t first = 0; first < tiles_.count(); first += capacity_) {
    const std::size_t last = std::min(tiles_.count(), first + capacity_);
    transform(first, last, src, diff_dst, memory);
    if (diff_bias) add_bias(last - first, memory, diff_bias);
    add_products(last - first, first > 0, memory);
  }
  finish(memory, diff_weights);
}

}  // namespace cputrain::cpu::winograd
