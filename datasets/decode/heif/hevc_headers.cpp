#include "datasets/decode/heif/hevc_headers.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kHead = 2;

/// Bits of a NAL unit behind its head, the highest of a byte first. A 3 behind two zeros is no data
/// (7.4.2): it keeps start codes out.
class Bits {
 public:
  explicit Bits(Bytes nal) {
    constexpr std::size_t kMost = 1024;  // more than what is read here
    int zeros = 0;
    for (const std::uint8_t byte : nal.subspan(kHead, std::min(nal.size() - kHead, kMost))) {
      const bool padding = zeros >= 2 && byte == 3;
      zeros = byte == 0 ? zeros + 1 : 0;
      if (!padding) bytes_.push_back(byte);
    }
  }

  bool ended() const { return ended_; }

  std::uint32_t take(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) {
      ended_ |= at_ / 8 >= bytes_.size();
      if (ended_) return 0;
      value = value << 1 | (bytes_[at_ / 8] >> (7 - at_ % 8) & 1u);
      ++at_;
    }
    return value;
  }

  /// An Exp-Golomb code (9.2).
  std::int64_t take_code() {
    int zeros = 0;
    while (take(1) == 0) {
      if (ended_ || ++zeros > 31) {
        ended_ = true;
        return 0;
      }
    }
    return (std::int64_t{1} << zeros) - 1 + take(zeros);
  }

  void skip(int count) {
    for (; count > 0; count -= 32) take(std::min(count, 32));
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

/// Profiles and levels of the whole and of its layers in time (7.3.3).
bool skip_profiles(Bits& bits, std::uint32_t layers) {
  constexpr int kProfile = 88, kLevel = 8;
  constexpr std::uint32_t kMostLayers = 6;
  if (layers > kMostLayers) return false;
  bits.skip(kProfile + kLevel);
  int length = 0;
  for (std::uint32_t i = 0; i < layers; ++i) {
    length += bits.take(1) != 0 ? kProfile : 0;
    length += bits.take(1) != 0 ? kLevel : 0;
  }
  for (std::uint32_t i = layers; layers > 0 && i < 8; ++i) bits.skip(2);
  bits.skip(length);
  return true;
}

}  // namespace

std::optional<Nal> read_nal_head(Bytes nal) {
  constexpr int kSequence = 33, kPictureParameters = 34;
  if (nal.size() <= kHead) return std::nullopt;
  const int kind = nal[0] >> 1 & 0x3F, layer = (nal[0] & 1) << 5 | nal[1] >> 3;
  return Nal{kind == kSequence            ? NalKind::sequence
             : kind == kPictureParameters ? NalKind::picture_parameters
                                          : NalKind::other,
             layer == 0};
}

std::optional<CodedSize> read_coded_size(Bytes nal) {
  Bits bits(nal);
  bits.skip(4);
  const std::uint32_t layers = bits.take(3);
  bits.skip(1);
  if (!skip_profiles(bits, layers)) return std::nullopt;
  bits.take_code();
  const std::int64_t chroma = bits.take_code();
  constexpr std::int64_t k420 = 1, k422 = 2, k444 = 3;
  if (chroma > k444) return std::nullopt;
  if (chroma == k444) bits.skip(1);
  CodedSize size;
  size.width = bits.take_code(), size.height = bits.take_code();
  if (bits.take(1) != 0) {
    const std::int64_t across = chroma == k420 || chroma == k422 ? 2 : 1;
    const std::int64_t down = chroma == k420 ? 2 : 1;
    const std::int64_t sides = bits.take_code() + bits.take_code();
    const std::int64_t ends = bits.take_code() + bits.take_code();
    if (sides * across >= size.width || ends * down >= size.height) return std::nullopt;
  }
  if (bits.ended() || size.width < 1 || size.height < 1) return std::nullopt;
  return size;
}

}  // namespace cputrain::datasets
