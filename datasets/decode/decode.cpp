#include "datasets/decode/decode.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/casts.h"
#include "core/text.h"
#include "datasets/decode/byte_order.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/limits.h"
#include "datasets/decode/orientation.h"

namespace cputrain::datasets {
namespace {

std::string_view as_text(std::span<const std::uint8_t> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// "BM" alone begins many texts, so the size of the header that follows must be a known one too.
bool is_bmp(std::span<const std::uint8_t> file) {
  constexpr std::array<std::uint8_t, 7> kHeaderSizes{12, 40, 52, 56, 64, 108, 124};
  if (file.size() < 18 || !as_text(file).starts_with("BM")) return false;
  return std::ranges::find(kHeaderSizes, file[14]) != kHeaderSizes.end() && file[15] == 0 &&
         file[16] == 0 && file[17] == 0;
}

/// Classic TIFF (42) and BigTIFF (43), either byte order.
bool is_tiff(std::string_view text) {
  using namespace std::string_view_literals;
  return text.starts_with("II*\0"sv) || text.starts_with("MM\0*"sv) ||
         text.starts_with("II+\0"sv) || text.starts_with("MM\0+"sv);
}

/// What is in an ISO file is said by its brands (ISO/IEC 23008-12, 10), the first and those that it
/// is compatible with. Where they are those of any coding, HEIC is the usual one.
Format format_by_brands(std::span<const std::uint8_t> file) {
  constexpr std::array<std::string_view, 8> kHevc{"heic", "heix", "heim", "heis",
                                                  "hevc", "hevx", "hevm", "hevs"};
  constexpr std::array<std::string_view, 4> kAny{"mif1", "mif2", "msf1", "miaf"};
  constexpr std::size_t kMost = 256, kMajor = 8, kCompatible = 16;
  const std::string_view text = as_text(file);
  if (text.size() < kMajor + 4 || text.substr(4, 4) != "ftyp") return Format::unknown;
  const std::uint64_t length = OrderedBytes(file, false).at(0, 4);
  const std::size_t end = std::min<std::size_t>({to_size(length), text.size(), kMost});
  bool any = false;
  for (std::size_t at = kMajor; at + 4 <= end; at = std::max(at + 4, kCompatible)) {
    const std::string_view brand = text.substr(at, 4);
    if (brand == "avif" || brand == "avis") return Format::avif;
    if (std::ranges::find(kHevc, brand) != kHevc.end()) return Format::heic;
    any |= std::ranges::find(kAny, brand) != kAny.end();
  }
  return any ? Format::heic : Format::unknown;
}

/// Images that people do have but that are not read here; empty for anything else.
std::string_view foreign_format(std::span<const std::uint8_t> file) {
  const std::string_view text = as_text(file.first(std::min<std::size_t>(file.size(), 16)));
  using namespace std::string_view_literals;
  if (text.size() >= 12 && text.substr(4, 4) == "ftyp") {
    return text.substr(8, 4) == "crx " ? "a RAW photograph (CR3)" : "a video (MP4 or QuickTime)";
  }
  if (text.starts_with("\0\0\0\x0CjP  "sv)) return "JPEG 2000";
  if (text.starts_with("\xFF\x0A") || text.starts_with("\0\0\0\x0CJXL "sv)) return "JPEG XL";
  return {};
}

}  // namespace

Format format_of(std::span<const std::uint8_t> file) {
  const std::string_view text = as_text(file);
  if (text.starts_with("\xFF\xD8\xFF")) return Format::jpeg;
  if (text.starts_with("\x89PNG\r\n\x1A\n")) return Format::png;
  if (text.starts_with("GIF87a") || text.starts_with("GIF89a")) return Format::gif;
  if (text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP") {
    return Format::webp;
  }
  if (is_tiff(text)) return Format::tiff;
  if (const Format format = format_by_brands(file); format != Format::unknown) return format;
  return is_bmp(file) ? Format::bmp : Format::unknown;
}

Decoded refused(data::ReadStatus status, std::string detail) {
  return {{status, std::move(detail)}, {}};
}

Decoded truncated() {
  return refused(data::ReadStatus::truncated, "its data end before its last pixel");
}

std::optional<Decoded> refused_size(std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1)
    return refused(data::ReadStatus::not_an_image, "a side of the image is 0");
  if (!exceeds_limits(width, height)) return {};
  return refused(data::ReadStatus::too_large,
                 std::to_string(width) + "x" + std::to_string(height) + ", above " +
                     with_commas(kMaxSide) + " a side or " + with_commas(kMaxPixels) + " pixels");
}

Image black_image(std::int64_t width, std::int64_t height, DecodingBudget::Claim& claim) {
  const auto bytes = to_size(width * height * 3);
  claim.grow(bytes);
  Image image{to_int(width), to_int(height), {}};
  image.rgb.resize(bytes);
  return image;
}

namespace {

Decoded decode_as(Format format, std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  switch (format) {
    case Format::jpeg:
      return decode_jpeg(file, claim);
    case Format::png:
      return decode_png(file, claim);
    case Format::bmp:
      return decode_bmp(file, claim);
    case Format::gif:
      return decode_gif(file, claim);
    case Format::webp:
      return decode_webp(file, claim);
    case Format::tiff:
      return decode_tiff(file, claim);
    case Format::heic:
    case Format::avif:
      return decode_heif(file, claim);
    case Format::unknown:
      break;
  }
  const std::string_view foreign = foreign_format(file);
  if (!foreign.empty()) {
    return refused(data::ReadStatus::unsupported,
                   std::string(foreign) + " is not read; convert it to JPEG");
  }
  return refused(
      data::ReadStatus::not_an_image,
      "its first bytes are not those of a JPEG, PNG, BMP, GIF, WebP, TIFF, HEIC or AVIF");
}

}  // namespace

Decoded decode(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  if (file.empty()) return refused(data::ReadStatus::empty, "zero bytes");
  if (file.size() > kMaxFileBytes) return refused(data::ReadStatus::too_large, "file above 64 MiB");
  const Format format = format_of(file);
  Decoded decoded = decode_as(format, file, claim);
  if (decoded.result.status != data::ReadStatus::ok) return decoded;
  decoded.orientation = orientation_of(format, file);
  decoded.result.turned = decoded.orientation != 1;
  return decoded;
}

Decoded decode(std::span<const std::uint8_t> file) {
  DecodingBudget budget;
  DecodingBudget::Claim claim(budget);
  return decode(file, claim);
}

}  // namespace cputrain::datasets
