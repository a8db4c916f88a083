// GIF 87a and 89a, as CompuServe's specification of 1990 has them: the first image. Read here and
// not by stb_image, which keeps three copies of the screen in RGBA, and takes an image whose codes
// end early for a whole one; nor by giflib (5.2), which draws pixels for codes that stand for
// nothing.
#include <algorithm>
#include <array>

#include "core/casts.h"
#include "datasets/decode/decoders.h"
#include "datasets/decode/little_endian.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kScreenHeader = 13;
constexpr std::uint8_t kImageBegins = 0x2C, kExtension = 0x21, kGraphicControl = 0xF9;
constexpr int kMaxCodes = 4096, kMaxCodeBits = 12;

Bytes palette_at(Bytes file, std::size_t at, std::uint8_t flags) {
  if ((flags & 0x80) == 0 || at > file.size()) return {};
  const std::size_t bytes = std::size_t{3} << ((flags & 7) + 1);
  return file.subspan(at, std::min(bytes, file.size() - at));
}

/// Sub-blocks of up to 255 bytes, each preceded by its length, 0 being the last.
class SubBlocks {
 public:
  SubBlocks(Bytes file, std::size_t at) : file_(file), at_(at) {}

  /// The next byte; nothing after the last one.
  std::optional<std::uint8_t> next() {
    if (left_ == 0 && !begin_block()) return {};
    if (at_ >= file_.size()) return {};
    --left_;
    return file_[at_++];
  }

  /// Goes to the end; false where the file ends before.
  bool skip() {
    while (left_ > 0 || begin_block()) {
      at_ += left_;
      left_ = 0;
    }
    return ended_;
  }
  std::size_t at() const { return at_; }

 private:
  bool begin_block() {
    if (ended_ || at_ >= file_.size()) return false;
    left_ = file_[at_++];
    ended_ = left_ == 0;
    return !ended_;
  }

  Bytes file_;
  std::size_t at_;
  std::size_t left_ = 0;
  bool ended_ = false;
};

/// The place on an image of its next pixel: its rows come in order or interlaced.
class Raster {
 public:
  Raster(std::int64_t width, std::int64_t height, bool interlaced)
      : width_(width), height_(height), interlaced_(interlaced) {}

  bool full() const { return y_ >= height_; }
  std::int64_t x() const { return x_; }
  std::int64_t y() const { return y_; }

  void advance() {
    if (++x_ < width_) return;
    x_ = 0;
    y_ += interlaced_ ? kSteps[pass_] : 1;
    while (interlaced_ && full() && ++pass_ < kFirst.size()) y_ = kFirst[pass_];
  }

 private:
  static constexpr std::array<std::int64_t, 4> kFirst{0, 4, 2, 1}, kSteps{8, 8, 4, 2};
  std::int64_t width_, height_;
  bool interlaced_;
  std::int64_t x_ = 0, y_ = 0;
  std::size_t pass_ = 0;
};

enum class LzwEnd { full, codes_end, bad_code };

/// LZW with codes of growing length, the lowest bit first. `draw(index)` is false once the image is
/// full.
template <class Draw>
LzwEnd decode_lzw(SubBlocks& bytes, int literal_bits, Draw draw) {
  struct Entry {
    std::int16_t prefix;
    std::uint8_t last, first;
  };
  std::array<Entry, kMaxCodes> table;
  const int clear = 1 << literal_bits, end = clear + 1;
  for (int code = 0; code < clear; ++code) {
    table[to_size(code)] = {-1, static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(code)};
  }
  int count = end + 1, width = literal_bits + 1, previous = -1, have = 0;
  std::uint32_t bits = 0;
  std::array<std::uint8_t, kMaxCodes> word;
  while (true) {
    for (; have < width; have += 8) {
      const auto byte = bytes.next();
      if (!byte) return LzwEnd::codes_end;
      bits |= std::uint32_t{*byte} << have;
    }
    const int code = to_int(bits & ((1u << width) - 1));
    bits >>= width;
    have -= width;
    if (code == end) return LzwEnd::codes_end;
    if (code == clear) {
      count = end + 1, width = literal_bits + 1, previous = -1;
      continue;
    }
    // Only codes of the table are drawn, and the one that this step adds to it.
    if (code > count || (code == count && previous < 0)) return LzwEnd::bad_code;
    if (previous >= 0 && count < kMaxCodes) {
      const std::uint8_t first = table[to_size(previous)].first;
      const std::uint8_t last = code == count ? first : table[to_size(code)].first;
      table[to_size(count++)] = {static_cast<std::int16_t>(previous), last, first};
      if (count == 1 << width && width < kMaxCodeBits) ++width;
    }
    std::size_t length = 0;
    for (int at = code; at >= 0; at = table[to_size(at)].prefix) {
      word[length++] = table[to_size(at)].last;
    }
    while (length > 0) {
      if (!draw(word[--length])) return LzwEnd::full;
    }
    previous = code;
  }
}

/// What is known of the first image before its codes.
struct Frame {
  std::int64_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  Bytes palette;
  int transparent = -1;
  std::size_t codes = 0;  // where they begin: the bits of a literal, then sub-blocks
};

/// Walks to the first image.
std::optional<Decoded> find_image(Bytes file, Frame& frame) {
  const Bytes screen_palette = palette_at(file, kScreenHeader, file[10]);
  std::size_t at = kScreenHeader + ((file[10] & 0x80) != 0 ? std::size_t{6} << (file[10] & 7) : 0);
  while (at + 2 < file.size() && file[at] == kExtension) {
    const std::size_t block = at + 2;
    if (file[at + 1] == kGraphicControl && file[block] >= 4 && block + 4 < file.size()) {
      frame.transparent = (file[block + 1] & 1) != 0 ? file[block + 4] : -1;
    }
    SubBlocks blocks(file, block);
    if (!blocks.skip()) return truncated();
    at = blocks.at();
  }
  if (at >= file.size()) return truncated();
  if (file[at] == kExtension) return truncated();
  if (file[at] != kImageBegins) {
    return refused(data::ReadStatus::not_an_image,
                   file[at] == 0x3B ? "there is no image in it" : "a GIF block of unknown kind");
  }
  if (at + 10 >= file.size()) return truncated();
  frame.left = little_endian_16(file, at + 1), frame.top = little_endian_16(file, at + 3);
  frame.width = little_endian_16(file, at + 5), frame.height = little_endian_16(file, at + 7);
  const std::uint8_t flags = file[at + 9];
  frame.interlaced = (flags & 0x40) != 0;
  const Bytes own = palette_at(file, at + 10, flags);
  frame.palette = (flags & 0x80) != 0 ? own : screen_palette;
  frame.codes = at + 10 + ((flags & 0x80) != 0 ? std::size_t{6} << (flags & 7) : 0);
  return frame.codes < file.size() ? std::optional<Decoded>{} : truncated();
}

/// The background colour, where the image leaves some of its screen out.
void fill_background(Bytes file, const Frame& frame, Image& image) {
  if (frame.width == image.width && frame.height == image.height) return;
  const Bytes palette = palette_at(file, kScreenHeader, file[10]);
  const std::size_t colour = std::size_t{file[11]} * 3;
  if (colour + 3 > palette.size()) return;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
    std::copy_n(palette.begin() + static_cast<std::ptrdiff_t>(colour), 3,
                image.rgb.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Draws an image that lies on the screen.
std::optional<Decoded> draw_image(Bytes file, const Frame& frame, Image& image) {
  const int literal_bits = file[frame.codes];
  if (literal_bits < 1 || literal_bits > 8) {
    return refused(data::ReadStatus::not_an_image,
                   "GIF codes of " + std::to_string(literal_bits) + " bits");
  }
  Raster raster(frame.width, frame.height, frame.interlaced);
  bool behind_palette = false;
  const auto draw = [&](std::uint8_t index) {
    std::uint8_t* const dst =
        image.rgb.data() + ((frame.top + raster.y()) * image.width + frame.left + raster.x()) * 3;
    if (index == frame.transparent) {
      std::fill_n(dst, 3, std::uint8_t{0});
    } else if (std::size_t{index} * 3 + 3 <= frame.palette.size()) {
      std::copy_n(frame.palette.data() + std::size_t{index} * 3, 3, dst);
    } else {
      behind_palette = true;
    }
    raster.advance();
    return !raster.full();
  };
  SubBlocks codes(file, frame.codes + 1);
  const LzwEnd end = decode_lzw(codes, literal_bits, draw);
  if (end == LzwEnd::bad_code) {
    return refused(data::ReadStatus::not_an_image, "a GIF code that stands for nothing");
  }
  if (!codes.skip()) return truncated();
  if (end != LzwEnd::full) return truncated();
  if (behind_palette) {
    return refused(data::ReadStatus::not_an_image, "it names colours behind its palette");
  }
  return {};
}

}  // namespace

Decoded decode_gif(std::span<const std::uint8_t> file, DecodingBudget::Claim& claim) {
  if (file.size() < kScreenHeader) return truncated();
  std::int64_t width = little_endian_16(file, 6), height = little_endian_16(file, 8);
  if (auto refusal = refused_size(width, height)) return *std::move(refusal);
  Frame frame;
  if (auto refusal = find_image(file, frame)) return *std::move(refusal);
  if (frame.width < 1 || frame.height < 1) {
    return refused(data::ReadStatus::not_an_image, "its first image has no pixels");
  }
  width = std::max(width, frame.left + frame.width);  // as Pillow does
  height = std::max(height, frame.top + frame.height);
  if (auto refusal = refused_size(width, height)) return *std::move(refusal);
  Decoded decoded;
  decoded.image = black_image(width, height, claim);
  fill_background(file, frame, decoded.image);
  if (auto refusal = draw_image(file, frame, decoded.image)) return *std::move(refusal);
  decoded.stored.alpha = frame.transparent >= 0;
  return decoded;
}

}  // namespace cputrain::datasets
