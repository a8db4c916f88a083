#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/names.h"
#include "core/shape.h"

namespace cputrain::data {

/// Whether a photograph is read as viewers show it: cameras store what their sensor saw, and how to
/// turn it in an EXIF tag.
enum class Exif { apply, ignore };
constexpr auto names(Exif) {
  return std::to_array<Name<Exif>>({{Exif::apply, "apply"}, {Exif::ignore, "ignore"}});
}

/// Ways to turn an image that move pixels and compute none. Turns are anticlockwise. These six, in
/// this order, are what the potato chips program makes of each original: "original, vertical flip,
/// horizontal flip, three 90-degree rotations".
enum class Turn : std::uint8_t { none, flip_vertical, flip_horizontal, by_90, by_180, by_270 };
constexpr std::uint32_t kTurns = 6;

/// Whether each image of the data becomes six samples, one a Turn. `six`: split into training and
/// validation first, so that no image is in both; `six_leaky`: split afterwards, as the potato
/// chips program does, with turns of training images in validation.
enum class Expand { none, six, six_leaky };
constexpr auto names(Expand) {
  return std::to_array<Name<Expand>>(
      {{Expand::none, "none"}, {Expand::six, "six"}, {Expand::six_leaky, "six-leaky"}});
}

/// What computes the pixels of another size. `area`, `bilinear` and `bicubic` are Pillow's filters
/// BOX, BILINEAR and BICUBIC, which smooth before they shrink (antialias), bit by bit; `nearest` is
/// Pillow's NEAREST, the default of Keras' flow_from_directory; `bilinear_plain` is tf.image.resize
/// (half-pixel centres, no smoothing).
enum class Resize { area, bilinear, bicubic, nearest, bilinear_plain };
constexpr auto names(Resize) {
  return std::to_array<Name<Resize>>({{Resize::area, "area"},
                                      {Resize::bilinear, "bilinear"},
                                      {Resize::bicubic, "bicubic"},
                                      {Resize::nearest, "nearest"},
                                      {Resize::bilinear_plain, "bilinear-plain"}});
}

/// How the sides of an image come to those of the input: each by itself (`stretch`); alike, so that
/// it covers the input, whose size is cut from its centre (`crop`); alike, so that it lies within
/// it, between black bars (`pad`).
enum class Fitting { stretch, crop, pad };
constexpr auto names(Fitting) {
  return std::to_array<Name<Fitting>>(
      {{Fitting::stretch, "stretch"}, {Fitting::crop, "crop"}, {Fitting::pad, "pad"}});
}

struct Fit {
  static constexpr int kWhole = 10'000, kLeast = 1'000;
  Fitting how = Fitting::stretch;
  int part = kWhole;  ///< of `crop`: of the shorter side, in 1/10,000 (as 224 of 256: 8750)

  bool operator==(const Fit&) const = default;
};

/// Reads "stretch", "crop", "crop:0.875" or "pad". Error(usage) names --fit and what is allowed.
Fit parse_fit(std::string_view text);
/// The inverse.
std::string to_text(const Fit&);

/// How an image comes to the size of the network's input.
struct Resizing {
  Resize way = Resize::bilinear;
  Fit fit{};

  constexpr Resizing() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a way alone stretches
  constexpr Resizing(Resize resize, Fit to = {}) : way(resize), fit(to) {}
  bool operator==(const Resizing&) const = default;
};

/// As flags without their dashes: "bilinear"; "bicubic, fit crop:0.875".
std::string to_text(const Resizing&);

/// What was done in words and numbers: "stretched to 64x64 by Pillow's BILINEAR (triangle ...)".
std::string in_words(const Resizing&, Shape image);

/// In which form images are wanted of a data set.
struct ImageForm {
  Shape shape;
  Resizing resize{};
  int larger = 1;  ///< training images are kept at so many times these sides, to cut from them

  /// The form of training images; of a crop the whole, since places are drawn in it.
  Shape kept_shape() const { return {shape.height * larger, shape.width * larger, shape.channels}; }
  Resizing kept_resize() const;
};

}  // namespace cputrain::data
