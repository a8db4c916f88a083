#pragma once

#include "core/names.h"

namespace cputrain::data {

/// Which classes get an image more where the shares of classes do not divide: drawn by the seed.
/// Earlier versions went by names: the first ones. Trainings of theirs go on, and are evaluated,
/// with the parts that they had.
enum class Rounding { seed, names };
constexpr auto names(Rounding) {
  return std::to_array<Name<Rounding>>({{Rounding::seed, "seed"}, {Rounding::names, "names"}});
}

}  // namespace cputrain::data
