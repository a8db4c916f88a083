#include "datasets/formats/packed_format.h"

#include <algorithm>

#include "core/casts.h"

namespace cputrain::datasets {
namespace {

// By their numbers in files, which stay what they are.
constexpr std::array kWays{data::Resize::bilinear_plain, data::Resize::nearest, data::Resize::area,
                           data::Resize::bilinear, data::Resize::bicubic};
constexpr std::array kFits{data::Fitting::stretch, data::Fitting::crop, data::Fitting::pad};
constexpr std::array<std::optional<data::Exif>, 3> kExifs{std::nullopt, data::Exif::apply,
                                                          data::Exif::ignore};

template <class T, std::size_t N>
std::uint32_t number_of(const std::array<T, N>& values, const T& value) {
  return static_cast<std::uint32_t>(std::ranges::find(values, value) - values.begin());
}

}  // namespace

std::uint32_t PackedForm::number() const {
  return number_of(kWays, resize.way) | number_of(kExifs, exif) << 4 |
         number_of(kFits, resize.fit.how) << 8 | static_cast<std::uint32_t>(resize.fit.part) << 12;
}

std::optional<PackedForm> PackedForm::of(std::uint32_t number, std::uint32_t version) {
  if (version == kBeforeExif || version == kBeforeFit) {
    const std::uint32_t exif = number >> 1;
    if (exif >= (version == kBeforeExif ? 1 : kExifs.size())) return std::nullopt;
    return PackedForm{kWays[number & 1],
                      version == kBeforeExif ? std::optional(data::Exif::ignore) : kExifs[exif]};
  }
  const std::uint32_t way = number & 15, exif = number >> 4 & 15, fit = number >> 8 & 15;
  const auto part = to_int(number >> 12);
  if (way >= kWays.size() || exif >= kExifs.size() || fit >= kFits.size() ||
      part < data::Fit::kLeast || part > data::Fit::kWhole) {
    return std::nullopt;
  }
  return PackedForm{{kWays[way], {kFits[fit], part}}, kExifs[exif]};
}

}  // namespace cputrain::datasets
