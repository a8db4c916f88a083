#include "backends/cpu/convolution/convolution_choice.h"

#include <algorithm>

#include "backends/cpu/amx/availability.h"
#include "backends/cpu/convolution/winograd_operation.h"
#include "backends/cpu/kernels/instruction_set.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

bool is_among(const std::vector<ConvolutionMethod>& methods, ConvolutionMethod method) {
  return std::ranges::find(methods, method) != methods.end();
}

}  // namespace

bool winograd_pays(const ConvolutionProblem& p, Direction direction) {
  constexpr std::size_t kFewest = 16, kFewestOfWeights = 8;
  if (!winograd_problem(p)) return false;
  const Shape& outputs = direction == Direction::backward_data ? p.src.shape : p.dst.shape;
  const std::size_t tiles = winograd::Tiles(p.images, outputs).count();
  const std::size_t covered = tiles * winograd::kTile * winograd::kTile;
  const std::size_t pixels = to_size(p.images) * to_size(outputs.height) * to_size(outputs.width);
  return covered <= 2 * pixels &&
         tiles >= (direction == Direction::backward_weights ? kFewestOfWeights : kFewest);
}

ConvolutionMethods fixed_methods(const std::vector<ConvolutionMethod>& possible, bool pooled,
                                 bool pools_tiles) {
  using enum ConvolutionMethod;
  if (is_among(possible, tiles)) return {{tiles, tiles, tiles}};
  const ConvolutionMethod method = pooled && is_among(possible, sparse) ? sparse
                                   : is_among(possible, bf16)           ? bf16
                                   : is_among(possible, winograd)       ? winograd
                                                                        : direct;
  const bool on_the_way = pools_tiles && method != bf16 && is_among(possible, winograd);
  return {{on_the_way ? winograd : method, method, method}};
}

bool measures_forward(const std::vector<ConvolutionMethod>& possible, bool pooled) {
  using enum ConvolutionMethod;
  return !pooled || is_among(possible, bf16) || is_among(possible, tiles);
}

bool worth_measuring(double macs_per_image, int images) {
  constexpr double kMacs = 1e8;
  return macs_per_image * images >= kMacs;
}

std::vector<Piece> cut_into_pieces(int images, std::size_t bytes, int threads) {
  constexpr std::size_t kBytesPerThread = 8 << 20;  // roughly a core's share of a last-level cache
  const std::size_t fitting = kBytesPerThread * to_size(threads) / bytes;
  // At least one image a thread: threads that share an image share little else.
  const int largest = std::clamp(to_int(std::min<std::size_t>(fitting, 1u << 20)),
                                 std::min(threads, images), images);
  const int pieces = (images + largest - 1) / largest;
  std::vector<Piece> cut;
  for (int i = 0, first = 0; i < pieces; ++i) {
    const int count = images / pieces + (i < images % pieces ? 1 : 0);
    cut.push_back({first, count});
    first += count;
  }
  return cut;
}

bool has_narrow_maps(const model::Graph& graph, const KernelChoice& kernels) {
  if (!kernels.bf16 || !supports_bf16()) return false;  // tiles may be emulated anywhere
  bool normalizes = false;
  std::vector<bool> narrow;
  for (const model::Graph::Node& node : graph.nodes()) {
    normalizes |= model::facts_of(node.layer).normalizes();
    const auto reads_narrow = [&](int src) { return narrow[to_size(src)]; };
    const auto parts = std::ranges::count_if(node.src, reads_narrow);
    if (parts > 0 && parts < std::ssize(node.src)) return false;
    const bool makes_floats = std::holds_alternative<model::Dense>(node.layer);
    narrow.push_back(std::holds_alternative<model::Convolution>(node.layer) ||
                     (parts > 0 && !makes_floats));
  }
  return normalizes;
}

int block_of_maps(const KernelChoice& kernels) {
  constexpr int kTiles = 16;
  using Tiles = KernelChoice::Tiles;
  for (const Tiles tiles : {kernels.tiles, kernels.float_tiles}) {
    if (tiles == Tiles::emulated && amx::find_kernels(tiles)) return kTiles;
  }
  return preferred_block();
}

}  // namespace cputrain::cpu
