#pragma once

#include <array>
#include <cmath>
#include <optional>

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

}  // namespace cputrain::compute
