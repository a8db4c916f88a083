#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "backends/cpu/winograd/kernels.h"
#include "compute/executor/memory_plan.h"
#include "core/casts.h"
#include "model/layer.h"

namespace cputrain::cpu::winograd {

/// A 3 x 3 convolution of stride 1.
struct Problem {
  int images;
  compute::SampleLayout src, dst;
  model::PadAmount rows, columns;
  /// What a max pool of 2 x 2 makes of dst, where forward takes it along.
  std::optional<compute::SampleLayout> pooled{};

  /// Whether channels fill blocks of 16 or 8 and padding is at most what a patch may read.
  bool possible() const {
    const auto small = [](const model::PadAmount& pad) {
      return pad.before <= 2 && pad.after <= 2;
    };
    return src.block == dst.block && (src.block == 16 || src.block == 8) && !src.padded() &&
           !dst.padded() && small(rows) && small(columns);
  }
};

/// Tiles that cover the outputs of all images, counted image by image and row by row.
class Tiles {
 public:
  Tiles(int images, const Shape& outputs)
      : rows_((outputs.height + kTile - 1) / kTile),
        columns_((outputs.width + kTile - 1) / kTile),
        count_(to_size(images) * of_image()) {}

  std::size_t count() const { return count_; }

  /// Calls f(run, map of its image, place) for the tiles [begin, end), row by row. `first` is the
  /// plane of one block of channels in the first image's map. The first tile begins `above` and
  /// `left` pixels before it, and numbers of the tiles lie in place, each a block.
  template <class T, class Place, class F>
  void for_runs(std::size_t begin, std::size_t end, const compute::SampleLayout& map, int above,
                int left, T* first, Place* place, const F& f) const {
    for_runs(begin, end, map, map.size(), above, left, first, place, f);
  }
  /// The same for an array that has `image_size` numbers of each image, beside a map of such
  /// extents.
  template <class T, class Place, class F>
  void for_runs(std::size_t begin, std::size_t end, const compute::SampleLayout& map,
                std::size_t image_size, int above, int left, T* first, Place* place,
                const F& f) const {
    const auto columns = to_size(columns_);
    while (begin < end) {
      const std::size_t image = begin / of_image(), tile = begin % of_image();
      const std::size_t column = tile % columns, count = std::min(columns - column, end - begin);
      f(TileRun{to_int(tile / columns) * kTile - above, to_int(column) * kTile - left,
                map.shape.height, map.shape.width, to_int(count)},
        first + image * image_size, place);
      begin += count;
      place += count * to_size(map.block);
    }
  }

 private:
  std::size_t of_image() const { return to_size(rows_) * to_size(columns_); }

  int rows_, columns_;
  std::size_t count_;
};

/// Numbers from one plane to the next, such that not all begin at the same place of a cache.
constexpr std::size_t plane_of(std::size_t numbers) {
  constexpr std::size_t kLine = 16, kPage = 1024;
  return (numbers + kPage - 1) / kPage * kPage + kLine;
}

/// Fewer tiles in a run do not pay for reading the transformed kernel.
constexpr std::size_t kFewestTiles = 32;

/// Tiles whose transformed channels are as many numbers as the transformed kernel: runs of so many
/// read the kernel, and write and read the tiles, at one rate.
inline std::size_t balanced_tiles(const compute::SampleLayout& src,
                                  const compute::SampleLayout& dst) {
  const auto ins = to_size(src.shape.channels);
  const auto outs = to_size(dst.shape.channels);
  return std::max(kFewestTiles, ins * outs / (ins + outs));
}

/// Blocks of outputs that one product computes: they lie side by side in a transformed kernel,
/// whose planes are [outputs / kTogether][inputs][kTogether].
constexpr std::size_t kTogether = 2;

/// Where a block of inputs and one of outputs meet in such a plane.
struct KernelPlace {
  std::size_t vectors;  ///< blocks of outputs that lie side by side there
  std::size_t at;       ///< where the first input's row begins

  KernelPlace(std::size_t in, std::size_t ins, std::size_t out, std::size_t outs, std::size_t block)
      : vectors(std::min(kTogether, outs - out / kTogether * kTogether)),
        at(out / kTogether * kTogether * ins * block * block + in * block * block * vectors +
           out % kTogether * block) {}
};

}  // namespace cputrain::cpu::winograd
