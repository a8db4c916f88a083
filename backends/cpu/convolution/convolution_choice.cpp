#include "backends/cpu/convolution/convolution_choice.h"

#include <algorithm>

namespace cputrain::cpu {
namespace {

constexpr int kTile = 4;

int tiles_across(int n) { return (n + kTile - 1) / kTile; }

bool is_among(const std::vector<ConvolutionMethod>& methods, ConvolutionMethod method) {
  return std::ranges::find(methods, method) != methods.end();
}

}  // namespace

ConvolutionAlgorithm choose_algorithm(const ConvolutionProblem& p, Direction direction) {
  const bool possible = p.kernel == 3 && p.stride == 1 && p.src.block == 16 && p.dst.block == 16 &&
                        !p.src.padded() && !p.dst.padded();
  if (!possible) return ConvolutionAlgorithm::direct;
  const Shape& tiled = direction == Direction::backward_data ? p.src.shape : p.dst.shape;
  const int rows = tiles_across(tiled.height), columns = tiles_across(tiled.width);
  const int tiles = p.images * rows * columns;
  bool pays = false;
  switch (direction) {
    case Direction::forward:
      pays = tiles >= 24;
      break;
    case Direction::backward_weights:
      pays = tiles >= 8;
      break;
    // Below four tiles each way most of the outermost tiles is thrown away.
    case Direction::backward_data:
      pays = tiles >= 64 && std::min(rows, columns) >= 4;
      break;
  }
  return pays ? ConvolutionAlgorithm::winograd : ConvolutionAlgorithm::direct;
}

ConvolutionMethods fixed_methods(const std::vector<ConvolutionMethod>& possible, bool pooled) {
  using enum ConvolutionMethod;
  const ConvolutionMethod method = pooled && is_among(possible, sparse) ? sparse
                                   : is_among(possible, bf16)           ? bf16
                                   : is_among(possible, winograd)       ? winograd
                                                                        : direct;
  return {{method, method, method}};
}

bool measures_forward(const std::vector<ConvolutionMethod>& possible, bool pooled) {
  return !pooled || is_among(possible, ConvolutionMethod::bf16);
}

bool worth_measuring(double macs_per_image, int images) {
  constexpr double kMacs = 1e8;
  return macs_per_image * images >= kMacs;
}

std::vector<Piece> cut_into_pieces(int images, std::size_t bytes, int threads) {
  constexpr std::size_t kBytesPerThread = 8 << 20;  // of a last-level cache, roughly
  const std::size_t fitting = kBytesPerThread * static_cast<std::size_t>(threads) / bytes;
  // At least one image a thread: threads that share an image share little else.
  const int largest = std::clamp(static_cast<int>(std::min<std::size_t>(fitting, 1u << 20)),
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

}  // namespace cputrain::cpu
