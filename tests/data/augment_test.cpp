// Words of --augment: reading, writing and refusing them.
#include "data/augment.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::data {
namespace {

TEST(OnlyMoves, IsSoWhereNoPixelIsComputed) {
  for (const char* text : {"none", "flip", "vflip", "six", "crop:3", "six,flip,vflip,crop:1"}) {
    EXPECT_TRUE(only_moves(parse_augment(text))) << text;
  }
  for (const char* text :
       {"rotate:1", "shift:0.1", "shear:2", "zoom:0.1", "flip,colour:0.1", "crop", "rand:1:5",
        "cutout:2", "contrast:0.1", "mixup:0.2", "cutmix:1"}) {
    EXPECT_FALSE(only_moves(parse_augment(text))) << text;
  }
}

TEST(ParseAugment, ReadsWhatItWrites) {
  EXPECT_EQ(parse_augment("none"), Augment{});
  EXPECT_EQ(to_text(Augment{}), "none");
  const Augment nature7 = parse_augment("flip,shear:0.2,zoom:0.2");
  EXPECT_EQ(nature7, (Augment{.shear = 0.2, .zoom = 0.2, .flip = true}));
  EXPECT_EQ(to_text(nature7), "shear:0.2,zoom:0.2,flip");
  EXPECT_EQ(parse_augment("color:0.5"), (Augment{.colour = 0.5}));
  const Augment all = parse_augment(
      "six,vflip,flip,crop:4,crop,crop-area:0.25-0.5,crop-ratio:1-1.5,colour:1,rotate:12.5,"
      "shift:.125,shear:80,zoom:0.9,rand:2:9,brightness:0.1,contrast:0.2,saturation:0.3,cutout:8,"
      "mixup:0.2,cutmix:1");
  EXPECT_EQ(parse_augment(to_text(all)), all);
  EXPECT_EQ(all.crop, 4);
  EXPECT_EQ(all.crop_area, (Interval{0.25, 0.5}));
  EXPECT_EQ(parse_augment("crop"), (Augment{.crop_part = true}));
  EXPECT_TRUE(parse_augment("crop-area:0.5-1").crop_part);
}

TEST(IdleWords, AreThoseWithZero) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(idle_words("flip,mixup:0,crop:0,rand:0:9,zoom:0.0,cutout:1,rand:2:0"),
            (Words{"mixup:0", "crop:0", "rand:0:9", "zoom:0.0", "rand:2:0"}));
  EXPECT_EQ(idle_words("none"), Words{});
  EXPECT_EQ(idle_words("crop,crop-area:0.08-1,rand:2:1,mixup:1e-9"), Words{});
}

TEST(ParseAugment, RefusesWithTheFlagAndWhatIsAllowed) {
  std::vector<std::string> refused{""};
  std::istringstream words(
      "flip, ,flip flop flip:1 zoom zoom: zoom:1 zoom:-0.1 zoom:nan zoom:0.1x crop:1.5 crop:99999 "
      "rotate:181 flip,flip none,flip shift:1e400 crop-area crop-area:0.5 crop-area:0-1 "
      "crop-area:0.9-0.5 crop-area:0.5-1x crop-ratio:1-11 crop,crop rand:2 rand:2: rand:9:1 "
      "rand:2:11 cutout mixup:-1 mixup:101");
  for (std::string word; words >> word;) refused.push_back(word);
  EXPECT_EQ(refused.size(), 31u);
  for (const std::string& text : refused) {
    const std::string said = testing::refused(ExitCode::usage, [&] { parse_augment(text); });
    EXPECT_EQ(said.find("--augment " + text), 0u) << said;
  }
}

}  // namespace
}  // namespace cputrain::data
