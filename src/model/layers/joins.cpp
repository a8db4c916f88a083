#include "model/layers/joins.h"

#include <cstddef>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::model {
namespace {

/// Numbers of a map or of several, as an extent.
int flat_size(std::size_t features) {
  if (features > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    fail(ExitCode::usage, std::to_string(features) +
                              " features are too many for one layer; use a "
                              "smaller --image-size");
  }
  return static_cast<int>(features);
}

/// `what`: in which the two differ.
[[noreturn]] void refuse_to_join(std::string_view word, const char* what, const Shape& one,
                                 const Shape& other) {
  fail(ExitCode::usage, std::string(word) + " reads layers of different " + what + ", " +
                            shape_text(one) + " and " + shape_text(other));
}

}  // namespace

LayerFacts Add::facts() const { return {.keras_name = "add", .joins = true, .keeps_order = true}; }

Shape Add::output(std::span<const Shape> src) const {
  const Shape& first = src.front();
  for (const Shape& other : src) {
    if (other != first) refuse_to_join(kWord, "shapes", first, other);
  }
  return first;
}

LayerFacts Concat::facts() const { return {.keras_name = "concatenate", .joins = true}; }

Shape Concat::output(std::span<const Shape> src) const {
  const Shape& first = src.front();
  std::size_t channels = 0;
  for (const Shape& other : src) {
    const bool fits = other.height == first.height && other.width == first.width;
    if (!fits) refuse_to_join(kWord, "sides", first, other);
    channels += static_cast<std::size_t>(other.channels);
  }
  return {first.height, first.width, flat_size(channels)};
}

LayerFacts Flatten::facts() const {
  return {.keras_name = "flatten",
          .passage = Passage::linear,
          .keeps_order = true,
          .lays_out = true,
          .in_place = true};
}

Shape Flatten::output(std::span<const Shape> src) const {
  return {1, 1, flat_size(src.front().size())};
}

}  // namespace cputrain::model
