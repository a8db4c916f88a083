#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/text.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/limits.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

/// The file as libtiff reads it, and the first error that libtiff tells of it. Handlers are given
/// to each file when it is opened: those of the whole library print, and are shared by all threads.
struct Source {
  Bytes file;
  std::uint64_t at = 0;
  char message[160] = {};
};

Source& source_of(thandle_t handle) { return *static_cast<Source*>(handle); }

tmsize_t read_bytes(thandle_t handle, void* dst, tmsize_t count) {
  Source& source = source_of(handle);
  const std::uint64_t left =
      source.file.size() - std::min<std::uint64_t>(source.at, source.file.size());
  const std::uint64_t size =
      std::min(left, static_cast<std::uint64_t>(std::max<tmsize_t>(count, 0)));
  if (size > 0) std::memcpy(dst, source.file.data() + source.at, size);
  source.at += size;
  return static_cast<tmsize_t>(size);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  Source& source = source_of(handle);
  const std::uint64_t from = whence == SEEK_CUR   ? source.at
                             : whence == SEEK_END ? source.file.size()
                                                  : 0;
  return source.at = from + offset;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of_file(thandle_t handle) { return source_of(handle).file.size(); }

/// libtiff only reads a file that is opened for reading, though it asks for a pointer to write by.
int map_file(thandle_t handle, void** base, toff_t* size) {
  const Bytes file = source_of(handle).file;
  *base = const_cast<std::uint8_t*>(file.data());
  *size = file.size();
  return 1;
}
void unmap_nothing(thandle_t, void*, toff_t) {}

int keep_error(TIFF*, void* user, const char*, const char* format, va_list values) {
  Source& source = *static_cast<Source*>(user);
  if (source.message[0] == 0) std::vsnprintf(source.message, sizeof source.message, format, values);
  return 1;  // nobody else need hear of it
}

/// Mostly of tags that do not concern the pixels.
int ignore_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, Close>;

Tiff open_tiff(Source& source) {
  struct Free {
    void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
  };
  const std::unique_ptr<TIFFOpenOptions, Free> options(TIFFOpenOptionsAlloc());
  if (!options) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(kMaxDecoderBytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore_warning, nullptr);
  return Tiff(TIFFClientOpenExt("image", "r", &source, read_bytes, write_nothing, seek,
                                close_nothing, size_of_file, map_file, unmap_nothing,
                                options.get()));
}

/// Numbers of the file's own byte order.
class Numbers {
 public:
  explicit Numbers(Bytes file) : file_(file), little_(file[0] == 'I') {}

  bool are_there(std::uint64_t at, std::uint64_t bytes) const {
    return at <= file_.size() && bytes <= file_.size() - at;
  }
  /// Of 2, 4 or 8 bytes that are there.
  std::uint64_t at(std::uint64_t place, std::size_t bytes) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      value = value << 8 | file_[static_cast<std::size_t>(place) + (little_ ? bytes - 1 - i : i)];
    }
    return value;
  }

 private:
  Bytes file_;
  bool little_;
};

/// Bytes of a value, by its type (TIFF 6.0, section 2; BigTIFF's three at the end).
std::uint64_t bytes_of_type(std::uint64_t type) {
  constexpr std::array<std::uint8_t, 19> kBytes{0, 1, 1, 2, 4, 8, 1, 1, 2, 4,
                                                8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[static_cast<std::size_t>(type)] : 0;
}

/// The values of the first directory's tags that lie outside of it.
struct TagValues {
  std::uint64_t stored = 0;  ///< bytes in the file, where values may lie on each other
  std::uint64_t read = 0;    ///< bytes that libtiff takes at most
};

/// Nothing where the first directory or a value is not in the file. They often lie behind the
/// pixels, and libtiff goes on without a tag whose value is cut off: without a palette in grey.
std::optional<TagValues> tag_values(Bytes file) {
  constexpr std::uint64_t kLargestNumber = 8;  // libtiff keeps some shorter ones in so many bytes
  const Numbers numbers(file);
  const bool big = numbers.at(2, 2) == 43;
  const std::size_t offset_bytes = big ? 8 : 4, count_bytes = big ? 8 : 2, entry = big ? 20 : 12;
  if (!numbers.are_there(big ? 8 : 4, offset_bytes)) return {};
  const std::uint64_t begin = numbers.at(big ? 8 : 4, offset_bytes);
  if (!numbers.are_there(begin, count_bytes)) return {};
  const std::uint64_t entries = numbers.at(begin, count_bytes), first = begin + count_bytes;
  if (entries > file.size() / entry || !numbers.are_there(first, entries * entry)) return {};
  TagValues values;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t at = first + i * entry, place = at + 4 + offset_bytes;
    const std::uint64_t each = bytes_of_type(numbers.at(at + 2, 2));
    const std::uint64_t count = numbers.at(at + 4, offset_bytes);
    if (each == 0 || count <= offset_bytes / each) continue;  // unknown, or in the entry itself
    if (count > file.size()) return {};
    if (!numbers.are_there(numbers.at(place, offset_bytes), count * each)) return {};
    values.stored += count * each;
    values.read += count * (each + kLargestNumber);  // as stored, and turned into numbers
  }
  return values;
}

/// How the first page is stored: in strips or tiles, each coded by itself.
struct Layout {
  std::uint32_t width = 0, height = 0, pieces = 0;
  std::uint16_t bits = 1, samples = 1, compression = COMPRESSION_NONE, planes = PLANARCONFIG_CONTIG;
  std::uint64_t piece_bytes = 0;  // decoded

  bool planar() const { return planes == PLANARCONFIG_SEPARATE; }
};

Layout layout_of(TIFF* tiff) {
  Layout layout;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &layout.width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &layout.height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &layout.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &layout.samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &layout.compression);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &layout.planes);
  const bool tiled = TIFFIsTiled(tiff) != 0;
  layout.pieces = tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  layout.piece_bytes = tiled ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
  return layout;
}

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

std::optional<Decoded> refused_layout(const Layout& layout) {
  constexpr std::uint16_t kMostBits = 16, kMostSamples = 8;
  constexpr std::uint32_t kMostPieces = 1u << 20;
  if (!is_read(layout.compression)) {
    return refused(
        data::ReadStatus::unsupported,
        "a TIFF of compression " + std::to_string(layout.compression) + "; convert it to PNG");
  }
  if (layout.bits > kMostBits || layout.samples > kMostSamples) {
    return refused(data::ReadStatus::unsupported, "a TIFF of " + std::to_string(layout.samples) +
                                                      " samples of " + std::to_string(layout.bits) +
                                                      " bits per pixel");
  }
  if (layout.pieces > kMostPieces) {
    return refused(data::ReadStatus::too_large,
                   "above " + with_commas(kMostPieces) + " strips or tiles");
  }
  if (layout.pieces == 0 || layout.piece_bytes == 0) {
    return refused(data::ReadStatus::not_an_image, "there is no image in it");
  }
  if (layout.piece_bytes > kMaxDecoderBytes / layout.pieces) {
    return refused(data::ReadStatus::too_large, "its strips or tiles decode to more than 1 GiB");
  }
  return {};
}

/// Begins of scans in a JPEG stream. Inside of coded data, 0xFF is always followed by 0.
std::int64_t scans_of(Bytes jpeg) {
  std::int64_t scans = 0;
  for (std::size_t i = 1; i < jpeg.size(); ++i) scans += jpeg[i - 1] == 0xFF && jpeg[i] == 0xDA;
  return scans;
}

/// Bytes of strips that lie on each other would be decoded many times: many times the work of the
/// file.
std::optional<Decoded> refused_pieces(TIFF* tiff, const Layout& layout, Bytes file) {
  std::uint64_t bytes = 0;
  std::int64_t samples = 0;
  for (std::uint32_t i = 0; i < layout.pieces; ++i) {
    const std::uint64_t offset = TIFFGetStrileOffset(tiff, i);
    const std::uint64_t count = TIFFGetStrileByteCount(tiff, i);
    if (offset > file.size() || count > file.size() - offset) {
      return refused(data::ReadStatus::truncated, "the file ends before its last strip or tile");
    }
    bytes += count;
    if (bytes > file.size()) {
      return refused(data::ReadStatus::not_an_image, "its strips or tiles lie on each other");
    }
    if (layout.compression != COMPRESSION_JPEG) continue;
    const Bytes jpeg =
        file.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
    samples += static_cast<std::int64_t>(layout.piece_bytes) * scans_of(jpeg);
    if (samples > kMaxScanSamples) {
      return refused(data::ReadStatus::too_large,
                     "above " + with_commas(kMaxScanSamples) + " samples x scans");
    }
  }
  return {};
}

bool has_alpha(TIFF* tiff) {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds);
  return count > 0;
}

/// libtiff darkens pixels by alpha where that is not done yet; here alpha is dropped, as of a PNG.
void drop_alpha(TIFF* tiff) {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds);
  if (count == 0 || kinds[0] != EXTRASAMPLE_UNASSALPHA) return;
  std::vector<std::uint16_t> dropped(kinds, kinds + count);
  dropped[0] = EXTRASAMPLE_ASSOCALPHA;
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(count), dropped.data());
}

/// Fills the raster with words of alpha, blue, green and red; empty, or why not.
std::string read_raster(TIFF* tiff, const Layout& layout, std::vector<std::uint32_t>& raster) {
  char problem[1024] = {};
  TIFFRGBAImage image;
  if (TIFFRGBAImageOK(tiff, problem) == 0 ||
      TIFFRGBAImageBegin(&image, tiff, /* stop at errors */ 1, problem) == 0) {
    return problem[0] != 0 ? problem : "a kind of TIFF that libtiff does not read";
  }
  image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;  // as it is stored
  const int done = TIFFRGBAImageGet(&image, raster.data(), layout.width, layout.height);
  TIFFRGBAImageEnd(&image);
  return done != 0 ? "" : "damaged TIFF data";
}

void copy_colours(const std::vector<std::uint32_t>& raster, std::uint8_t* rgb) {
  for (const std::uint32_t word : raster) {
    *rgb++ = static_cast<std::uint8_t>(TIFFGetR(word));
    *rgb++ = static_cast<std::uint8_t>(TIFFGetG(word));
    *rgb++ = static_cast<std::uint8_t>(TIFFGetB(word));
  }
}

}  // namespace

Decoded decode_tiff(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  const auto tags = tag_values(file);
  if (!tags) {
    return refused(data::ReadStatus::truncated,
                   "the file ends before its directory or a value of it");
  }
  if (tags->stored > 2 * file.size()) {  // libtiff copies each, those that it does not know, too
    return refused(data::ReadStatus::not_an_image, "the values of its tags lie on each other");
  }
  claim.grow(static_cast<std::size_t>(tags->read));
  Source source{file};
  const Tiff tiff = open_tiff(source);
  const auto damaged = [&](const std::string& words) {
    return refused(data::ReadStatus::not_an_image, source.message[0] != 0 ? source.message : words);
  };
  if (!tiff) return damaged("damaged TIFF directory");
  const Layout layout = layout_of(tiff.get());
  if (auto refusal = refused_size(layout.width, layout.height)) return *std::move(refusal);
  if (auto refusal = refused_layout(layout)) return *std::move(refusal);
  if (auto refusal = refused_pieces(tiff.get(), layout, file)) return *std::move(refusal);
  drop_alpha(tiff.get());
  const std::size_t pixels = std::size_t{layout.width} * layout.height;
  claim.grow(pixels * sizeof(std::uint32_t) +
             static_cast<std::size_t>(layout.piece_bytes) * (layout.planar() ? layout.samples : 1));
  Decoded decoded;
  decoded.image = black_image(layout.width, layout.height, claim);
  std::vector<std::uint32_t> raster(pixels);
  const std::string problem = read_raster(tiff.get(), layout, raster);
  if (!problem.empty()) return damaged(problem);
  copy_colours(raster, decoded.image.rgb.data());
  decoded.result.warned = source.message[0] != 0;
  decoded.stored = {has_alpha(tiff.get()), layout.bits};
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
