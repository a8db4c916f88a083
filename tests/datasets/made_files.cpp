#include "tests/datasets/made_files.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
//
#include <jpeglib.h>
#include <zlib.h>

#include <algorithm>
#include <stdexcept>

namespace cputrain::datasets {
namespace {

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

void append_big_endian(Bytes& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to.push_back(static_cast<std::uint8_t>(value >> shift));
}

void append_little_endian(Bytes& to, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void append_chunk(Bytes& png, std::string_view kind, const Bytes& data) {
  append_big_endian(png, static_cast<std::uint32_t>(data.size()));
  Bytes checked = bytes_of(kind);
  append(checked, data);
  append(png, checked);
  append_big_endian(
      png, static_cast<std::uint32_t>(crc32(0, checked.data(), static_cast<uInt>(checked.size()))));
}

void set_colours(jpeg_compress_struct& info, JpegKind kind) {
  const bool inks =
      kind == JpegKind::cmyk_adobe || kind == JpegKind::ycck_adobe || kind == JpegKind::cmyk_plain;
  info.input_components = inks ? 4 : kind == JpegKind::grey ? 1 : 3;
  info.in_color_space = inks ? JCS_CMYK : kind == JpegKind::grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (kind == JpegKind::ycck_adobe) jpeg_set_colorspace(&info, JCS_YCCK);
  if (kind == JpegKind::cmyk_plain) info.write_Adobe_marker = FALSE;
  if (kind == JpegKind::progressive) jpeg_simple_progression(&info);
}

}  // namespace

Image smooth_image(int width, int height) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int across = x * 120 / width, down = y * 120 / height;
      for (const int value : {20 + across, 130 + down, 250 - across - down}) {
        image.rgb.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return image;
}

int pixel(const Image& image, int y, int x, int c) {
  return image.rgb[(static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) +
                    static_cast<std::size_t>(x)) *
                       3 +
                   static_cast<std::size_t>(c)];
}

Bytes jpeg_of(const Image& image, JpegKind kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr error{};
  info.err = jpeg_std_error(&error);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  set_colours(info, kind);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < image.height; ++y) {
    Bytes row;
    for (int x = 0; x < image.width; ++x) {
      for (int c = 0; c < info.input_components; ++c) {
        row.push_back(static_cast<std::uint8_t>(c == 3 ? 200 : pixel(image, y, x, c)));
      }
    }
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes file(memory, memory + size);
  std::free(memory);
  return file;
}

Bytes with_orientation(const Bytes& jpeg, int orientation) {
  using namespace std::string_view_literals;
  constexpr std::string_view kExif =
      "\xFF\xE1\0\x22"
      "Exif\0\0"
      "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0"sv;
  constexpr std::size_t kValue = 29;
  Bytes exif = bytes_of(kExif), file = jpeg;
  exif[kValue] = static_cast<std::uint8_t>(orientation);
  file.insert(file.begin() + 2, exif.begin(), exif.end());
  return file;
}

Bytes jpeg_of_scans(std::uint32_t width, std::uint32_t height, int scans, std::uint8_t frame,
                    const Bytes& data) {
  Bytes jpeg;
  append(jpeg, {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0});
  append(jpeg, Bytes(64, 1));
  append(jpeg, {0xFF, frame, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0});
  jpeg = patched(jpeg, jpeg.size() - 8, height << 16 | width, 4);
  for (const std::uint8_t table : {0x00, 0x10}) {  // one code of one bit, which means 0
    jpeg.insert(jpeg.end(), {0xFF, 0xC4, 0, 20, table, 1});
    jpeg.resize(jpeg.size() + 15, 0);
    jpeg.push_back(0);
  }
  for (int scan = 0; scan < scans; ++scan) {
    const auto last = static_cast<std::uint8_t>(scan == 0 ? 0 : 63);
    const auto first = static_cast<std::uint8_t>(scan == 0 ? 0 : 1);
    jpeg.insert(jpeg.end(), {0xFF, 0xDA, 0, 8, 1, 1, 0, first, last, 0});
    append(jpeg, data);
  }
  jpeg.insert(jpeg.end(), {0xFF, 0xD9});
  return jpeg;
}

Bytes png_of(const Image& image) {
  Bytes header, rows;
  append_big_endian(header, static_cast<std::uint32_t>(image.width));
  append_big_endian(header, static_cast<std::uint32_t>(image.height));
  append(header, {8, 2, 0, 0, 0});  // bits, RGB, deflate, filters, not interlaced
  const auto row = static_cast<std::ptrdiff_t>(image.width) * 3;
  for (int y = 0; y < image.height; ++y) {
    rows.push_back(0);  // no filter
    rows.insert(rows.end(), image.rgb.begin() + y * row, image.rgb.begin() + (y + 1) * row);
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  Bytes packed(size);
  compress(packed.data(), &size, rows.data(), static_cast<uLong>(rows.size()));
  packed.resize(size);
  Bytes png = bytes_of("\x89PNG\r\n\x1A\n");
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", packed);
  append_chunk(png, "IEND", {});
  return png;
}

Bytes bmp_of(const Image& image) {
  const int row = (image.width * 3 + 3) / 4 * 4;
  Bytes bmp = bytes_of("BM");
  append_little_endian(bmp, static_cast<std::uint32_t>(54 + row * image.height), 4);
  append_little_endian(bmp, 0, 4);
  append_little_endian(bmp, 54, 4);
  append_little_endian(bmp, 40, 4);
  append_little_endian(bmp, static_cast<std::uint32_t>(image.width), 4);
  append_little_endian(bmp, static_cast<std::uint32_t>(image.height), 4);
  append_little_endian(bmp, 1, 2);
  append_little_endian(bmp, 24, 2);
  bmp.resize(54, 0);
  for (int y = image.height - 1; y >= 0; --y) {
    for (int x = 0; x < image.width; ++x) {
      for (int c = 2; c >= 0; --c) bmp.push_back(static_cast<std::uint8_t>(pixel(image, y, x, c)));
    }
    bmp.resize(bmp.size() + static_cast<std::size_t>(row - image.width * 3), 0);
  }
  return bmp;
}

Bytes gif_of(const Image& image) {
  Bytes gif = bytes_of("GIF89a");
  append_little_endian(gif, static_cast<std::uint32_t>(image.width), 2);
  append_little_endian(gif, static_cast<std::uint32_t>(image.height), 2);
  append(gif, {0x80 | 6, 0, 0});  // a palette of 128
  for (std::uint8_t grey = 0; grey < 128; ++grey) append(gif, {grey, grey, grey});
  append(gif, {0x2C, 0, 0, 0, 0});
  append_little_endian(gif, static_cast<std::uint32_t>(image.width), 2);
  append_little_endian(gif, static_cast<std::uint32_t>(image.height), 2);
  gif.push_back(0);
  // Codes stay 8 bits wide when a clear code (128) comes before the table outgrows them.
  Bytes codes;
  for (std::size_t i = 0; i < image.rgb.size() / 3; ++i) {
    if (i % 100 == 0) codes.push_back(128);
    codes.push_back(image.rgb[i * 3]);
  }
  codes.push_back(129);
  gif.push_back(7);
  for (std::size_t at = 0; at < codes.size(); at += 255) {
    const std::size_t size = std::min<std::size_t>(255, codes.size() - at);
    gif.push_back(static_cast<std::uint8_t>(size));
    const auto begin = codes.begin() + static_cast<std::ptrdiff_t>(at);
    gif.insert(gif.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  append(gif, {0, 0x3B});
  return gif;
}

Bytes deflated(const Bytes& bytes, int window_bits) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 32);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes gzip_of(const Bytes& bytes) { return deflated(bytes, MAX_WBITS + 16); }

Bytes idx_of(const std::vector<std::uint32_t>& extents, const Bytes& values) {
  Bytes file{0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  for (const std::uint32_t extent : extents) append_big_endian(file, extent);
  append(file, values);
  return file;
}

Bytes patched(Bytes file, std::size_t at, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i) {
    file.at(at + static_cast<std::size_t>(i)) =
        static_cast<std::uint8_t>(value >> (8 * (count - 1 - i)));
  }
  return file;
}

std::size_t position_of(const Bytes& file, std::string_view bytes) {
  const Bytes wanted = bytes_of(bytes);
  const auto found = std::search(file.begin(), file.end(), wanted.begin(), wanted.end());
  if (found == file.end()) throw std::logic_error("the bytes are not in the file");
  return static_cast<std::size_t>(found - file.begin());
}

Bytes with_png_checksums(const Bytes& file) {
  Bytes png = file;
  std::size_t at = 8;
  while (at + 12 <= png.size()) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | png[at + i];
    if (length > png.size() - at - 12) break;
    const auto sum = crc32(0, png.data() + at + 4, static_cast<uInt>(length + 4));
    png = patched(std::move(png), at + 8 + length, static_cast<std::uint32_t>(sum), 4);
    at += 12 + length;
  }
  return png;
}

Bytes with_packed_checksum(const Bytes& file) {
  Bytes packed = file;
  if (packed.size() < 80) return packed;
  std::uint64_t end = 0;
  for (std::size_t i = 8; i-- > 0;) end = end << 8 | packed[56 + i];
  if (end < 16 || end > packed.size()) return packed;
  const auto sum = crc32(0, packed.data() + 16, static_cast<uInt>(end - 16));
  for (std::size_t i = 0; i < 4; ++i) {
    packed[12 + i] = static_cast<std::uint8_t>(sum >> (8 * i));
  }
  return packed;
}

Bytes prefix(const Bytes& file, std::size_t size) {
  return {file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)};
}

void write_bytes(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::remove(path);  // some file systems flush a file that is cut and written again
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace cputrain::datasets
