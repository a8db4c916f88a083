#pragma once

#include <cstdint>

namespace cputrain::data {

/// Ways to turn an image that move pixels and compute none. Turns are anticlockwise. These six, in
/// this order, are what the potato chips program makes of each original: "original, vertical flip,
/// horizontal flip, three 90-degree rotations".
enum class Turn : std::uint8_t { none, flip_vertical, flip_horizontal, by_90, by_180, by_270 };
constexpr std::uint32_t kTurns = 6;

}  // namespace cputrain::data
