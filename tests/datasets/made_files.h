#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/decode/decode.h"

/// Tiny image files made for tests, none of them by the code under test.
namespace cputrain::datasets {

using Bytes = std::vector<std::uint8_t>;

/// A smooth image in which no two rows, columns or channels are alike.
Image smooth_image(int width, int height);

/// Value of channel c of pixel (y, x) in any image.
int pixel(const Image&, int y, int x, int c);

enum class JpegKind { rgb, progressive, grey, cmyk_adobe, ycck_adobe, cmyk_plain };

/// JPEG of quality 95 through libjpeg. The kinds with four inks store the channels as the first
/// three inks as they are and 200 as the fourth; grey stores the red channel.
Bytes jpeg_of(const Image&, JpegKind = JpegKind::rgb);

/// The JPEG with an EXIF orientation from 1 to 8, in the byte order of Motorola.
Bytes with_orientation(const Bytes& jpeg, int orientation);

/// A JPEG of one component in `scans` scans, all of the same coded data. Header and tables are
/// those of ITU T.81, put together by hand: in the only code of each table a bit of 0 means the
/// value 0. `frame` is 0xC2 for progressive coding and 0xC9 for arithmetic coding.
Bytes jpeg_of_scans(std::uint32_t width, std::uint32_t height, int scans, std::uint8_t frame = 0xC2,
                    const Bytes& data = {});

/// PNG with 3 channels of 8 bits.
Bytes png_of(const Image&);
/// BMP with 24 bits a pixel.
Bytes bmp_of(const Image&);
/// GIF of an image whose channels are all below 128 and equal: its palette is a ramp of grey.
Bytes gif_of(const Image&);
/// By zlib; a negative number of bits is a stream without a head.
Bytes deflated(const Bytes&, int window_bits);
Bytes gzip_of(const Bytes&);

/// Header and data of an IDX file.
Bytes idx_of(const std::vector<std::uint32_t>& extents, const Bytes& values);

/// The file with `value` in `count` bytes at `at`, the most significant byte first.
Bytes patched(Bytes file, std::size_t at, std::uint32_t value, int count);
/// Where a run of bytes begins in a file.
std::size_t position_of(const Bytes& file, std::string_view bytes);
/// Sets the checksums of all chunks that are complete.
Bytes with_png_checksums(const Bytes& png);
/// Sets the checksum of everything before the pixels of a packed file, where there is room for one.
Bytes with_packed_checksum(const Bytes&);
Bytes prefix(const Bytes& file, std::size_t size);

/// Makes the folders of the path, too.
void write_bytes(const std::filesystem::path&, const Bytes&);
Bytes bytes_of(std::string_view text);

}  // namespace cputrain::datasets
