#pragma once

#include <array>
#include <iterator>
#include <vector>

#include "backends/cuda/kernels/products/convolution_plan.h"
#include "compute/tuner.h"

namespace cputrain::cuda {

template <class T>
using ByProduct = std::array<T, std::size(kPlannedProducts)>;

/// Finds the quickest tile of each product of an operator: while training goes on, each tile has a
/// few passes in turn, whose results count like all others, since tiles change no bits.
class TileTrials final : public compute::MethodChoice {
 public:
  static constexpr std::size_t kRounds = 3;  ///< the first of a tile may bring its kernel there
  /// The first tile of a product is the rule's.
  explicit TileTrials(const ByProduct<std::vector<TileShape>>& tiles);

  /// A digit for each product, its tile's place in kTiles. CPUs have letters.
  std::string methods() const override;
  bool is_word(std::string_view) const override;
  void use_methods(std::string_view) override;
  bool trying() const override { return !agreed_ && passes_ < passes(); }
  /// Begins anew where trials have not ended. Tiles do not depend on what activations have become.
  void try_again() override;

  /// Whether it was given a word, as all ranks are in the same step.
  bool agreed() const { return agreed_; }
  /// The next pass has it.
  const TileShape& tile(std::size_t product) const;
  /// Seconds that the pass took; 0: it did not make the product.
  void note(const ByProduct<double>& seconds);

 private:
  struct Product {
    std::vector<TileShape> tiles;
    std::vector<double> least;  ///< seconds of each
    std::size_t best = 0;
  };
  std::size_t passes() const;  ///< of all trials

  ByProduct<Product> products_;
  std::size_t passes_ = 0;  ///< noted
  bool agreed_ = false;
};

}  // namespace cputrain::cuda
