#include "backends/reference/sharded_dense.h"

#include <algorithm>

#include "core/casts.h"

namespace cputrain::reference {

template <class T>
ShardedDense<T>::ShardedDense(comm::Communicator& node, const compute::Parameter& kernel,
                              std::size_t images)
    : in_(kernel.range.size() / kernel.row),
      out_(kernel.row),
      layer_(node.node_memory(), {in_, out_, images}, dtype_of<T>()) {
  const Range shard = compute::shard_of(kernel, layer_.local_rank(), layer_.ranks());
  rows_ = {(shard.begin - kernel.range.begin) / out_, (shard.end - kernel.range.begin) / out_};
}

template <class T>
void ShardedDense<T>::forward(const LayerArgs<T>& a) {
  layer_.begin(to_size(a.images));
  const Range own = layer_.rows();
  const auto sources = layer_.sources().as<T>();
  std::copy_n(a.src, own.size() * in_, sources.data() + own.begin * in_);
  layer_.wait();
  const auto sums = layer_.partial_sums(layer_.local_rank()).as<T>();
  for (std::size_t n = 0; n < layer_.images(); ++n) {
    T* sum = sums.data() + n * out_;
    std::fill_n(sum, out_, T{0});
    for (std::size_t i = rows_.begin; i < rows_.end; ++i) {
      const T value = sources[n * in_ + i];
      for (std::size_t o = 0; o < out_; ++o) sum[o] += value * a.weights[i * out_ + o];
    }
  }
  layer_.wait();
  for (std::size_t n = 0; n < own.size(); ++n) {
    for (std::size_t o = 0; o < out_; ++o) {
      T sum = a.bias ? a.bias[o] : T{0};
      for (int rank = 0; rank < layer_.ranks(); ++rank) {
        sum += layer_.partial_sums(rank).as<T>()[(own.begin + n) * out_ + o];
      }
      a.dst[n * out_ + o] = sum;
    }
  }
}

template <class T>
void ShardedDense<T>::backward(const LayerArgs<T>& a, bool sends_back) {
  const Range own = layer_.rows();
  const auto sources = layer_.sources().as<T>(), diff = layer_.diff().as<T>();
  std::copy_n(a.diff_dst, own.size() * out_, diff.data() + own.begin * out_);
  for (std::size_t n = 0; a.diff_bias && n < own.size(); ++n) {
    for (std::size_t o = 0; o < out_; ++o) a.diff_bias[o] += a.diff_dst[n * out_ + o];
  }
  layer_.wait();
  for (std::size_t n = 0; n < layer_.images(); ++n) {
    for (std::size_t i = rows_.begin; i < rows_.end; ++i) {
      T& source = sources[n * in_ + i];
      T sum = 0;
      for (std::size_t o = 0; o < out_; ++o) {
        a.diff_weights[i * out_ + o] += source * diff[n * out_ + o];
        sum += a.weights[i * out_ + o] * diff[n * out_ + o];
      }
      source = sum;
    }
  }
  if (!sends_back) return;
  layer_.wait();
  for (std::size_t i = 0; i < own.size() * in_; ++i) {
    a.diff_src[i] += sources[own.begin * in_ + i];
  }
}

template class ShardedDense<float>;
template class ShardedDense<double>;

}  // namespace cputrain::reference
