#include "datasets/decode.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "datasets/limits.h"

namespace cputrain {
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

/// Pictures that people do have but that are not read here; empty for anything else.
std::string_view foreign_format(std::span<const std::uint8_t> file) {
  const std::string_view text = as_text(file.first(std::min<std::size_t>(file.size(), 16)));
  using namespace std::string_view_literals;
  if (text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP") return "WebP";
  if (text.starts_with("II*\0"sv) || text.starts_with("MM\0*"sv)) return "TIFF";
  if (text.size() >= 12 && text.substr(4, 4) == "ftyp") return "HEIF or AVIF";
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
  return is_bmp(file) ? Format::bmp : Format::unknown;
}

bool has_extension_of(std::string_view path, Format format) {
  const std::size_t dot = path.rfind('.');
  std::string ending(dot == std::string_view::npos ? "" : path.substr(dot + 1));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  switch (format) {
    case Format::jpeg:
      return ending == "jpg" || ending == "jpeg";
    case Format::png:
      return ending == "png";
    case Format::bmp:
      return ending == "bmp";
    case Format::gif:
      return ending == "gif";
    case Format::unknown:
      break;
  }
  return false;
}

Decoded decode(std::span<const std::uint8_t> file) {
  if (file.empty()) return {{ReadStatus::empty, "zero bytes"}, {}};
  if (file.size() > kMaxFileBytes) return {{ReadStatus::too_large, "file above 64 MiB"}, {}};
  const Format format = format_of(file);
  if (format == Format::jpeg) return decode_jpeg(file);
  if (format != Format::unknown) return decode_with_stb(file, format);
  const std::string_view foreign = foreign_format(file);
  if (!foreign.empty()) {
    return {{ReadStatus::unsupported, std::string(foreign) + " is not read; convert it to JPEG"},
            {}};
  }
  return {{ReadStatus::not_an_image, "its first bytes are not those of a JPEG, PNG, BMP or GIF"},
          {}};
}

}  // namespace cputrain
