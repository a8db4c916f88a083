#include <tiffio.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/casts.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/tiff/check_deflate.h"
#include "datasets/decode/tiff/jpeg_pieces.h"
#include "datasets/decode/tiff/layout.h"
#include "datasets/decode/tiff/source.h"
#include "datasets/decode/tiff/tag_values.h"

namespace cputrain::datasets {
namespace {

/// libtiff darkens pixels by alpha where that is not done yet; here alpha is dropped, as of a PNG.
void drop_alpha(TIFF* tiff) {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds);
  if (count == 0 || kinds[0] != EXTRASAMPLE_UNASSALPHA) return;
  std::vector<std::uint16_t> dropped(kinds, kinds + count);
  dropped[0] = EXTRASAMPLE_ASSOCALPHA;
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, to_int(count), dropped.data());
}

using Raster = std::vector<std::uint32_t>;  // words of alpha, blue, green and red

/// libtiff's message begins with "Sorry" where it cannot show an image; others are about damage.
std::optional<Decoded> read_raster(TIFF* tiff, const TiffLayout& layout, const TiffSource& source,
                                   Raster& raster) {
  char problem[1024] = {};
  TIFFRGBAImage image;
  if (TIFFRGBAImageOK(tiff, problem) == 0 ||
      TIFFRGBAImageBegin(&image, tiff, /* stop at errors */ 1, problem) == 0) {
    if (!std::string_view(problem).starts_with("Sorry")) return source.failure(problem);
    return refused(data::ReadStatus::unsupported,
                   "a kind of TIFF that libtiff does not show; convert it to PNG");
  }
  image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;  // as it is stored
  const int done = TIFFRGBAImageGet(&image, raster.data(), layout.width, layout.height);
  TIFFRGBAImageEnd(&image);
  // What the fax decoder complains of, be it an error or a warning, it has made up.
  if (done != 0 && !(layout.is_fax() && source.complaints > 0)) return {};
  return source.failure("damaged TIFF data");
}

std::optional<Decoded> refused_deflate(TIFF* tiff, const TiffLayout& layout,
                                       std::span<const std::uint8_t> file) {
  const bool tiled = TIFFIsTiled(tiff) != 0;
  for (std::uint32_t piece = 0; layout.is_deflate() && piece < layout.pieces; ++piece) {
    const std::uint64_t bytes =
        tiled ? layout.piece_bytes : TIFFVStripSize64(tiff, layout.place_of(piece).rows);
    switch (check_deflate(bytes_of_piece(tiff, piece, file), bytes, layout.piece_bytes)) {
      case DeflateStream::ends_early:
        return truncated();
      case DeflateStream::damaged:
        return refused(data::ReadStatus::not_an_image, "damaged deflate data");
      case DeflateStream::whole:
        break;
    }
  }
  return {};
}

void copy_colours(const Raster& raster, std::uint8_t* rgb) {
  for (const std::uint32_t word : raster) {
    *rgb++ = static_cast<std::uint8_t>(TIFFGetR(word));
    *rgb++ = static_cast<std::uint8_t>(TIFFGetG(word));
    *rgb++ = static_cast<std::uint8_t>(TIFFGetB(word));
  }
}

Decoded decode_raster(TIFF* tiff, const TiffLayout& layout, TiffSource& source,
                      DecodingBudget::Claim& claim) {
  if (auto refusal = refused_deflate(tiff, layout, source.file)) return *std::move(refusal);
  drop_alpha(tiff);
  const std::size_t pixels = std::size_t{layout.width} * layout.height;
  claim.grow(pixels * sizeof(std::uint32_t) + to_size(layout.piece_bytes * layout.planes_stored()));
  Decoded decoded;
  decoded.image = black_image(layout.width, layout.height, claim);
  Raster raster(pixels);
  source.complaints = 0;
  if (auto refusal = read_raster(tiff, layout, source, raster)) return *std::move(refusal);
  copy_colours(raster, decoded.image.rgb.data());
  decoded.result.warned = source.error[0] != 0;
  return decoded;
}

}  // namespace

Decoded decode_tiff(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  const auto tags = tag_values(file);
  if (!tags) return truncated();
  if (tags->stored > 2 * file.size()) {  // libtiff copies each, those that it does not know, too
    return refused(data::ReadStatus::not_an_image, "the values of its tags lie on each other");
  }
  claim.grow(to_size(tags->read));
  TiffSource source{file};
  const Tiff tiff = open_tiff(source);
  if (!tiff) return source.failure("damaged TIFF directory");
  const TiffLayout layout = layout_of(tiff.get());
  if (auto refusal = refused_size(layout.width, layout.height)) return *std::move(refusal);
  if (auto refusal = refused_layout(layout)) return *std::move(refusal);
  if (auto refusal = refused_pieces(tiff.get(), layout, file)) return *std::move(refusal);
  Decoded decoded = layout.compression == COMPRESSION_JPEG
                        ? decode_jpeg_pieces(tiff.get(), layout, file, claim)
                        : decode_raster(tiff.get(), layout, source, claim);
  decoded.stored = {layout.extra_samples > 0, layout.bits};
  return decoded;
}

std::string tiff_library() {
  const std::string text = TIFFGetVersion();  // "LIBTIFF, Version 4.5.0" and a copyright below
  const std::string words = "Version ";
  const std::size_t at = text.find(words);
  if (at == std::string::npos) return "libtiff";
  const std::size_t begin = at + words.size();
  return "libtiff " + text.substr(begin, text.find_first_of("\n ", begin) - begin);
}

}  // namespace cputrain::datasets
