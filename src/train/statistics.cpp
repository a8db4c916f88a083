#include "train/statistics.h"

#include <vector>

namespace cputrain {
namespace {

/// Calls f(value) for every element that is averaged, in one order on every rank.
template <class T, class F>
void for_averaged(const ParameterLayout& layout, const Array& weights, const F& f) {
  const auto values = weights.as<T>();
  for (const Parameter& parameter : layout.parameters) {
    if (!parameter.averaged) continue;
    for (std::size_t i = parameter.range.begin; i < parameter.range.end; ++i) f(values[i]);
  }
}

template <class T>
void average(const ParameterLayout& layout, const Array& weights, double own_images,
             Communicator& communicator, std::mutex& weights_mutex) {
  std::vector<double> sums;
  for_averaged<T>(layout, weights,
                  [&](const T& value) { sums.push_back(static_cast<double>(value) * own_images); });
  if (sums.empty()) return;
  sums.push_back(own_images);
  communicator.sum(Array::of<double>(sums));
  const double images = sums.back();
  if (images == 0) return;
  const std::lock_guard lock(weights_mutex);
  std::size_t next = 0;
  for_averaged<T>(layout, weights,
                  [&](T& value) { value = static_cast<T>(sums[next++] / images); });
}

}  // namespace

void average_statistics(const ParameterLayout& layout, const Array& weights, double own_images,
                        Communicator& communicator, std::mutex& weights_mutex) {
  if (layout.dtype == DType::f64) {
    average<double>(layout, weights, own_images, communicator, weights_mutex);
  } else {
    average<float>(layout, weights, own_images, communicator, weights_mutex);
  }
}

}  // namespace cputrain
