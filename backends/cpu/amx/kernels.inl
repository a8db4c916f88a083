// The loops for tiles of any kind; a file that includes this compiles them for its instructions.
#include "backends/cpu/amx/convolve.inl"
#include "backends/cpu/amx/gradients.inl"
#include "backends/cpu/amx/matrices.inl"

namespace cputrain::cpu::amx {
namespace {

template <class Tiles>
void multiply_add_once(const Bf16* a, const Bf16* b, float* sums) {
  Tiles tiles;
  tiles.template load<0>(sums);
  tiles.template load<4>(a);
  tiles.template load<6>(b);
  tiles.template multiply_add<0, 4, 6>();
  tiles.template store<0>(sums);
}

template <class Tiles>
void multiply_often(const Bf16* a, const Bf16* b, int steps, int rounds, float* sums) {
  Tiles tiles;
  zero_sums(tiles);
  for (int round = 0; round < rounds; ++round) {
    add_products(
        tiles, to_size(steps), kFactors,
        [&](std::size_t i) {
          const std::size_t at = 2 * i * kFactors;
          return Step{{a + at, a + at + kFactors}, b + at};
        },
        [](std::size_t) {});
  }
  store_sums(tiles, sums);
}

template <class Tiles>
constexpr Kernels make_kernels(const char* name, const char* float_name) {
  return {name,        float_name,      multiply_add_once<Tiles>, multiply_often<Tiles>,
          pack_kernel, convolve<Tiles>, add_gradients<Tiles>,     finish_kernel,
          pack_matrix, multiply<Tiles>};
}

}  // namespace
}  // namespace cputrain::cpu::amx
