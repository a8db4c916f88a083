#pragma once

#include <cstddef>
#include <cstdint>

#include "datasets/pixels/convolve_kernels.h"
#include "datasets/pixels/filter_taps.h"
#include "datasets/pixels/pixel_view.h"

namespace cputrain::datasets {

/// Resizes along rows, then along columns, each to bytes: sums of whole numbers in 32 bits, rounded
/// and cut to 0 to 255. Row i of the result begins at dst + i * stride.
void convolve(const PixelView&, const FilterTaps& rows, const FilterTaps& columns,
              std::uint8_t* dst, std::size_t stride,
              const ConvolveKernels& = convolve_kernels().front());

}  // namespace cputrain::datasets
