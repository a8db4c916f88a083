#include "datasets/decode/decode.h"
#include "datasets/decode/limits.h"
#include "tests/datasets/decode/image_files.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::images_fuzzer {
namespace {

using data::ReadStatus;

/// Images of one format ("tiff"), or of all where this is empty.
constexpr std::string_view kFormat = CPUTRAIN_FUZZED_FORMAT;

std::string text_of(const datasets::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

bool decoded(const datasets::Bytes& file) {
  const auto [result, image, stored, orientation] = datasets::decode(file);
  if (result.status != ReadStatus::ok) {
    promise(!result.detail.empty(), "a refusal says why");
    promise(image.rgb.empty(), "a refusal has no pixels");
    return false;
  }
  promise(image.width >= 1 && image.height >= 1, "an image has pixels");
  promise(!datasets::exceeds_limits(image.width, image.height), "an image is within the limits");
  promise(image.rgb.size() == std::size_t{3} * static_cast<std::size_t>(image.width) *
                                  static_cast<std::size_t>(image.height),
          "every pixel is there");
  return true;
}

/// The good files of the formats that this build reads, as Pillow, libtiff and libheif wrote them,
/// and JPEG files of libjpeg.
std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  for (const auto& file : datasets::image_files()) {
    if (file.status == "ok" && datasets::is_built(file) && file.name.starts_with(kFormat)) {
      seeds.push_back(text_of(file.bytes));
    }
  }
  if (std::string_view("jpeg").starts_with(kFormat)) {
    using enum datasets::JpegKind;
    const datasets::Image image = datasets::smooth_image(20, 12);
    for (const auto kind : {rgb, progressive, grey, cmyk_adobe, ycck_adobe, cmyk_plain}) {
      seeds.push_back(text_of(datasets::jpeg_of(image, kind)));
    }
    seeds.push_back(text_of(datasets::with_orientation(datasets::jpeg_of(image), 6)));
  }
  return seeds;
}

/// PNG also with the checksums that it should have: no mutation would hit those.
bool takes(const std::string& text) {
  const datasets::Bytes file = datasets::bytes_of(text);
  const bool taken = decoded(file);
  if (!taken && datasets::format_of(file) == datasets::Format::png) {
    decoded(datasets::with_png_checksums(file));
  }
  return taken;
}

const Fuzzer kFuzzer{"images", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::images_fuzzer
