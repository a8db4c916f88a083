#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/pipeline.h"

namespace cputrain {

/// So many images are compared, or all of smaller data: enough to notice another decoder, and 64 at
/// 256x256 are 12.6 MB, which take 20 ms to hash.
constexpr std::size_t kComparedImages = 64;

/// A hash of the pixels of images drawn by `seed` from training and validation together, and how
/// many they are. Nodes decode each for themselves, with libraries and processors of their own:
/// ranks whose texts differ would train on different pixels. The same whether pixels lie in the
/// node's cache or in a mapped file.
std::string pixel_sample(const DecodedData&, std::uint64_t seed);

}  // namespace cputrain
