#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "optim/update_elements.h"

/// The update rules and what comes before them, one plain loop each, of the arithmetic in
/// update_elements.h. Header-only so that a backend can compile it for its own instruction sets.
namespace cputrain::optim {

/// Pointers into equally long arrays; `state` as in UpdateSlice.
template <class Weight, class Gradient>
struct ElementPointers {
  Weight* __restrict weights;
  Gradient* __restrict gradients;
  std::remove_const_t<Weight>* __restrict state[kMaxStateArrays];
  std::size_t size;
};
template <class T>
using UpdatePointers = ElementPointers<T, const T>;
/// `gradients` are changed.
template <class T>
using GradientPointers = ElementPointers<const T, T>;

/// element(weights[i], gradients[i], state[0][i], ...) for every i.
template <class Element, class Pointers>
inline void for_elements(Element element, const Pointers& p) {
  const auto weights = p.weights;
  const auto gradients = p.gradients;
  const auto state0 = p.state[0], state1 = p.state[1], state2 = p.state[2];
  for (std::size_t i = 0; i < p.size; ++i) {
    if constexpr (Element::kStates == 0) {
      element(weights[i], gradients[i]);
    } else if constexpr (Element::kStates == 1) {
      element(weights[i], gradients[i], state0[i]);
    } else if constexpr (Element::kStates == 2) {
      element(weights[i], gradients[i], state0[i], state1[i]);
    } else {
      element(weights[i], gradients[i], state0[i], state1[i], state2[i]);
    }
  }
}

template <class Rule, class T>
inline void update_math(const Rule& rule, const UpdatePointers<T>& p, T rate, std::uint64_t step) {
  with_update(rule, rate, step, [&p](auto element) { for_elements(element, p); });
}

template <class Operation, class T>
inline void gradient_math(const Operation& operation, const GradientPointers<T>& p) {
  with_change<T>(operation, [&p](auto element) { for_elements(element, p); });
}

/// What lies in block i of norm_blocks(position, values.size()).
template <class T>
inline std::span<T> norm_block(std::span<T> values, std::size_t position, std::size_t i) {
  const Range range = norm_range(position, values.size(), i);
  return values.subspan(range.begin, range.end - range.begin);
}

template <class T>
inline double block_sum_of_squares(const T* values, std::size_t n) {
  constexpr std::size_t kChains = 8;  // independent sums, so that they can be vectorised
  double sums[kChains] = {};
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(values[i]);
    sums[i % kChains] += x * x;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// Decoupled weight decay, then the rule.
template <class T>
inline void update_elements(const UpdateRule& rule, const UpdatePointers<T>& p, double rate,
                            double weight_decay, std::uint64_t step) {
  if (weight_decay > 0) {
    const T keep = kept_by_decay<T>(rate, weight_decay);
    for (std::size_t i = 0; i < p.size; ++i) p.weights[i] *= keep;
  }
  std::visit([&](const auto& r) { update_math(r, p, static_cast<T>(rate), step); }, rule);
}

}  // namespace cputrain::optim
