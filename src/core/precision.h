#pragma once

#include "core/array.h"
#include "core/names.h"

namespace cputrain {

/// Number format of products. On CPUs f32 and exact are the same; on GPUs f32 may be rounded.
enum class Precision { f32, bf16, exact, f64 };
constexpr auto names(Precision) {
  return std::to_array<Name<Precision>>({{Precision::f32, "float"},
                                         {Precision::bf16, "bf16"},
                                         {Precision::exact, "exact"},
                                         {Precision::f64, "double"}});
}

/// The type of arrays.
constexpr DType dtype_of(Precision precision) {
  return precision == Precision::f64 ? DType::f64 : DType::f32;
}

}  // namespace cputrain
