#include "datasets/pixels/pixel_view.h"

#include <cassert>
#include <utility>

namespace cputrain::datasets {

// The tag tells where the stored first row and first column are shown (EXIF 2.3, 4.6.4 A): from 5
// on rows are shown as columns, in 3, 4, 6 and 7 the stored last row comes first, and in 2, 3, 7
// and 8 the stored last column.
PixelView::PixelView(const Image& image, int orientation)
    : first(image.rgb.data()),
      down(std::ptrdiff_t{3} * image.width),
      right(3),
      width(image.width),
      height(image.height) {
  assert(orientation >= 1 && orientation <= 8);
  const int o = orientation;
  if (o == 3 || o == 4 || o == 6 || o == 7) {
    first += down * (height - 1);
    down = -down;
  }
  if (o == 2 || o == 3 || o == 7 || o == 8) {
    first += right * (width - 1);
    right = -right;
  }
  if (o < 5) return;
  std::swap(down, right);
  std::swap(width, height);
}

PixelView shown(const Decoded& decoded, data::Exif exif) {
  return {decoded.image, exif == data::Exif::apply ? decoded.orientation : 1};
}

}  // namespace cputrain::datasets
