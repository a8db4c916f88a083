#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/statistics/statistics.h"

namespace cputrain::data {

/// Random changes to training images, each f(seed, epoch, sample). 0 and false leave an image as
/// it is. They are made in the order in which they stand here; rotation, shift, shear and zoom are
/// one warp with the formulas of Keras' ImageDataGenerator (edges repeated, bilinear).
struct Augment {
  static constexpr Interval kCropArea{0.08, 1}, kCropRatio{3.0 / 4, 4.0 / 3};  ///< torchvision's

  bool crop_part = false;  ///< a rectangle of the image, brought to the image's size
  Interval crop_area = kCropArea,
           crop_ratio = kCropRatio;  ///< its part of the area; width / height
  double rotate = 0;                 ///< degrees, drawn from [-x, x]
  double shift = 0;                  ///< part of each side, drawn from [-x, x]
  double shear = 0;                  ///< degrees, drawn from [-x, x]
  double zoom = 0;                   ///< each axis by a factor from [1 - x, 1 + x]
  bool flip = false;                 ///< left and right swapped, with probability 1/2
  bool vflip = false;                ///< top and bottom swapped, with probability 1/2
  bool six = false;                  ///< one of the six of Turn, each with probability 1/6
  int crop = 0;        ///< a crop of the image's size after padding with so many black pixels
  int rand_steps = 0;  ///< of RandAugment (datasets/pixels/rand_augment.h)
  int rand_magnitude = 0;
  double colour = 0;  ///< brightness, contrast and saturation, each by a factor from [1 - x, 1 + x]
  double brightness = 0, contrast = 0, saturation = 0;  ///< one of them, in place of `colour`
  int cutout = 0;  ///< a black square with so many pixels a side, about any pixel

  /// With another image, changed as above, and its label: each pixel, or a box. The image's own
  /// share is drawn from Beta(x, x). With both, one of them, by the toss of a coin.
  double mixup = 0;
  double cutmix = 0;

  bool mixes() const { return mixup > 0 || cutmix > 0; }
  bool operator==(const Augment&) const = default;
};

/// Whether it moves pixels and computes none.
bool only_moves(const Augment&);

/// At how many times their sides images are kept for it: a part that is cut from an image of the
/// network's size alone would be blurred.
int kept_sides(const Augment&);

/// Reads "flip,shear:0.2,zoom:0.2" or "none" ("crop" is a part of any size, "crop:4" moves by
/// pixels); recipes of models may use it, too. Error(usage) names
/// --augment, the part and what is allowed.
Augment parse_augment(std::string_view text);

/// Words of such a text that leave images as they are: "mixup:0".
std::vector<std::string> idle_words(std::string_view text);

/// The inverse, in one order: "shear:0.2,zoom:0.2,flip"; "none" where nothing changes.
std::string to_text(const Augment&);

/// The parts that parse_augment() knows, for help: "flip, vflip, ..., rotate:DEGREES, ...".
std::string augment_forms();
/// The same without their numbers, each once.
std::vector<std::string> augment_names();

}  // namespace cputrain::data
