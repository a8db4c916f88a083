#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/pipeline.h"

namespace cputrain::data {

/// So many images are compared, or all of smaller data: enough to notice another decoder.
constexpr std::size_t kComparedImages = 64;
/// And so many rows of each, spread evenly from the first to the last, or all of a lower image:
/// another decoder, resize or library differs all over an image. The work grows with the width
/// alone: 64 images of 256x256 are 3.1 MB, which take 5 ms to hash.
constexpr std::size_t kComparedRows = 64;

/// A hash of the pixels in rows of images drawn by `seed` from training and validation together,
/// and how many images they are of. Each node decodes with its own libraries and processors: ranks
/// whose texts differ would train on different pixels. The same whether pixels lie in the node's
/// cache or in a packed file.
std::string pixel_sample(const DecodedData&, std::uint64_t seed);

/// The samples that it looks at where no image is left out.
std::vector<std::uint32_t> pixel_samples(const DataSource&, std::uint64_t seed);

}  // namespace cputrain::data
