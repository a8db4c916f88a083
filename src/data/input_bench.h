#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.h"
#include "data/augment.h"
#include "data/exif.h"
#include "data/resize.h"

namespace cputrain::data {

/// What `bench input` is to do.
struct InputBenchRequest {
  std::string data;  ///< --data, for messages
  Shape image;
  Resizing resize{};
  Exif exif = Exif::apply;
  Augment augment{};
  std::uint64_t seed = 0;  ///< for the augmentation and the order of images in batches
  int micro_batch = 32;
  int threads = 1;
  int repeat = 5;  ///< measured rounds
};

/// A way to bring all images nearer to training, timed in every round.
struct InputStage {
  std::string name;
  std::vector<double> seconds;  ///< one way through all images, a round each
};

/// The input path, piece by piece, each measured in the same rounds as what limits it.
struct InputBench {
  std::size_t images = 0, left_out = 0;  ///< left out: no JPEG, or not without complaints
  double megapixels = 0;                 ///< all images', as they are stored
  std::size_t bytes = 0;                 ///< all files'
  /// Nothing but decompression, by the codec's own interface and as its own benchmark calls it.
  InputStage codec;
  std::vector<InputStage> decoding;  ///< from files in memory; limited by the codec
  std::vector<InputStage> batches;   ///< from the cache; limited by memory
};

}  // namespace cputrain::data
