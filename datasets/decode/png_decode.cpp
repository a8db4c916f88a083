#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "core/casts.h"
#include "datasets/decode/decoders.h"

namespace cputrain::datasets {
namespace {

constexpr std::size_t kIhdrEnd = 29;  // signature, length, type, and the 13 bytes of IHDR

/// The file as libpng reads it, and libpng's messages. Its error handler must not return, and an
/// exception must not cross its C frames, so the handler jumps back to attempt() below.
struct PngState {
  std::span<const std::uint8_t> file;
  std::size_t at = 0;
  bool file_ended = false;
  int warnings = 0;
  char message[128] = {};
  std::jmp_buf jump{};
};

void on_error(png_structp png, png_const_charp message) {
  PngState& state = *static_cast<PngState*>(png_get_error_ptr(png));
  std::snprintf(state.message, sizeof state.message, "%s", message);
  std::longjmp(state.jump, 1);
}

void on_warning(png_structp png, png_const_charp) {
  ++static_cast<PngState*>(png_get_error_ptr(png))->warnings;
}

void read_bytes(png_structp png, png_bytep dst, std::size_t count) {
  PngState& state = *static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state.file.size() - state.at) {
    state.file_ended = true;
    png_error(png, "the file ends before its IEND chunk");
  }
  std::memcpy(dst, state.file.data() + state.at, count);
  state.at += count;
}

struct Reader {
  PngState state;
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit Reader(std::span<const std::uint8_t> file) { state.file = file; }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Runs a piece of libpng work; false when libpng gave up. A jump skips destructors, so neither
/// this frame nor those of `work` may hold objects that have one.
template <class Work>
bool attempt(Reader& reader, Work work) {
  if (setjmp(reader.state.jump) != 0) return false;
  work(reader.png, reader.info);
  return true;
}

/// Up to the first IDAT. Texts and profiles are not pixels: libpng would inflate and keep a
/// thousand of them, 8 MB each.
bool read_header(Reader& reader) {
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader.state, on_error, on_warning);
  if (reader.png == nullptr) return false;
  return attempt(reader, [&](png_structp png, png_infop) {
    reader.info = png_create_info_struct(png);
    if (reader.info == nullptr) png_error(png, "Out of memory");
    png_set_read_fn(png, &reader.state, read_bytes);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_read_info(png, reader.info);
  });
}

/// Rows of RGB or, where there is a palette, of one index per pixel at the beginning of each row.
bool read_rows(Reader& reader, bool indexed, std::uint8_t* rgb, std::size_t stride) {
  return attempt(reader, [=](png_structp png, png_infop info) {
    if (indexed) {
      png_set_packing(png);
    } else {
      png_set_expand_gray_1_2_4_to_8(png);
      png_set_strip_16(png);
      png_set_strip_alpha(png);
      png_set_gray_to_rgb(png);
    }
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    const std::size_t width = png_get_image_width(png, info);
    if (png_get_rowbytes(png, info) != (indexed ? width : stride)) {
      png_error(png, "rows of another length");
    }
    const std::size_t height = png_get_image_height(png, info);
    for (int pass = 0; pass < passes; ++pass) {
      for (std::size_t y = 0; y < height; ++y) png_read_row(png, rgb + y * stride, nullptr);
    }
  });
}

std::size_t big_endian_32(std::span<const std::uint8_t> file, std::size_t at) {
  return std::size_t{file[at]} << 24 | std::size_t{file[at + 1]} << 16 |
         std::size_t{file[at + 2]} << 8 | file[at + 3];
}

/// Whether the file ends inside of its pixel data, though libpng needed no more of them.
bool ends_in_pixel_data(std::span<const std::uint8_t> file) {
  constexpr std::size_t kSignature = 8, kAround = 12;  // length, type and checksum of a chunk
  std::size_t at = kSignature;
  while (at + 8 <= file.size()) {
    const std::size_t bytes = kAround + big_endian_32(file, at);
    if (bytes > file.size() - at) return std::memcmp(file.data() + at + 4, "IDAT", 4) == 0;
    at += bytes;
  }
  return false;
}

/// What follows the last row. Where the file ends behind its pixel data no pixel is missing: that
/// is a complaint, as of a JPEG without its end marker.
bool read_end(Reader& reader) {
  if (attempt(reader, [](png_structp png, png_infop) { png_read_end(png, nullptr); })) return true;
  if (!reader.state.file_ended || ends_in_pixel_data(reader.state.file)) return false;
  ++reader.state.warnings;
  return true;
}

/// Indices become colours, from the last of a row to the first, since a colour takes the room of
/// three indices. False where one lies behind the palette: libpng, stb_image and browsers each show
/// something else there.
bool look_up(const Reader& reader, Image& image) {
  png_colorp palette = nullptr;
  int colours = 0;
  if (png_get_PLTE(reader.png, reader.info, &palette, &colours) == 0) return false;
  const std::size_t width = to_size(image.width);
  for (std::size_t row = 0; row < image.rgb.size(); row += width * 3) {
    std::uint8_t* const line = image.rgb.data() + row;
    for (std::size_t x = width; x-- > 0;) {
      const std::uint8_t index = line[x];
      if (index >= colours) return false;
      line[3 * x] = palette[index].red;
      line[3 * x + 1] = palette[index].green;
      line[3 * x + 2] = palette[index].blue;
    }
  }
  return true;
}

/// Before rows are read, which makes the description that of the rows. Alpha is a channel of its
/// own, or colours that are transparent (tRNS).
data::StoredAs stored_as(const Reader& reader) {
  return {(png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_ALPHA) != 0 ||
              png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0,
          png_get_bit_depth(reader.png, reader.info)};
}

Decoded failure(const Reader& reader) {
  if (reader.png == nullptr) return refused(data::ReadStatus::too_large, "libpng has no memory");
  if (reader.state.file_ended) return truncated();
  return refused(data::ReadStatus::not_an_image, reader.state.message);
}

}  // namespace

Decoded decode_png(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  if (file.size() < kIhdrEnd) return truncated();
  if (std::memcmp(file.data() + 12, "CgBI", 4) == 0) {
    return refused(data::ReadStatus::unsupported,
                   "a PNG of Apple's own kind (CgBI); convert it to JPEG");
  }
  if (std::memcmp(file.data() + 12, "IHDR", 4) != 0) {
    return refused(data::ReadStatus::not_an_image, "its first chunk is not IHDR");
  }
  // libpng would refuse a size beyond its own limits in other words.
  const auto width = static_cast<std::int64_t>(big_endian_32(file, 16));
  const auto height = static_cast<std::int64_t>(big_endian_32(file, 20));
  if (auto refusal = refused_size(width, height)) return *std::move(refusal);
  Reader reader(file);
  if (!read_header(reader)) return failure(reader);
  Decoded decoded;
  decoded.image = black_image(width, height, claim);
  decoded.stored = stored_as(reader);
  const bool indexed = png_get_color_type(reader.png, reader.info) == PNG_COLOR_TYPE_PALETTE;
  const auto stride = to_size(width) * 3;
  if (!read_rows(reader, indexed, decoded.image.rgb.data(), stride) || !read_end(reader)) {
    return failure(reader);
  }
  if (indexed && !look_up(reader, decoded.image)) {
    return refused(data::ReadStatus::not_an_image, "it names colours behind its palette");
  }
  decoded.result.warned = reader.state.warnings > 0;
  return decoded;
}

std::string png_library() { return std::string("libpng ") + png_get_libpng_ver(nullptr); }

}  // namespace cputrain::datasets
