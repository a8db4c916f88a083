#include "model/layers/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/json_fields.h"
#include "core/text.h"
#include "model/layers/wrong_image_size.h"

namespace cputrain::model {
namespace {

/// Outputs along one axis; at least 1, else WrongImageSize.
int windows(const char* what, Padding padding, int n, int kernel, int stride) {
  if (padding == Padding::same) return (n + stride - 1) / stride;
  const auto [before, after] = pad_amount(padding, n, kernel, stride);
  const int padded = n + before + after;
  if (padded < kernel) {
    throw WrongImageSize(
        fmt::format("a {} of size {} does not fit an input of {} (nothing would be left of the "
                    "image)",
                    what, kernel, n),
        true);
  }
  return (padded - kernel) / stride + 1;
}

Padding read_padding(const JsonFields& r) {
  const bool is_text = !r.has("padding") || r.required("padding").is_string();
  const auto padding = is_text ? value_named<Padding>(r.text("padding", "valid")) : std::nullopt;
  if (!padding) {
    r.wrong("padding must be \"valid\", \"same\" or \"half\"; a zero_pad layer gives any other");
  }
  return *padding;
}

/// Numbers of a map or of several, as an extent.
int flat_size(std::size_t features) {
  if (features > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw WrongImageSize(fmt::format("{} features are too many for one layer", features), false);
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

PadAmount pad_amount(Padding padding, int n, int kernel, int stride) {
  if (padding == Padding::valid) return {0, 0};
  if (padding == Padding::half) return {kernel / 2, kernel / 2};
  const int outputs = (n + stride - 1) / stride;
  const int total = std::max((outputs - 1) * stride + kernel - n, 0);
  return {total / 2, total - total / 2};
}

Shape window_shape(const char* what, Padding padding, const Shape& src, int kernel, int stride,
                   int channels) {
  return {windows(what, padding, src.height, kernel, stride),
          windows(what, padding, src.width, kernel, stride), channels};
}

void window_members(JsonMembers& m, int& stride, Padding& padding) {
  m.may("stride", stride, 1, kMaxExtent);
  if (m.file()) return static_cast<void>(padding = read_padding(*m.file()));
  std::string word(word_of(padding));
  m.need("padding", word);
}

LayerFacts ZeroPad::facts() const {
  return {.keras_name = "zero_padding2d", .passage = Passage::linear, .lays_out = true};
}

Shape ZeroPad::output(std::span<const Shape> src) const {
  const auto& [height, width, channels] = src.front();
  return {height + top + bottom, width + left + right, channels};
}

void ZeroPad::members(JsonMembers& m) {
  m.may("top", top, 0, kMaxExtent);
  m.may("bottom", bottom, 0, kMaxExtent);
  m.may("left", left, 0, kMaxExtent);
  m.may("right", right, 0, kMaxExtent);
}

template <bool largest>
LayerFacts Pool<largest>::facts() const {
  if (!largest) return {.keras_name = "average_pooling2d", .passage = Passage::linear};
  return {.keras_name = "max_pooling2d",
          .passage = Passage::bends,
          .has_kinks = true,
          .pools_at_once = true};
}

template <bool largest>
Shape Pool<largest>::output(std::span<const Shape> src) const {
  return window_shape(largest ? "max pool" : "average pool", padding, src.front(), size, stride,
                      src.front().channels);
}

/// Windows lie side by side unless the file says otherwise.
template <bool largest>
void Pool<largest>::members(JsonMembers& m) {
  m.need("size", size, 1, kMaxExtent);
  if (m.file()) stride = size;
  window_members(m, stride, padding);
}

template struct Pool<true>;
template struct Pool<false>;

LayerFacts GlobalAveragePool::facts() const {
  return {.keras_name = "global_average_pooling2d", .passage = Passage::linear};
}

Shape GlobalAveragePool::output(std::span<const Shape> src) const {
  return {1, 1, src.front().channels};
}

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
