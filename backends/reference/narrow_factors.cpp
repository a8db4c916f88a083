#include "backends/reference/narrow_factors.h"

#include "core/casts.h"
#include "exchange/compression/sixteen_bits.h"

namespace cputrain::reference {
namespace {

template <class T>
const T* rounded(const T* values, std::size_t count, std::vector<T>& copies) {
  copies.clear();
  for (std::size_t i = 0; values && i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    copies.push_back(static_cast<T>(exchange::from_bf16(exchange::to_bf16(value))));
  }
  return values ? copies.data() : nullptr;
}

}  // namespace

template <class T>
LayerArgs<T> NarrowFactors<T>::round(const model::Convolution& layer, LayerArgs<T> a) {
  const auto images = to_size(a.images);
  const auto taps = to_size(layer.kernel) * layer.kernel;
  a.src = rounded(a.src, images * a.src_shape.size(), src_);
  a.weights =
      rounded(a.weights, taps * (a.src_shape.channels / layer.groups) * layer.filters, weights_);
  a.diff_dst = rounded(a.diff_dst, images * a.dst_shape.size(), diff_dst_);
  return a;
}

template class NarrowFactors<float>;
template class NarrowFactors<double>;

}  // namespace cputrain::reference
