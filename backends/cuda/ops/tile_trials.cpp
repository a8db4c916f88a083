#include "backends/cuda/ops/tile_trials.h"

#include <algorithm>
#include <limits>

#include "core/casts.h"

namespace cputrain::cuda {

TileTrials::TileTrials(const ByProduct<std::vector<TileShape>>& tiles) {
  for (std::size_t i = 0; i < tiles.size(); ++i) products_[i].tiles = tiles[i];
  try_again();
}

void TileTrials::try_again() {
  if (!trying()) return;
  passes_ = 0;
  for (Product& p : products_) {
    p.least.assign(p.tiles.size(), std::numeric_limits<double>::infinity());
  }
}

std::size_t TileTrials::passes() const {
  std::size_t most = 0;
  for (const Product& p : products_) most = std::max(most, p.tiles.size());
  return kRounds * most;
}

const TileShape& TileTrials::tile(std::size_t product) const {
  const Product& p = products_[product];
  return p.tiles[trying() ? passes_ % p.tiles.size() : p.best];
}

void TileTrials::note(const ByProduct<double>& seconds) {
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Product& p = products_[i];
    double& least = p.least[passes_ % p.tiles.size()];
    if (passes_ >= p.tiles.size() && seconds[i] > 0) least = std::min(least, seconds[i]);
    p.best = to_size(std::ranges::min_element(p.least) - p.least.begin());
  }
  ++passes_;
}

std::string TileTrials::methods() const {
  std::string word;
  for (const Product& p : products_) {
    word += std::to_string(std::ranges::find(kTiles, p.tiles[p.best]) - std::begin(kTiles));
  }
  return word;
}

bool TileTrials::is_word(std::string_view word) const {
  const auto is_tile = [](char c) { return c >= '0' && c - '0' < std::ssize(kTiles); };
  return word.size() == products_.size() && std::ranges::all_of(word, is_tile);
}

/// The GPU that found them may have others to try.
void TileTrials::use_methods(std::string_view word) {
  for (std::size_t i = 0; i < products_.size(); ++i) {
    Product& p = products_[i];
    const auto found = std::ranges::find(p.tiles, kTiles[to_size(word[i] - '0')]);
    if (found != p.tiles.end()) p.best = to_size(found - p.tiles.begin());
  }
  agreed_ = true;
}

}  // namespace cputrain::cuda
