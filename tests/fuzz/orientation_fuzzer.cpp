#include <algorithm>

#include "datasets/decode/orientation.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::orientation_fuzzer {
namespace {

using datasets::Format;
using namespace std::string_literals;

const std::string kTiff = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s;
const std::string kBigEndian = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0"s;
const std::string kBigTiff =
    "II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
    "\x12\x01\x03\0\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0"s;

std::vector<std::string> seeds() {
  return {
      kTiff,
      kBigEndian,
      kBigTiff,
      "\xFF\xD8\xFF\xE0\0\x04\x01\x02\xFF\xE1\0\x22"s + "Exif\0\0"s + kTiff + "\xFF\xDA\0\x02"s,
      "\x89PNG\r\n\x1A\n\0\0\0\x01tEXta\0\0\0\0\0\0\0\x1A"s + "eXIf"s + kBigEndian + "\0\0\0\0"s,
      "RIFF\0\0\0\0WEBPVP8X\x03\0\0\0abc\0EXIF\x1A\0\0\0"s + kTiff};
}

/// As each format, from memory of just the size: a sanitizer sees what is read behind it.
bool takes(const std::string& text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bool turned = false;
  for (const Format format : {Format::jpeg, Format::png, Format::webp, Format::tiff}) {
    const int orientation = datasets::orientation_of(format, bytes);
    if (orientation < 1 || orientation > 8) throw std::logic_error("an orientation is 1 to 8");
    turned |= orientation != 1;
  }
  return turned;
}

const Fuzzer kFuzzer{"orientation", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::orientation_fuzzer
