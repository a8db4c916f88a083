#include "data/resize.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::data {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& hint = "") {
  fail(ExitCode::usage,
       "--fit {}: must be stretch, crop, crop:PART with a PART of the shorter side from 0.1 to 1 "
       "(224 of 256: crop:0.875), or pad{}",
       text, hint);
}

int parse_part(std::string_view text, std::string_view digits) {
  const auto part = number_in<double>(digits);
  if (!part || !(*part >= 0.1 && *part <= 1)) refuse(text);
  return static_cast<int>(std::lround(*part * Fit::kWhole));
}

/// The filter of each Resize, for people.
constexpr std::array kFilters{
    "Pillow's BOX (antialias: mean of the pixels whose centres a new one covers",
    "Pillow's BILINEAR (antialias: triangle of radius 1 new pixel, or 1 old one where they are "
    "fewer",
    "Pillow's BICUBIC (antialias: cubic with a = -0.5 of radius 2 new pixels, or 2 old ones where "
    "they are fewer",
    "Pillow's NEAREST (no antialias",
    "tf.image.resize's bilinear (no antialias: half-pixel centres, two pixels a side"};

bool rounds_twice(Resize way) { return way != Resize::nearest && way != Resize::bilinear_plain; }

std::string fit_in_words(const Fit& fit, Shape image) {
  const auto whole = [&](int side) {
    return static_cast<int>(std::int64_t{side} * Fit::kWhole / fit.part);
  };
  switch (fit.how) {
    case Fitting::stretch:
      return fmt::format("stretched to {}x{}", image.height, image.width);
    case Fitting::crop:
      return fmt::format("scaled to cover {}x{}, of which the central {}x{} are cut out",
                         whole(image.height), whole(image.width), image.height, image.width);
    case Fitting::pad:
      return fmt::format("scaled to fit into {}x{}, centred on black", image.height, image.width);
  }
  return {};
}

}  // namespace

Fit parse_fit(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const auto how = value_named<Fitting>(word);
  if (!how) refuse(text, did_you_mean(word, all_words<Fitting>()));
  if (colon == std::string_view::npos) return {*how};
  if (*how != Fitting::crop) refuse(text);
  return {*how, parse_part(text, text.substr(colon + 1))};
}

std::string to_text(const Fit& fit) {
  const std::string_view word = word_of(fit.how);
  if (fit.part == Fit::kWhole) return std::string(word);
  return fmt::format("{}:{}", word, static_cast<double>(fit.part) / Fit::kWhole);
}

std::string to_text(const Resizing& resizing) {
  const std::string_view way = word_of(resizing.way);
  if (resizing.fit == Fit{}) return std::string(way);
  return fmt::format("{}, fit {}", way, to_text(resizing.fit));
}

std::string in_words(const Resizing& resizing, Shape image) {
  return fmt::format(
      "{} by {}; {})", fit_in_words(resizing.fit, image),
      kFilters[static_cast<std::size_t>(resizing.way)],
      rounds_twice(resizing.way) ? "width first, bytes after each axis" : "rounded to bytes");
}

Resizing ImageForm::kept_resize() const {
  return larger == 1 ? resize : Resizing{resize.way, {resize.fit.how}};
}

}  // namespace cputrain::data
