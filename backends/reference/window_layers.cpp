// Layers that slide a window over the image.

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/layers.h"
#include "core/casts.h"

namespace cputrain::reference {
namespace {

/// Position of (image, row, column, channel 0) in an N x H x W x C array.
std::size_t at(const Shape& shape, int image, int row, int column) {
  return ((to_size(image) * shape.height + row) * shape.width + column) * shape.channels;
}

/// Where a window's first row and column lie in the source; padding makes them negative.
struct Origin {
  int row, column;
};

struct Window {
  int kernel, stride;
  model::PadAmount rows, columns;
  Origin origin(int row, int column) const {
    return {row * stride - rows.before, column * stride - columns.before};
  }
};

Window window_of(model::Padding padding, int kernel, int stride, const Shape& src) {
  return {kernel, stride, model::pad_amount(padding, src.height, kernel, stride),
          model::pad_amount(padding, src.width, kernel, stride)};
}

/// Calls f(image, row, column) for every output position.
template <class F>
void for_outputs(int images, const Shape& dst, F f) {
  for (int n = 0; n < images; ++n) {
    for (int row = 0; row < dst.height; ++row) {
      for (int column = 0; column < dst.width; ++column) f(n, row, column);
    }
  }
}

/// Calls f(kernel row, kernel column, source row, source column) for the window's positions that
/// lie inside the source.
template <class F>
void for_taps(const Window& window, const Shape& src, int row, int column, F f) {
  const Origin origin = window.origin(row, column);
  for (int i = 0; i < window.kernel; ++i) {
    for (int j = 0; j < window.kernel; ++j) {
      const int y = origin.row + i, x = origin.column + j;
      if (y >= 0 && y < src.height && x >= 0 && x < src.width) f(i, j, y, x);
    }
  }
}

/// The filters that read a channel, and where their weights for it begin in those of a tap.
struct Readers {
  int first, end;
  std::size_t weights;
};
Readers readers_of(const model::Convolution& l, int channels, int channel) {
  const int of_group = channels / l.groups, filters = l.filters / l.groups;
  const int first = channel / of_group * filters;
  return {first, first + filters, to_size(channel % of_group) * l.filters};
}

}  // namespace

template <class T>
void forward(const model::Convolution& l, const LayerArgs<T>& a) {
  const Window window = window_of(l.padding, l.kernel, l.stride, a.src_shape);
  const int in = a.src_shape.channels, out = l.filters;
  const std::size_t tap = to_size(in / l.groups) * out;
  for_outputs(a.images, a.dst_shape, [&](int n, int row, int column) {
    T* dst = a.dst + at(a.dst_shape, n, row, column);
    for (int o = 0; o < out; ++o) dst[o] = a.bias ? a.bias[o] : T{0};
    for_taps(window, a.src_shape, row, column, [&](int i, int j, int y, int x) {
      const T* src = a.src + at(a.src_shape, n, y, x);
      for (int c = 0; c < in; ++c) {
        const Readers readers = readers_of(l, in, c);
        const T* weights = a.weights + (i * l.kernel + j) * tap + readers.weights;
        for (int o = readers.first; o < readers.end; ++o) dst[o] += src[c] * weights[o];
      }
    });
  });
}

template <class T>
void backward(const model::Convolution& l, const LayerArgs<T>& a) {
  const Window window = window_of(l.padding, l.kernel, l.stride, a.src_shape);
  const int in = a.src_shape.channels, out = l.filters;
  const std::size_t tap = to_size(in / l.groups) * out;
  for_outputs(a.images, a.dst_shape, [&](int n, int row, int column) {
    const T* diff_dst = a.diff_dst + at(a.dst_shape, n, row, column);
    if (a.diff_bias) {
      for (int o = 0; o < out; ++o) a.diff_bias[o] += diff_dst[o];
    }
    for_taps(window, a.src_shape, row, column, [&](int i, int j, int y, int x) {
      const std::size_t first = (i * l.kernel + j) * tap;
      const T* src = a.src + at(a.src_shape, n, y, x);
      for (int c = 0; a.diff_weights && c < in; ++c) {
        const Readers readers = readers_of(l, in, c);
        T* diff_weights = a.diff_weights + first + readers.weights;
        for (int o = readers.first; o < readers.end; ++o) diff_weights[o] += src[c] * diff_dst[o];
      }
      if (!a.diff_src) return;
      T* diff_src = a.diff_src + at(a.src_shape, n, y, x);
      const std::size_t inputs = to_size(in / l.groups), filters = to_size(out / l.groups);
      for (int g = 0; g < l.groups; ++g, diff_src += inputs) {
        add_weighted(inputs, filters, to_size(out), a.weights + first + g * filters,
                     diff_dst + g * filters, diff_src);
      }
    });
  });
}

template <class T>
void forward(const model::ZeroPad& l, const LayerArgs<T>& a) {
  std::fill_n(a.dst, a.images * a.dst_shape.size(), T{0});
  const std::size_t row = to_size(a.src_shape.width) * a.src_shape.channels;
  for (int n = 0; n < a.images; ++n) {
    for (int y = 0; y < a.src_shape.height; ++y) {
      std::copy_n(a.src + at(a.src_shape, n, y, 0), row,
                  a.dst + at(a.dst_shape, n, y + l.top, l.left));
    }
  }
}

template <class T>
void backward(const model::ZeroPad& l, const LayerArgs<T>& a) {
  if (!a.diff_src) return;
  const std::size_t row = to_size(a.src_shape.width) * a.src_shape.channels;
  for (int n = 0; n < a.images; ++n) {
    for (int y = 0; y < a.src_shape.height; ++y) {
      const T* diff_dst = a.diff_dst + at(a.dst_shape, n, y + l.top, l.left);
      T* diff_src = a.diff_src + at(a.src_shape, n, y, 0);
      for (std::size_t i = 0; i < row; ++i) diff_src[i] += diff_dst[i];
    }
  }
}

namespace {

/// Position in the source of the largest value of a channel's window; NaN counts as the largest.
template <class T>
std::size_t winner(const Window& window, const LayerArgs<T>& a, int n, int row, int column,
                   int channel) {
  std::size_t best = 0;
  T largest = -std::numeric_limits<T>::infinity();
  for_taps(window, a.src_shape, row, column, [&](int, int, int y, int x) {
    const std::size_t position = at(a.src_shape, n, y, x) + channel;
    const T value = a.src[position];
    if (value > largest || std::isnan(value) || largest == -std::numeric_limits<T>::infinity()) {
      largest = value;
      best = position;
    }
  });
  return best;
}

}  // namespace

template <class T>
void forward(const model::MaxPool& l, const LayerArgs<T>& a) {
  const Window window = window_of(l.padding, l.size, l.stride, a.src_shape);
  for_outputs(a.images, a.dst_shape, [&](int n, int row, int column) {
    T* dst = a.dst + at(a.dst_shape, n, row, column);
    for (int c = 0; c < a.dst_shape.channels; ++c) {
      dst[c] = a.src[winner(window, a, n, row, column, c)];
    }
  });
}

template <class T>
void backward(const model::MaxPool& l, const LayerArgs<T>& a) {
  if (!a.diff_src) return;
  const Window window = window_of(l.padding, l.size, l.stride, a.src_shape);
  for_outputs(a.images, a.dst_shape, [&](int n, int row, int column) {
    const T* diff_dst = a.diff_dst + at(a.dst_shape, n, row, column);
    for (int c = 0; c < a.dst_shape.channels; ++c) {
      a.diff_src[winner(window, a, n, row, column, c)] += diff_dst[c];
    }
  });
}

namespace {

int taps_inside(const Window& window, const Shape& src, int row, int column) {
  int count = 0;
  for_taps(window, src, row, column, [&](int, int, int, int) { ++count; });
  return count;
}

}  // namespace

template <class T>
void forward(const model::AveragePool& l, const LayerArgs<T>& a) {
  const Window window = window_of(l.padding, l.size, l.stride, a.src_shape);
  for_outputs(a.images, a.dst_shape, [&](int n, int row, int column) {
    T* dst = a.dst + at(a.dst_shape, n, row, column);
    const T count = static_cast<T>(taps_inside(window, a.src_shape, row, column));
    for (int c = 0; c < a.dst_shape.channels; ++c) dst[c] = 0;
    for_taps(window, a.src_shape, row, column, [&](int, int, int y, int x) {
      const T* src = a.src + at(a.src_shape, n, y, x);
      for (int c = 0; c < a.dst_shape.channels; ++c) dst[c] += src[c] / count;
    });
  });
}

template <class T>
void backward(const model::AveragePool& l, const LayerArgs<T>& a) {
  if (!a.diff_src) return;
  const Window window = window_of(l.padding, l.size, l.stride, a.src_shape);
  for_outputs(a.images, a.dst_shape, [&](int n, int row, int column) {
    const T* diff_dst = a.diff_dst + at(a.dst_shape, n, row, column);
    const T count = static_cast<T>(taps_inside(window, a.src_shape, row, column));
    for_taps(window, a.src_shape, row, column, [&](int, int, int y, int x) {
      T* diff_src = a.diff_src + at(a.src_shape, n, y, x);
      for (int c = 0; c < a.dst_shape.channels; ++c) diff_src[c] += diff_dst[c] / count;
    });
  });
}

#define CPUTRAIN_WINDOW_LAYERS(T)                                         \
  template void forward(const model::Convolution&, const LayerArgs<T>&);  \
  template void backward(const model::Convolution&, const LayerArgs<T>&); \
  template void forward(const model::ZeroPad&, const LayerArgs<T>&);      \
  template void backward(const model::ZeroPad&, const LayerArgs<T>&);     \
  template void forward(const model::MaxPool&, const LayerArgs<T>&);      \
  template void backward(const model::MaxPool&, const LayerArgs<T>&);     \
  template void forward(const model::AveragePool&, const LayerArgs<T>&);  \
  template void backward(const model::AveragePool&, const LayerArgs<T>&);
CPUTRAIN_WINDOW_LAYERS(float)
CPUTRAIN_WINDOW_LAYERS(double)
#undef CPUTRAIN_WINDOW_LAYERS

}  // namespace cputrain::reference
