#pragma once

#include <functional>
#include <vector>

#include "compute/executor/feature_store.h"
#include "compute/executor/op.h"

namespace cputrain::compute {

/// Where the operators end that give the same numbers for an image in every pass.
struct FrozenEnd {
  std::size_t ops;      ///< so many operators
  int node;             ///< the graph's, whose output is all that later ones read of them
  Activation features;  ///< that output
};

/// Runs these operators for images that were not met before, and copies what is kept of others.
class FrozenPrefix {
 public:
  /// `value`: where the features lie. `sizes`: numbers of images that operators can run,
  /// descending.
  FrozenPrefix(const FrozenEnd&, std::byte* value, std::size_t image_bytes, std::vector<int> sizes,
               std::size_t most_bytes);

  static std::size_t row_bytes(const FrozenEnd& end) { return end.features.bytes(1); }
  std::size_t ops() const { return end_.ops; }
  std::size_t most_bytes() const { return store_.most_bytes() + scratch_.size(); }
  /// Afterwards the features of the images of `execution` are in their place. run(part) calls the
  /// operators.
  void forward(const Execution& execution, const std::function<void(const Execution&)>& run);

 private:
  Execution part_of(const Execution&);
  void place_rows(const Execution&);

  FrozenEnd end_;
  std::byte* value_;
  std::size_t image_bytes_, row_bytes_;
  std::vector<int> sizes_;
  FeatureStore store_;
  std::vector<std::byte> scratch_;  ///< rows of a pass
  // The pass at hand:
  std::vector<PixelKey> keys_;
  std::vector<std::size_t> unknown_;  ///< places of images that are not kept
  std::vector<const std::uint8_t*> pixels_;
};

}  // namespace cputrain::compute
