#pragma once

#include <cstdint>
#include <span>

#include "core/shape.h"
#include "data/pipeline.h"

namespace cputrain {

/// Ways to turn a picture that move pixels and compute none. Turns are anticlockwise.
enum class Turn { none, flip_vertical, flip_horizontal, by_90, by_180, by_270 };

/// What happens to a sample in an epoch: f(seed, epoch, sample). `flip`: left and right swapped
/// with probability 1/2. `six`: the six with equal probability, the potato chips program's set
/// ("original, vertical flip, horizontal flip, three 90-degree rotations").
Turn choose_turn(Augment, std::uint64_t seed, int epoch, std::uint32_t sample);

/// Whether the result of the augmentation always has the picture's shape.
bool fits(Augment, Shape image);

/// Writes the turned picture; by_90 and by_270 need a square one.
void turn_picture(const std::uint8_t* src, Shape image, Turn, std::span<std::uint8_t> dst);

}  // namespace cputrain
