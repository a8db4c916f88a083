#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/exif.h"

namespace cputrain::data {

struct ReadResult;

/// Why an image that can be read shows a network nothing, or something else than people see.
/// `in_alpha` and `low_bits` are causes of the first two that only the file shows.
enum class Flaw : std::uint8_t { none, one_colour, nearly_black, in_alpha, low_bits, unturned };

/// "one colour", "nearly black", ...: a key in JSON.
std::string_view flaw_name(Flaw);
/// What such images are: they "are of one colour alone".
std::string_view flaw_text(Flaw);
/// What to try.
std::string_view flaw_remedy(Flaw);

/// How a file holds an image, as far as reading drops something of it.
struct StoredAs {
  bool alpha = false;
  int bits = 8;  ///< in a sample
};

/// The flaw of an image as it was read, RGB bytes; `none` for one that could not be read. Stops at
/// the first pixels that differ and are bright enough, so it costs next to nothing for a
/// photograph.
Flaw flaw_of(const ReadResult&, std::span<const std::uint8_t> rgb, Exif, StoredAs = {});

}  // namespace cputrain::data
