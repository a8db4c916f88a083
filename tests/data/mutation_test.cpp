// Damaged files must give a result, whatever it is: no crash, and no report under sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/random.h"
#include "data/made_files.h"
#include "datasets/decode.h"
#include "datasets/limits.h"

namespace cputrain {
namespace {

constexpr std::uint32_t kCases = 20'000;  // a file

/// Changes one to eight bytes, and sometimes cuts the end; f(file, number).
Bytes mutated(Bytes file, std::uint32_t kind, std::uint32_t number) {
  const RandomStream stream(1, Purpose::noise, kind, number);
  const auto head = stream.at(0);
  const auto size = static_cast<std::uint32_t>(file.size());
  for (std::uint32_t i = 0; i <= head[0] % 8; ++i) {
    const auto words = stream.at(1 + i);
    // Headers are short and decide much: half of the changes are there.
    const std::uint32_t reach = words[3] % 2 == 0 ? std::min(size, 200u) : size;
    auto& byte = file[below(words[0], reach)];
    constexpr std::array<std::uint8_t, 4> kEdges{0, 0xFF, 0x7F, 0x80};
    byte = words[1] % 3 == 0 ? kEdges[words[2] % 4] : static_cast<std::uint8_t>(words[2]);
  }
  if (head[1] % 4 == 0) file.resize(1 + below(head[2], size));
  return file;
}

using Repair = Bytes (*)(const Bytes&);

Bytes unchanged(const Bytes& file) { return file; }

void decode_mutations(const Bytes& file, std::uint32_t kind, Repair repair = unchanged) {
  std::size_t decoded_well = 0;
  for (std::uint32_t number = 0; number < kCases; ++number) {
    const Decoded decoded = decode(repair(mutated(file, kind, number)));
    if (decoded.result.status != ReadStatus::ok) {
      EXPECT_FALSE(decoded.result.detail.empty()) << number;
      continue;
    }
    ++decoded_well;
    const Picture& picture = decoded.picture;
    ASSERT_GE(picture.width, 1);
    ASSERT_GE(picture.height, 1);
    ASSERT_FALSE(exceeds_limits(picture.width, picture.height));
    ASSERT_EQ(picture.rgb.size(), static_cast<std::size_t>(picture.width) *
                                      static_cast<std::size_t>(picture.height) * 3);
  }
  EXPECT_GT(decoded_well, 0u);
  EXPECT_LT(decoded_well, kCases);
}

/// Dark, so that a GIF can hold it.
Picture small_picture() {
  Picture picture{24, 18, {}};
  for (int i = 0; i < 24 * 18; ++i) {
    picture.rgb.insert(picture.rgb.end(), 3, static_cast<std::uint8_t>(i * 5 % 120));
  }
  return picture;
}

TEST(Mutation, jpeg) { decode_mutations(jpeg_of(small_picture()), 0); }
TEST(Mutation, progressive_jpeg) {
  decode_mutations(jpeg_of(small_picture(), JpegKind::progressive), 1);
}
TEST(Mutation, inks) { decode_mutations(jpeg_of(small_picture(), JpegKind::ycck_adobe), 2); }
TEST(Mutation, png) { decode_mutations(png_of(small_picture()), 3); }
TEST(Mutation, bmp) { decode_mutations(bmp_of(small_picture()), 4); }
TEST(Mutation, gif) { decode_mutations(gif_of(small_picture()), 5); }

/// A wrong checksum ends most of the cases of `png` early; here all are set right again.
TEST(Mutation, png_with_right_checksums) {
  decode_mutations(png_of(small_picture()), 6, with_png_checksums);
}

}  // namespace
}  // namespace cputrain
