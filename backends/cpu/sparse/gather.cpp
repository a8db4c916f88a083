#include "backends/cpu/sparse/gather.h"

#include <algorithm>

#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu::sparse {

/// Windows [row, row_end) x [column, column_end) and the patch of the source that they read.
struct GatherPlan::Tile {
  int row, row_end, column, column_end;
  int y, x;            ///< where the patch begins; outside the map where there is padding
  int height, width;   ///< the patch's
  bool inside;         ///< the patch can be read in the map itself
  std::size_t stride;  ///< numbers in a row of the map or, where there is one, of the copy
};

std::size_t GatherPlan::sums_size() const {
  const auto out = to_size(dst.shape.channels);
  return (9 * src.blocks() * to_size(kernels.block) + 1) * out;
}

/// Lists' values and offsets (b x capacity each), copies of two patches, lists' sizes (b).
std::size_t GatherPlan::scratch_bytes() const {
  const auto capacity = to_size(kTile * kTile);
  const auto block = to_size(kernels.block);
  return (2 * block * capacity + 2 * patch_size() + block) * sizeof(float);
}

/// A 3 x 3 kernel reads two pixels more than it writes, each way. Tiles that touch the padding are
/// copied with zeros around them, so that the kernels never test for an edge.
GatherPlan::Tile GatherPlan::tile_at(int row, int column) const {
  const int size = pool ? 2 : 1;
  Tile tile{};
  tile.row = row, tile.row_end = std::min(row + windows(), dst.shape.height);
  tile.column = column, tile.column_end = std::min(column + windows(), dst.shape.width);
  tile.y = row * size - rows.before, tile.x = column * size - columns.before;
  tile.height = (tile.row_end - row) * size + 2;
  tile.width = (tile.column_end - column) * size + 2;
  tile.inside = tile.y >= 0 && tile.x >= 0 && tile.y + tile.height <= src.shape.height &&
                tile.x + tile.width <= src.shape.width;
  tile.stride = to_size((tile.inside ? src.shape.width : kPatch) * kernels.block);
  return tile;
}

void GatherPlan::list_tile(const Tile& tile, const Gradients& from, ChannelLists& lists,
                           float* bias_sums) const {
  const auto size = to_size(pool ? 2 : 1);
  const auto block = to_size(kernels.block);
  std::fill_n(lists.sizes, block, 0u);
  const int count = tile.column_end - tile.column;
  for (int row = tile.row; row < tile.row_end; ++row) {
    const auto y = to_size(row - tile.row) * size;
    const std::size_t at = (to_size(row) * to_size(dst.shape.width) + to_size(tile.column)) * block;
    kernels.list_windows(behind(from, at), count, static_cast<std::uint32_t>(y * tile.stride),
                         static_cast<std::uint32_t>(size * block),
                         static_cast<std::uint32_t>(tile.stride), lists, bias_sums);
  }
}

/// The tile's patch of one block of channels: in the map, or copied with zeros around it.
const float* GatherPlan::patch(const Tile& tile, const float* plane, float* copy) const {
  const auto block = static_cast<std::ptrdiff_t>(kernels.block);
  const Shape& map = src.shape;
  if (tile.inside) return plane + (std::ptrdiff_t{tile.y} * map.width + tile.x) * block;
  const int first = std::max(0, -tile.x), last = std::min(tile.width, map.width - tile.x);
  std::fill_n(copy, patch_size(), 0.0f);
  for (int i = std::max(0, -tile.y); i < std::min(tile.height, map.height - tile.y); ++i) {
    const float* const from =
        plane + (std::ptrdiff_t{tile.y + i} * map.width + tile.x + first) * block;
    std::copy_n(from, (last - first) * block, copy + (i * kPatch + first) * block);
  }
  return copy;
}

int GatherPlan::tile_rows() const { return (dst.shape.height + windows() - 1) / windows(); }

void GatherPlan::run(const float* image, const Gradients& gradients, const GatherPart& part,
                     float* sums, std::byte* scratch) const {
  for (int row = part.row; row < part.row_end; ++row) {
    for (int column = 0; column < dst.shape.width; column += windows()) {
      const Tile tile = tile_at(row * windows(), column);
      for (int out = part.out; out < part.out_end; ++out) {
        run_tile(tile, image, gradients, out, sums, scratch);
      }
    }
  }
}

/// One block of outputs: lists its gradients once, then gathers for two blocks of inputs at a time,
/// which share the lists.
void GatherPlan::run_tile(const Tile& tile, const float* image, const Gradients& gradients, int out,
                          float* sums, std::byte* scratch) const {
  constexpr auto kCapacity = to_size(kTile * kTile);
  const auto block = to_size(kernels.block);
  const auto outs = to_size(dst.shape.channels);
  const std::size_t plane = src.size() / src.blocks(), first = to_size(out) * block;
  auto* const memory = reinterpret_cast<float*>(scratch);
  float* const copies = memory + 2 * block * kCapacity;
  ChannelLists lists{memory, reinterpret_cast<std::uint32_t*>(memory + block * kCapacity),
                     reinterpret_cast<std::uint32_t*>(copies + 2 * patch_size()), kCapacity};
  list_tile(tile, behind(gradients, to_size(out) * (dst.size() / dst.blocks())), lists,
            sums + 9 * src.blocks() * block * outs + first);
  for (int in = 0; in < in_blocks(); in += 2) {
    const int count = std::min(2, in_blocks() - in);
    const float* from[2] = {};
    float* to[2] = {};
    for (int i = 0; i < count; ++i) {
      const auto index = to_size(in + i);
      from[i] = patch(tile, image + index * plane, copies + to_size(i) * patch_size());
      to[i] = sums + (index * outs + first) * 9 * block;
    }
    kernels.gather(lists, from, count, tile.stride, to);
  }
}

void GatherPlan::finish(const float* sums, float* diff_weights, float* diff_bias, bool adds) const {
  parallel_for(dst.blocks(),
               [&](std::size_t out) { finish_block(sums, diff_weights, to_int(out), adds); });
  if (!diff_bias) return;
  const auto outs = to_size(dst.shape.channels);
  const float* const from = sums + 9 * src.blocks() * to_size(kernels.block) * outs;
  for (std::size_t i = 0; i < outs; ++i) diff_bias[i] = from[i] + (adds ? diff_bias[i] : 0);
}

/// [out][tap][b in] becomes [tap][b in][b out].
void GatherPlan::finish_block(const float* sums, float* diff_weights, int out, bool adds) const {
  const auto block = to_size(kernels.block);
  const auto outs = to_size(dst.shape.channels);
  const std::size_t square = block * block, first = to_size(out) * block;
  float turned[256];
  for (std::size_t in = 0; in < src.blocks(); ++in) {
    const float* const from = sums + (in * outs + first) * 9 * block;
    float* to = diff_weights + (to_size(out) * src.blocks() + in) * 9 * square;
    for (std::size_t tap = 0; tap < 9; ++tap, to += square) {
      kernels.transpose(from + tap * block, 9 * block, adds ? turned : to, block);
      if (!adds) continue;
      for (std::size_t i = 0; i < square; ++i) to[i] += turned[i];
    }
  }
}

}  // namespace cputrain::cpu::sparse
