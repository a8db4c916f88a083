// What a sequence parameter set of HEVC claims, put together bit by bit (ITU-T H.265, 7.3.2.2).
#include "datasets/decode/heif/hevc_headers.h"

#include <gtest/gtest.h>

#include <vector>

namespace cputrain::datasets {
namespace {

/// A NAL unit of this kind, with 3 behind two zeros where a start code would be else.
class NalWriter {
 public:
  explicit NalWriter(int kind, int layer = 0)
      : bytes_{static_cast<std::uint8_t>(kind << 1 | layer >> 5),
               static_cast<std::uint8_t>((layer & 31) << 3 | 1)} {}

  NalWriter& put(std::uint64_t value, int count) {
    while (count-- > 0) bits_.push_back((value >> count & 1) != 0);
    return *this;
  }
  NalWriter& code(std::uint64_t value) {
    int length = 0;
    while ((value + 1) >> (length + 1) != 0) ++length;
    return put(0, length).put(value + 1, length + 1);
  }
  std::vector<std::uint8_t> nal() const {
    std::vector<std::uint8_t> bytes = bytes_;
    int zeros = 0;
    for (std::size_t at = 0; at < bits_.size(); at += 8) {
      int byte = 0;
      for (std::size_t i = 0; i < 8; ++i)
        byte = byte << 1 | (at + i < bits_.size() && bits_[at + i]);
      if (zeros >= 2 && byte <= 3) bytes.push_back(3), zeros = 0;
      bytes.push_back(static_cast<std::uint8_t>(byte));
      zeros = byte == 0 ? zeros + 1 : 0;
    }
    return bytes;
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<bool> bits_;
};

struct Margins {
  std::uint64_t left = 0, right = 0, top = 0, bottom = 0;
};

NalWriter sequence(std::uint64_t width, std::uint64_t height, std::uint64_t chroma = 1,
                   int layers = 0, Margins margins = {}) {
  NalWriter writer(33);
  writer.put(0, 4).put(static_cast<std::uint64_t>(layers), 3).put(1, 1);
  writer.put(0, 88).put(93, 8);  // profile and level, full of zeros
  for (int i = 0; i < layers; ++i) writer.put(3, 2);
  for (int i = layers; layers > 0 && i < 8; ++i) writer.put(0, 2);
  for (int i = 0; i < layers; ++i) writer.put(0, 88).put(93, 8);
  writer.code(0).code(chroma);
  if (chroma == 3) writer.put(0, 1);
  writer.code(width).code(height).put(1, 1);
  writer.code(margins.left).code(margins.right).code(margins.top).code(margins.bottom);
  return writer.put(~0ull, 64);
}

void expect_size(const NalWriter& writer, std::int64_t width, std::int64_t height) {
  const auto size = read_coded_size(writer.nal());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->width, width);
  EXPECT_EQ(size->height, height);
}

TEST(HevcHeaders, SayTheSize) {
  expect_size(sequence(64, 48), 64, 48);
  expect_size(sequence(65535, 65535), 65535, 65535);
  expect_size(sequence(4032, 3024, 3), 4032, 3024);
  expect_size(sequence(4032, 3024, 0), 4032, 3024);
  expect_size(sequence(1920, 1088, 1, 6), 1920, 1088);
  expect_size(sequence(64, 64, 1, 0, {0, 25, 0, 27}), 64, 64);
}

TEST(HevcHeaders, AreRefusedWithoutSense) {
  EXPECT_FALSE(read_coded_size(sequence(0, 48).nal()));
  EXPECT_FALSE(read_coded_size(sequence(64, 48, 4).nal())) << "a chroma format of 4";
  EXPECT_FALSE(read_coded_size(sequence(64, 48, 1, 7).nal())) << "too many layers in time";
  EXPECT_FALSE(read_coded_size(sequence(64, 64, 1, 0, {16, 16, 0, 0}).nal())) << "nothing is left";
  EXPECT_FALSE(read_coded_size(sequence(64, 64, 1, 0, {0, 0, 0, 32}).nal()));
  EXPECT_FALSE(read_coded_size(sequence(64, 64, 1, 0, {4'000'000'000, 0, 0, 0}).nal()));
  const std::vector<std::uint8_t> whole = sequence(64, 48).nal();
  for (std::size_t size = 3; size < whole.size() - 8; ++size) {
    EXPECT_FALSE(read_coded_size(std::span(whole).first(size))) << size;
  }
}

TEST(HevcHeaders, SayWhatTheyAre) {
  EXPECT_EQ(read_nal_head(sequence(8, 8).nal())->kind, NalKind::sequence);
  EXPECT_EQ(read_nal_head(NalWriter(34).put(0, 8).nal())->kind, NalKind::picture_parameters);
  EXPECT_EQ(read_nal_head(NalWriter(19).put(0, 8).nal())->kind, NalKind::other);
  EXPECT_TRUE(read_nal_head(NalWriter(19).put(0, 8).nal())->base_layer);
  EXPECT_FALSE(read_nal_head(NalWriter(33, 1).put(0, 8).nal())->base_layer);
  EXPECT_FALSE(read_nal_head(NalWriter(33, 32).put(0, 8).nal())->base_layer);
  EXPECT_FALSE(read_nal_head(std::vector<std::uint8_t>{66, 1}));
}

}  // namespace
}  // namespace cputrain::datasets
