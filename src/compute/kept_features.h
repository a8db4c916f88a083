#pragma once

#include <cstddef>
#include <optional>

namespace cputrain::compute {

/// What a program would keep of an image.
struct FeatureFacts {
  int node;           ///< whose output is kept, in the compiled graph (pools before their ReLUs)
  std::size_t bytes;  ///< per image, with what finds it again
};

/// A program that can keep what its frozen beginning makes of an image, so that later passes over
/// the same pixels begin behind it. Images are told apart by their pixels: each view that an
/// augmentation makes is one of its own. Programs whose arrays lie on a device cannot.
class KeepsFeatures {
 public:
  virtual ~KeepsFeatures() = default;

  /// Nothing where the graph has no such beginning.
  virtual std::optional<FeatureFacts> features() const = 0;
  /// Keeps those of the first images that have room in so many bytes.
  virtual void keep_features(std::size_t most_bytes) = 0;
};

}  // namespace cputrain::compute
