#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "datasets/decode/decode.h"

/// One decoder per format, for decode() alone. Each reads the header first, refuses what is beyond
/// limits.h, then claims its memory and decodes. None gives out memory that it did not write: an
/// image whose data end before its last pixel, or name a colour behind the palette, is refused.
namespace cputrain::datasets {

/// libjpeg (islow DCT, smooth chroma upsampling: the settings of Pillow). CMYK and YCCK become RGB,
/// grey becomes three equal channels. A file whose data end before the image is complete is
/// `truncated`; other complaints of libjpeg set `warned`.
Decoded decode_jpeg(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// libpng, row by row. Alpha is dropped, of 16 bits the upper 8 stay. Every checksum must be right.
/// A file that ends behind its pixel data is `warned`.
Decoded decode_png(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// Palettes of 1, 4 and 8 bits, 16, 24 and 32 bits with or without masks; alpha is dropped.
/// Run-length coding is `unsupported`.
Decoded decode_bmp(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// The first image on its screen, which grows to hold it: what it leaves out has the background
/// colour, transparent pixels are black.
Decoded decode_gif(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// libwebp, lossy and lossless; of an animation the first frame on a black canvas. Alpha is
/// dropped. Sizes in the headers around the image must be its own.
Decoded decode_webp(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// The first page: grey, RGB, palette, YCbCr, CIELab and CMYK of unsigned integers, in strips or
/// tiles; alpha is dropped. Pixels are as they are stored, since decode() returns how to turn them.
/// JPEG in it is decoded as decode_jpeg() does, the rest by libtiff.
Decoded decode_tiff(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// HEIC and AVIF by libheif, whose pictures libde265 and dav1d decode: of a sequence or a burst the
/// primary picture. Turned, mirrored and cropped as the file's own properties say (irot, imir,
/// clap), which in this format decide, whatever EXIF data say (ISO/IEC 23008-12, 6.5.10). Alpha is
/// dropped, of 10 and 12 bits the upper 8 stay.
Decoded decode_heif(std::span<const std::uint8_t> file, DecodingBudget::Claim&);

/// Name and version of the library, at run time, or of its headers where the first file loads it;
/// empty where the program was built without it.
std::string png_library();
std::string webp_library();
std::string tiff_library();
std::string heif_library();

Decoded refused(data::ReadStatus, std::string detail);

/// The refusal of every format whose data end too early, wherever they do.
Decoded truncated();

/// Why an image of this size cannot be read, if it cannot.
std::optional<Decoded> refused_size(std::int64_t width, std::int64_t height);

/// Claims and makes a black image. Memory that a decoder should fill and does not is black, not
/// what lay there before.
Image black_image(std::int64_t width, std::int64_t height, DecodingBudget::Claim&);

}  // namespace cputrain::datasets
