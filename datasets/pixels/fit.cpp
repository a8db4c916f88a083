#include "datasets/pixels/fit.h"

#include <algorithm>
#include <cmath>

#include "core/casts.h"

namespace cputrain::datasets {
namespace {

/// Half of a difference of sides, ties to the even number, as Python's round().
std::int64_t half_of(std::int64_t difference) {
  if (difference % 2 == 0) return difference / 2;
  const std::int64_t below = (difference - 1) / 2;
  return below % 2 == 0 ? below : below + 1;
}

/// The centre of `resized` pixels in `count` ones, or the other way round.
AxisFit centred(int in, std::int64_t resized, int count) {
  const std::int64_t first = half_of(resized - count);
  return {in, resized, std::max<std::int64_t>(first, 0),
          to_int(std::min<std::int64_t>(resized, count)),
          to_int(std::max<std::int64_t>(-first, 0))};
}

ImageFit cover(int height, int width, Shape size, int part) {
  const auto whole = [&](int side) { return std::int64_t{side} * data::Fit::kWhole / part; };
  const std::int64_t rows = whole(size.height), columns = whole(size.width);
  return {centred(height, std::max(rows, height * columns / width), size.height),
          centred(width, std::max(columns, width * rows / height), size.width)};
}

ImageFit contain(int height, int width, Shape size) {
  const auto side = [](int in, int other, int of_other, int most) {
    const double scaled = std::nearbyint(to_double(in) / other * of_other);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(scaled), 1, most);
  };
  return {centred(height, side(height, width, size.width, size.height), size.height),
          centred(width, side(width, height, size.height, size.width), size.width)};
}

}  // namespace

ImageFit fit_image(int height, int width, Shape size, const data::Fit& fit) {
  switch (fit.how) {
    case data::Fitting::crop:
      return cover(height, width, size, fit.part);
    case data::Fitting::pad:
      return contain(height, width, size);
    case data::Fitting::stretch:
      break;
  }
  return {{height, size.height, 0, size.height, 0}, {width, size.width, 0, size.width, 0}};
}

}  // namespace cputrain::datasets
