#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/host_device.h"

/// How maps are stored: activations, their gradients, and the copies of weights that products read.
/// Kernels compute with floats and are templates over one of the types below; a number is rounded
/// when it is stored, so that matrix products take what lies there as it is.
namespace cputrain::cuda {

enum class Numbers {
  exact,  ///< floats
  tf32,   ///< floats that are TF32 numbers: 8 bits of exponent, 10 of mantissa
  bf16    ///< 16 bits: 8 of exponent, 7 of mantissa
};

/// The upper half of a float.
struct Bf16 {
  std::uint16_t bits;
  bool operator==(const Bf16&) const = default;
};

struct ExactNumbers {
  using Stored = float;
  static constexpr Numbers kNumbers = Numbers::exact;
  static constexpr const char *kWord = "exact", *kProducts = "three TF32 products";
};
struct Tf32Numbers {
  using Stored = float;
  static constexpr Numbers kNumbers = Numbers::tf32;
  static constexpr const char *kWord = "tf32", *kProducts = "TF32 products";
};
struct Bf16Numbers {
  using Stored = Bf16;
  static constexpr Numbers kNumbers = Numbers::bf16;
  static constexpr const char *kWord = "bf16", *kProducts = "bf16 products";
};

/// Kernels move 16 bytes at a time: four floats, or eight numbers of bf16.
inline constexpr int kChunkBytes = 16;

template <class N>
inline constexpr int kNumbersOfChunk = kChunkBytes / sizeof(typename N::Stored);

/// Calls f with one of the three types.
template <class F>
constexpr auto with_numbers(Numbers numbers, const F& f) {
  switch (numbers) {
    case Numbers::exact:
      return f(ExactNumbers{});
    case Numbers::tf32:
      return f(Tf32Numbers{});
    case Numbers::bf16:
      break;
  }
  return f(Bf16Numbers{});
}

/// The same with one of two, where numbers are only moved or compared: those that were rounded to
/// TF32 stay as they are, so floats do for them.
template <class F>
constexpr void with_stored(Numbers numbers, const F& f) {
  if (numbers == Numbers::bf16) return f(Bf16Numbers{});
  f(ExactNumbers{});
}

/// Calls f with std::true_type or std::false_type.
template <class F>
void with_bool(bool value, const F& f) {
  if (value) return f(std::true_type{});
  f(std::false_type{});
}

/// The word in figures and in names of kernels.
constexpr const char* word_of(Numbers numbers) {
  return with_numbers(numbers, []<class N>(N) { return N::kWord; });
}

/// What multiplies them.
constexpr const char* products_of(Numbers numbers) {
  return with_numbers(numbers, []<class N>(N) { return N::kProducts; });
}

/// Bytes of a stored number.
constexpr std::size_t stored_bytes(Numbers numbers) {
  return numbers == Numbers::bf16 ? sizeof(Bf16) : sizeof(float);
}

}  // namespace cputrain::cuda
