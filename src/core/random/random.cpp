#include "core/random/random.h"

namespace cputrain {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  const RandomWords words =
      philox_words({counter[0], counter[1], counter[2], counter[3]}, {key[0], key[1]});
  return {words.x, words.y, words.z, words.w};
}

}  // namespace cputrain
