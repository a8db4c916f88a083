#pragma once

#include <span>
#include <string_view>

#include "core/names.h"
#include "core/shape.h"
#include "model/layers/facts.h"

/// Pools: layers that move a window over each channel; and zeros around a map.
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

/// The map that windows make of another one; `what` moves them. Error(usage) where none fits.
Shape window_shape(const char* what, Padding, const Shape& src, int kernel, int stride,
                   int channels);

/// Rows and columns of zeros around the image.
struct ZeroPad {
  static constexpr std::string_view kWord = "zero_pad";
  int top, bottom, left, right;

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
  void members(LayerMembers&);
};

struct MaxPool {
  static constexpr std::string_view kWord = "max_pool";
  int size = 2;
  int stride = 2;
  Padding padding = Padding::valid;

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
  void members(LayerMembers&);
};

/// Means over windows, in which padding does not count (as in Keras).
struct AveragePool {
  static constexpr std::string_view kWord = "average_pool";
  int size = 2;
  int stride = 2;
  Padding padding = Padding::valid;

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
  void members(LayerMembers&);
};

struct GlobalAveragePool {
  static constexpr std::string_view kWord = "global_average_pool";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

}  // namespace cputrain::model
