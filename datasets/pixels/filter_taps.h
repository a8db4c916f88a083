#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/resize.h"
#include "datasets/pixels/fit.h"

namespace cputrain::datasets {

/// The pixels along an axis that each new one is a weighted sum of.
struct FilterTaps {
  static constexpr int kBits = 22;  ///< weights are whole numbers of 1/2^22: Pillow's precision

  struct Tap {
    int begin, count;        ///< pixels [begin, begin + count)
    std::size_t weights_at;  ///< the first one's
  };
  std::vector<Tap> taps;
  std::vector<std::int32_t> weights;

  int first_pixel() const;  ///< the first that is needed
  int last_pixel() const;
};

/// The filter of `area`, `bilinear` or `bicubic`, stretched where an axis shrinks (antialias).
FilterTaps filter_taps(const AxisFit&, data::Resize);

}  // namespace cputrain::datasets
