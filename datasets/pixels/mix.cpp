#include "datasets/pixels/mix.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/array.h"
#include "core/casts.h"
#include "core/random/random.h"
#include "datasets/pixels/random_beta.h"

namespace cputrain::datasets {
namespace {

constexpr std::uint32_t kBetaWords = 1;  // in the stream, from here on

/// Yun et al., "CutMix" (2019): sides in the ratio of the root of the partner's share, about any
/// pixel, and cut off at the edges.
Window choose_box(Shape image, double share, std::uint32_t down, std::uint32_t right) {
  const auto side = [&](int whole, std::uint32_t word) {
    const int length = to_int(std::lround(whole * std::sqrt(share)));
    const int first = to_int(below(word, static_cast<std::uint32_t>(whole))) - length / 2;
    return Range{to_size(std::max(0, first)), to_size(std::clamp(first + length, 0, whole))};
  };
  const Range rows = side(image.height, down), columns = side(image.width, right);
  return {to_int(rows.begin), to_int(rows.end), to_int(columns.begin), to_int(columns.end)};
}

}  // namespace

double Mix::partner_share(Shape image) const {
  if (blend != kOne) return to_double(kOne - blend) / kOne;
  const double pixels = to_double(box.bottom - box.top) * (box.right - box.left);
  return pixels / (to_double(image.height) * image.width);
}

Mix choose_mix(const data::Augment& augment, Shape image, std::uint64_t seed, int epoch,
               std::uint32_t sample) {
  const RandomStream stream(seed, Purpose::mixing, static_cast<std::uint32_t>(epoch), sample);
  const auto words = stream.at(0);
  const bool both = augment.mixup > 0 && augment.cutmix > 0;
  const bool cuts = augment.cutmix > 0 && (!both || below(words[0], 2) == 1);
  const double alpha = cuts ? augment.cutmix : augment.mixup;
  if (alpha <= 0) return {};
  const double own = beta_number(alpha, stream, kBetaWords);
  if (cuts) return {.box = choose_box(image, 1 - own, words[1], words[2])};
  return {.blend = static_cast<std::uint32_t>(std::lround(own * Mix::kOne))};
}

std::size_t partner_place(std::size_t place, std::size_t n, std::uint64_t seed, int epoch) {
  if (n < 2) return place;
  // Orders are drawn from words 2 to n of this stream.
  const RandomStream stream(seed, Purpose::order, static_cast<std::uint32_t>(epoch));
  const std::size_t turn = 1 + below(stream.at(0)[0], static_cast<std::uint32_t>(n - 1));
  return (place + turn) % n;
}

void mix_images(const std::uint8_t* own, const std::uint8_t* partner, Shape image, const Mix& mix,
                std::span<std::uint8_t> dst) {
  assert(dst.size() == image.size());
  if (mix.blend != Mix::kOne) {
    const std::uint32_t a = mix.blend, b = Mix::kOne - a;
    for (std::size_t i = 0; i < dst.size(); ++i) {
      dst[i] = static_cast<std::uint8_t>((a * own[i] + b * partner[i] + Mix::kOne / 2) / Mix::kOne);
    }
    return;
  }
  std::copy_n(own, dst.size(), dst.data());
  const auto pixel = to_size(image.channels);
  for (int y = mix.box.top; y < mix.box.bottom; ++y) {
    const std::size_t first = (to_size(y) * image.width + to_size(mix.box.left)) * pixel;
    std::copy_n(partner + first, to_size(mix.box.right - mix.box.left) * pixel, dst.data() + first);
  }
}

}  // namespace cputrain::datasets
