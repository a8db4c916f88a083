#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/shape.h"
#include "data/augment.h"
#include "datasets/pixels/pixel_map.h"

namespace cputrain::datasets {

/// How an image is mixed with its partner: all of it, by shares, or a box of the partner's pixels.
/// Shares are whole 1/4096, and those of a box are its part of the area.
struct Mix {
  static constexpr std::uint32_t kOne = 4096;
  std::uint32_t blend = kOne;  ///< the image's own share of each pixel; kOne with a box
  Window box{};                ///< that is the partner's; empty with shares

  bool mixes() const { return blend != kOne || (box.top < box.bottom && box.left < box.right); }
  /// The partner's share of the image of this shape.
  double partner_share(Shape image) const;
};

/// f(seed, epoch, sample). With mixup and cutmix both, one of them, by the toss of a coin.
Mix choose_mix(const data::Augment&, Shape image, std::uint64_t seed, int epoch,
               std::uint32_t sample);

/// Whose pixels the image at `place` of an epoch's order of n is mixed with: each image is one
/// other's partner, whatever batches and ranks there are. f(seed, epoch, n, place).
std::size_t partner_place(std::size_t place, std::size_t n, std::uint64_t seed, int epoch);

/// dst = the mix of both, rounded to whole numbers.
void mix_images(const std::uint8_t* own, const std::uint8_t* partner, Shape image, const Mix&,
                std::span<std::uint8_t> dst);

}  // namespace cputrain::datasets
