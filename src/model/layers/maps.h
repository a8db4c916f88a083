#pragma once

#include <span>
#include <string_view>

#include "core/names.h"
#include "core/shape.h"
#include "model/layers/facts.h"

/// Layers that make a map of another shape without weights: pools, zeros around it, joins.
namespace cputrain::model {

/// Keras' words: `valid` pads nothing, `same` pads to ceil(n / stride) outputs, more at the end.
/// `half` pads kernel / 2, rounded down, on every side, as networks of PyTorch do.
enum class Padding { valid, same, half };
constexpr auto names(Padding) {
  return std::to_array<Name<Padding>>(
      {{Padding::valid, "valid"}, {Padding::same, "same"}, {Padding::half, "half"}});
}

/// Rows or columns of zeros before the first and after the last: what `padding` means for n values.
struct PadAmount {
  int before;
  int after;
};
PadAmount pad_amount(Padding, int n, int kernel, int stride);

/// The map that windows make of another one; `what` moves them. WrongImageSize where none fits.
Shape window_shape(const char* what, Padding, const Shape& src, int kernel, int stride,
                   int channels);

/// "stride" and "padding" of a layer with windows in a model file.
void window_members(JsonMembers&, int& stride, Padding&);

/// Rows and columns of zeros around the image.
struct ZeroPad {
  static constexpr std::string_view kWord = "zero_pad";
  int top, bottom, left, right;

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
  void members(JsonMembers&);
};

/// The largest number of each window over a channel, or the mean of those in it that are no padding
/// (as in Keras).
template <bool largest>
struct Pool {
  static constexpr std::string_view kWord = largest ? "max_pool" : "average_pool";
  int size = 2;
  int stride = 2;
  Padding padding = Padding::valid;

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
  void members(JsonMembers&);
};
using MaxPool = Pool<true>;
using AveragePool = Pool<false>;

struct GlobalAveragePool {
  static constexpr std::string_view kWord = "global_average_pool";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

/// The sum of two or more inputs of one shape.
struct Add {
  static constexpr std::string_view kWord = "add";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

/// The channels of two or more maps of one height and width, one map behind the other.
struct Concat {
  static constexpr std::string_view kWord = "concat";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

/// The map as one vector: height, width, channel.
struct Flatten {
  static constexpr std::string_view kWord = "flatten";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

}  // namespace cputrain::model
