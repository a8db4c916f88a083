#pragma once

#include <cstdint>

#include "core/shape.h"
#include "data/resize.h"

namespace cputrain::datasets {

/// How an axis of an image comes to an axis of the network's input: its `in` pixels would make
/// `resized` ones. `count` of these are computed, from `first` on; they lie from `at` on.
struct AxisFit {
  int in;
  std::int64_t resized, first;
  int count, at;

  bool is_identity() const { return in == resized && count == in; }
};

struct ImageFit {
  AxisFit rows, columns;

  /// Whether pixels remain that no pixel of the image falls on.
  bool leaves_bars(Shape size) const {
    return rows.count < size.height || columns.count < size.width;
  }
};

/// The figures of torchvision's Resize and CenterCrop (`crop`; the part as timm's crop_pct) and of
/// Pillow's ImageOps.pad (`pad`), with their rounding.
ImageFit fit_image(int height, int width, Shape size, const data::Fit&);

}  // namespace cputrain::datasets
