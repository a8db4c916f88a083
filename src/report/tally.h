#pragma once

namespace cputrain {

/// Sums that stay right when ranks see different numbers of images: add first, divide last.
struct Tally {
  double loss = 0;
  double correct = 0;
  double images = 0;

  Tally& operator+=(const Tally& other) {
    loss += other.loss;
    correct += other.correct;
    images += other.images;
    return *this;
  }
  double mean_loss() const { return images > 0 ? loss / images : 0; }
  double accuracy() const { return images > 0 ? correct / images : 0; }
};

}  // namespace cputrain
