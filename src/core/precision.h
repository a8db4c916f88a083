#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/array.h"

namespace cputrain {

/// Number format of products. On CPUs f32 and exact are the same; on GPUs f32 may be rounded.
enum class Precision { f32, bf16, exact, f64 };

struct PrecisionWord {
  Precision precision;
  std::string_view word;
};
/// As flags, files and messages call them, in the order of help.
inline constexpr std::array<PrecisionWord, 4> kPrecisionWords{{{Precision::f32, "float"},
                                                               {Precision::bf16, "bf16"},
                                                               {Precision::exact, "exact"},
                                                               {Precision::f64, "double"}}};

constexpr std::string_view word_of(Precision precision) {
  return std::ranges::find(kPrecisionWords, precision, &PrecisionWord::precision)->word;
}
std::vector<std::string> words_of(const std::vector<Precision>&);
/// All of the table.
std::vector<std::string> precision_words();
/// Error(usage) where the word is not in the table.
Precision parse_precision(std::string_view word);

/// The type of arrays.
constexpr DType dtype_of(Precision precision) {
  return precision == Precision::f64 ? DType::f64 : DType::f32;
}

}  // namespace cputrain
