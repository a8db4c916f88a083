#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

namespace cputrain::compute {

/// What a row of a network's outputs says, the one rule of training, `eval` and `predict`: the
/// class of the largest probability, the first one on a tie (as Keras and argmax have it). One
/// output is the probability of class 1 of two, which wins above a half. Nothing where an output is
/// not a number: such a row is wrong whatever the label, also where other classes look fine.
template <class T>
std::optional<std::size_t> predicted_class(std::span<const T> outputs) {
  const auto is_nan = [](T value) { return std::isnan(value); };
  if (outputs.empty() || std::ranges::any_of(outputs, is_nan)) return std::nullopt;
  if (outputs.size() == 1) return outputs[0] > T{0.5} ? 1 : 0;
  return static_cast<std::size_t>(std::ranges::max_element(outputs) - outputs.begin());
}

}  // namespace cputrain::compute
