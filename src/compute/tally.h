#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

namespace cputrain::compute {

/// Sums that stay right when ranks see different numbers of images: add first, divide last.
struct Tally {
  double loss = 0;
  double correct = 0;
  double images = 0;
  double among_five = 0;  ///< images whose class was among the five most probable
  double ranked = 0;      ///< images for which that counts: with more than five classes

  Tally& operator+=(const Tally& other) {
    loss += other.loss;
    correct += other.correct;
    images += other.images;
    among_five += other.among_five;
    ranked += other.ranked;
    return *this;
  }
  /// All of them, to be added up over ranks.
  std::array<double*, 5> sums() { return {&loss, &correct, &images, &among_five, &ranked}; }

  double mean_loss() const { return images > 0 ? loss / images : 0; }
  /// Whether the loss is finite. Predictions of a network whose loss is not mean nothing.
  bool is_number() const { return std::isfinite(loss); }
  /// Nothing where the loss is not finite.
  std::optional<double> accuracy() const {
    if (!is_number()) return std::nullopt;
    return images > 0 ? correct / images : 0;
  }
  std::optional<double> top_five() const {
    return is_number() && ranked > 0 ? std::optional(among_five / ranked) : std::nullopt;
  }
};

/// The class that a row of a network's outputs predicts, the one rule of training, `eval` and
/// `predict`: that of the largest probability, the first one on a tie (as in Keras and argmax). One
/// output is the probability of class 1 of two, which wins above a half. Nothing where an output is
/// NaN: such a row is wrong whatever the label, also where other classes look fine.
template <class T>
std::optional<std::size_t> predicted_class(std::span<const T> outputs) {
  const auto is_nan = [](T value) { return std::isnan(value); };
  if (outputs.empty() || std::ranges::any_of(outputs, is_nan)) return std::nullopt;
  if (outputs.size() == 1) return outputs[0] > T{0.5} ? 1 : 0;
  return static_cast<std::size_t>(std::ranges::max_element(outputs) - outputs.begin());
}

/// Whether a network with so many outputs has predictions to rank: among five classes or fewer,
/// being one of the five best means nothing.
inline constexpr std::size_t kFive = 5;
constexpr bool counts_top_five(std::size_t outputs) { return outputs > kFive; }

/// Whether the class is among the k most probable ones; earlier classes win ties. Never where an
/// output is NaN.
template <class T>
bool among_best(std::span<const T> outputs, std::size_t truth, std::size_t k) {
  std::size_t before = 0;
  for (std::size_t c = 0; c < outputs.size(); ++c) {
    if (std::isnan(outputs[c])) return false;
    const bool tie_won = outputs[c] == outputs[truth] && c < truth;
    before += outputs[c] > outputs[truth] || tie_won;
  }
  return before < k;
}

/// Adds to the tally what a row of outputs predicts for an image of class `truth`; not its loss.
template <class T>
void count_prediction(std::span<const T> outputs, std::size_t truth, Tally& tally) {
  tally.images += 1;
  tally.correct += predicted_class(outputs) == truth;
  if (!counts_top_five(outputs.size())) return;
  tally.ranked += 1;
  tally.among_five += among_best(outputs, truth, kFive);
}

}  // namespace cputrain::compute
