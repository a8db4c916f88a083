#include "datasets/decode/tiff/layout.h"

#include <algorithm>
#include <string>

#include "core/casts.h"
#include "core/text.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

/// Those whose work and memory are bounded by what they decode to.
bool is_read(std::uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
      return true;
    default:
      return false;
  }
}

std::string name_of_compression(std::uint16_t compression) {
  const TIFFCodec* codec = TIFFFindCODEC(compression);
  return (codec != nullptr ? std::string(codec->name) + ", " : "") + "kind " +
         std::to_string(compression);
}

/// Which value is black and which is white is only certain of unsigned integers.
const char* name_of_samples(std::uint16_t format) {
  switch (format) {
    case SAMPLEFORMAT_INT:
      return "signed integers";
    case SAMPLEFORMAT_IEEEFP:
      return "floating-point numbers";
    default:
      return "complex numbers or samples of unknown kind";
  }
}

Decoded unsupported(const std::string& what, const char* remedy) {
  return refused(data::ReadStatus::unsupported, "a TIFF of " + what + "; " + remedy);
}

std::uint32_t parts(std::uint32_t whole, std::uint32_t part) {
  return part == 0 ? 0 : whole / part + (whole % part != 0 ? 1 : 0);
}

/// As libtiff takes it where the tag is missing.
std::uint16_t photometric_of(TIFF* tiff, const TiffLayout& layout) {
  std::uint16_t photometric = 0;
  if (TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric) != 0) return photometric;
  return layout.samples - layout.extra_samples == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
}

void measure_pieces(TIFF* tiff, TiffLayout& layout) {
  const bool tiled = TIFFIsTiled(tiff) != 0;
  if (tiled) {
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &layout.piece_width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &layout.piece_height);
  } else {
    std::uint32_t rows = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    layout.piece_width = layout.width;
    layout.piece_height = std::min(rows, layout.height);
  }
  layout.pieces = tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  layout.piece_bytes = tiled ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
  layout.pieces_across = parts(layout.width, layout.piece_width);
  layout.pieces_down = parts(layout.height, layout.piece_height);
}

}  // namespace

bool TiffLayout::is_fax() const {
  return compression == COMPRESSION_CCITTRLE || compression == COMPRESSION_CCITTFAX3 ||
         compression == COMPRESSION_CCITTFAX4;
}

TiffLayout::Place TiffLayout::place_of(std::uint32_t piece) const {
  const auto of_plane = static_cast<std::uint32_t>(pieces_of_plane());
  const std::uint32_t within = piece % of_plane;
  Place place;
  place.plane = piece / of_plane;
  place.left = within % pieces_across * piece_width;
  place.top = within / pieces_across * piece_height;
  place.columns = std::min(piece_width, width - place.left);
  place.rows = std::min(piece_height, height - place.top);
  return place;
}

TiffLayout layout_of(TIFF* tiff) {
  TiffLayout layout;
  std::uint16_t planes = 0;
  std::uint16_t* kinds = nullptr;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &layout.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &layout.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &layout.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &layout.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &layout.extra_samples, &kinds);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &layout.sample_format);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &layout.compression);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planes);
  layout.planes = planes == PLANARCONFIG_SEPARATE && layout.samples > 1;
  layout.photometric = photometric_of(tiff, layout);
  measure_pieces(tiff, layout);
  return layout;
}

std::optional<Decoded> refused_layout(const TiffLayout& layout) {
  constexpr std::uint16_t kMostBits = 16, kMostSamples = 8;
  constexpr std::uint32_t kMostPieces = 1u << 20;
  if (!is_read(layout.compression)) {
    return unsupported("another compression (" + name_of_compression(layout.compression) + ")",
                       "convert it to PNG");
  }
  if (layout.sample_format != SAMPLEFORMAT_UINT && layout.sample_format != SAMPLEFORMAT_VOID) {
    return unsupported(name_of_samples(layout.sample_format),
                       "convert it to unsigned integers of 8 bits");
  }
  if (layout.bits > kMostBits || layout.samples > kMostSamples) {
    return unsupported(std::to_string(layout.samples) + " samples of " +
                           std::to_string(layout.bits) + " bits per pixel",
                       "convert it to 8 bits");
  }
  if (layout.pieces > kMostPieces) {
    return refused(data::ReadStatus::too_large,
                   "above " + with_commas(kMostPieces) + " strips or tiles");
  }
  if (layout.pieces == 0 || layout.piece_bytes == 0) {
    return refused(data::ReadStatus::not_an_image, "there is no image in it");
  }
  if (layout.pieces != layout.planes_stored() * layout.pieces_of_plane()) {
    return refused(data::ReadStatus::not_an_image, "its strips or tiles do not make up its image");
  }
  if (layout.piece_bytes > kMaxDecoderBytes / layout.pieces) {
    return refused(data::ReadStatus::too_large, "its strips or tiles decode to more than 1 GiB");
  }
  return {};
}

std::optional<Decoded> refused_pieces(TIFF* tiff, const TiffLayout& layout,
                                      std::span<const std::uint8_t> file) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < layout.pieces; ++i) {
    const std::uint64_t offset = TIFFGetStrileOffset(tiff, i);
    const std::uint64_t count = TIFFGetStrileByteCount(tiff, i);
    if (count == 0 || offset > file.size() || count > file.size() - offset) return truncated();
    bytes += count;
    if (bytes > file.size()) {
      return refused(data::ReadStatus::not_an_image, "its strips or tiles lie on each other");
    }
  }
  return {};
}

std::span<const std::uint8_t> bytes_of_piece(TIFF* tiff, std::uint32_t piece,
                                             std::span<const std::uint8_t> file) {
  return file.subspan(to_size(TIFFGetStrileOffset(tiff, piece)),
                      to_size(TIFFGetStrileByteCount(tiff, piece)));
}

}  // namespace cputrain::datasets
