#include "datasets/decode/tiff/jpeg_pieces.h"

#include <algorithm>
#include <vector>

#include "datasets/decode/jpeg_stream.h"

namespace cputrain::datasets {
namespace {

/// What the samples of a pixel are. The tags decide, whatever markers a stream has.
enum class Colours { black_is_zero, white_is_zero, rgb, ycc, inks };

std::optional<Colours> colours_of(TIFF* tiff, const TiffLayout& layout) {
  if (layout.bits != 8) return {};
  std::uint16_t ink_set = INKSET_CMYK;
  switch (layout.photometric) {
    case PHOTOMETRIC_MINISBLACK:
      return Colours::black_is_zero;
    case PHOTOMETRIC_MINISWHITE:
      return Colours::white_is_zero;
    case PHOTOMETRIC_RGB:
      if (layout.samples >= 3) return Colours::rgb;
      return {};
    case PHOTOMETRIC_YCBCR:
      if (layout.samples == 3 && !layout.planes) return Colours::ycc;
      return {};
    case PHOTOMETRIC_SEPARATED:
      TIFFGetFieldDefaulted(tiff, TIFFTAG_INKSET, &ink_set);
      if (layout.samples == 4 && !layout.planes && ink_set == INKSET_CMYK) return Colours::inks;
      return {};
    default:
      return {};
  }
}

/// Samples of a row, `step` from pixel to pixel, to RGB. With planes it is one channel alone.
struct RowOfSamples {
  Colours colours;
  std::size_t step;
  bool planes;
  std::uint32_t plane;

  void put(const std::uint8_t* row, std::size_t columns, std::uint8_t* rgb) const {
    if (colours == Colours::inks) return rgb_of_inks(row, columns, false, rgb);
    const bool coloured = colours == Colours::rgb || colours == Colours::ycc;
    const std::uint8_t flip = colours == Colours::white_is_zero ? 0xFF : 0;
    for (std::size_t x = 0; x < columns; ++x, row += step, rgb += 3) {
      if (coloured && planes) {
        rgb[plane] = row[0];
      } else if (coloured) {
        std::copy_n(row, 3, rgb);
      } else {
        std::fill_n(rgb, 3, static_cast<std::uint8_t>(row[0] ^ flip));
      }
    }
  }
};

class Pieces {
 public:
  Pieces(TIFF* tiff, const TiffLayout& layout, std::span<const std::uint8_t> file, Colours colours,
         DecodingBudget::Claim& claim)
      : tiff_(tiff), layout_(layout), file_(file), colours_(colours), claim_(claim) {}

  Decoded decode();

 private:
  std::optional<Decoded> begin();
  std::optional<Decoded> decode_piece(std::uint32_t piece, Image&);
  std::optional<Decoded> refused_shape(const TiffLayout::Place&) const;
  void claim_working_bytes();

  TIFF* tiff_;
  const TiffLayout& layout_;
  std::span<const std::uint8_t> file_;
  Colours colours_;
  DecodingBudget::Claim& claim_;
  JpegStreams streams_;
  std::vector<std::uint8_t> row_;
  std::size_t claimed_ = 0;
  bool warned_ = false;
};

std::optional<Decoded> Pieces::begin() {
  if (!streams_.create()) return streams_.failure();
  std::uint32_t bytes = 0;
  const void* tables = nullptr;
  if (TIFFGetField(tiff_, TIFFTAG_JPEGTABLES, &bytes, &tables) != 0 && bytes > 0 &&
      !streams_.read_tables({static_cast<const std::uint8_t*>(tables), bytes})) {
    return streams_.failure();
  }
  row_.resize(std::size_t{layout_.piece_width} * layout_.samples);
  claim_.grow(row_.size());
  return {};
}

/// A stream may end with the image, where its piece goes on beyond.
std::optional<Decoded> Pieces::refused_shape(const TiffLayout::Place& place) const {
  const jpeg_decompress_struct& info = streams_.info;
  const bool fits = info.image_width >= place.columns && info.image_width <= layout_.piece_width &&
                    info.image_height >= place.rows && info.image_height <= layout_.piece_height;
  const int samples = layout_.planes ? 1 : layout_.samples;
  if (fits && info.num_components == samples) return {};
  return refused(data::ReadStatus::not_an_image,
                 "a JPEG in it has another size or other colours than its strip or tile");
}

/// The most of any piece: libjpeg gives back what it took for the one before.
void Pieces::claim_working_bytes() {
  const std::size_t bytes = streams_.working_bytes();
  if (bytes <= claimed_) return;
  claim_.grow(bytes - claimed_);
  claimed_ = bytes;
}

std::optional<Decoded> Pieces::decode_piece(std::uint32_t piece, Image& image) {
  const TiffLayout::Place place = layout_.place_of(piece);
  const auto stream = bytes_of_piece(tiff_, piece, file_);
  if (!streams_.read_header(stream)) return streams_.failure();
  if (auto refusal = refused_shape(place)) return refusal;
  if (auto refusal = streams_.refused_scans(stream)) return refusal;
  claim_working_bytes();
  streams_.info.jpeg_color_space = colours_ == Colours::ycc ? JCS_YCbCr : JCS_UNKNOWN;
  streams_.info.out_color_space = colours_ == Colours::ycc ? JCS_RGB : JCS_UNKNOWN;
  const RowOfSamples samples{colours_, layout_.planes ? 1u : layout_.samples, layout_.planes,
                             place.plane};
  std::uint8_t* const row = row_.data();
  std::uint8_t* const rgb =
      image.rgb.data() + (std::size_t{place.top} * layout_.width + place.left) * 3;
  const std::size_t stride = std::size_t{layout_.width} * 3, columns = place.columns;
  const bool read = read_rows(
      streams_, place.rows, [=](JDIMENSION) { return row; },
      [=](JDIMENSION y) { samples.put(row, columns, rgb + stride * y); });
  if (!read) return streams_.failure();
  if (streams_.is_truncated()) return truncated();
  warned_ |= !streams_.ends_clean();
  return {};
}

Decoded Pieces::decode() {
  if (auto refusal = begin()) return *std::move(refusal);
  const bool coloured = colours_ == Colours::rgb;
  const std::uint32_t planes_read = layout_.planes && coloured ? 3 : 1;  // alpha is not
  Decoded decoded;
  decoded.image = black_image(layout_.width, layout_.height, claim_);
  for (std::uint32_t piece = 0; piece < planes_read * layout_.pieces_of_plane(); ++piece) {
    if (auto refusal = decode_piece(piece, decoded.image)) return *std::move(refusal);
  }
  decoded.result.warned = warned_;
  return decoded;
}

}  // namespace

Decoded decode_jpeg_pieces(TIFF* tiff, const TiffLayout& layout, std::span<const std::uint8_t> file,
                           DecodingBudget::Claim& claim) {
  const auto colours = colours_of(tiff, layout);
  if (!colours) {
    return refused(data::ReadStatus::unsupported,
                   "a TIFF of JPEG in colours of another kind; convert it to PNG");
  }
  return Pieces(tiff, layout, file, *colours, claim).decode();
}

}  // namespace cputrain::datasets
