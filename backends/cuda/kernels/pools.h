#pragma once

#include <cstdint>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/shapes.h"

/// Pools of maps (shapes.h) that are stored as `Numbers` say. Gradients are gathered: every
/// position of src looks at the windows that cover it, in their order, so the same bits come out
/// every time, and positions under no window get zero. Max pools whose windows do not overlap write
/// theirs window by window. `add`: gradients are added to what is there.
namespace cputrain::cuda {

/// Windows of max pools are at most so large: a winner is one byte.
inline constexpr int kLargestMaxPool = 15;

/// Instead of a place in a window: no position gets the gradient.
inline constexpr std::uint8_t kNoWinner = 255;

/// winners: for each number of dst its place in its window (row * size + column). That is the first
/// of equals, but the last where all are minus infinity, as the reference backend has it. A zero
/// that it sees outside of src may win, and has no gradient. `relu`: dst is then max(dst, 0), NaN
/// stays, and what is not above zero has no winner.
void max_pool_forward(Stream, Numbers, const WindowShape&, const void* src, void* dst,
                      std::uint8_t* winners, bool relu = false);
void max_pool_backward(Stream, Numbers, const WindowShape&, const void* diff_dst,
                       const std::uint8_t* winners, void* diff_src, bool add);

/// Means over the positions of a window that lie inside of src.
void average_pool_forward(Stream, Numbers, const WindowShape&, const void* src, void* dst);
void average_pool_backward(Stream, Numbers, const WindowShape&, const void* diff_dst,
                           void* diff_src, bool add);

/// The mean of every channel over the whole map: dst has one position per image.
void global_average_pool_forward(Stream, Numbers, int images, const MapShape& src, const void* map,
                                 void* dst);
void global_average_pool_backward(Stream, Numbers, int images, const MapShape& src,
                                  const void* diff_dst, void* diff_src, bool add);

}  // namespace cputrain::cuda
