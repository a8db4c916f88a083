#include "training/weights/past_data.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/normalization.h"

namespace cputrain::training {
namespace {

using weights::Preprocessing;
const Preprocessing kThen{.image = Shape{8, 8, 3},
                          .pixels = model::parse_normalization("unit"),
                          .resize = data::Resizing(data::Resize::bicubic),
                          .exif = data::Exif::ignore};

/// A flag, what it changes, and what is said then.
struct OtherPixels {
  const char* flag;
  std::function<void(Preprocessing&)> change;
  const char *says, *says_of_packed;
};

const std::vector<OtherPixels> kOtherPixels{
    {"image-size",
     [](Preprocessing& p) {
       p.image = Shape{16, 16, 3};
     },
     "images of 8x8x3; here they are 16x16x3 (--image-size says how large)",
     "data pack --image-size"},
    {"normalize", [](Preprocessing& p) { p.pixels = model::parse_normalization("imagenet"); },
     "pixels as unit; here they are imagenet (--normalize says how)", "--normalize"},
    {"resize", [](Preprocessing& p) { p.resize->way = data::Resize::nearest; },
     "images resized by bicubic; here it is nearest (--resize and --fit say how)",
     "data pack --resize"},
    {"fit", [](Preprocessing& p) { p.resize->fit.how = data::Fitting::pad; },
     "images resized by bicubic; here it is bicubic, fit pad (--resize and --fit",
     "data pack --resize"},
    {"exif", [](Preprocessing& p) { p.exif = data::Exif::apply; },
     "photographs read with --exif ignore; here it is --exif apply (", "data pack --exif"},
};

TEST(PreprocessingDifferences, EachFlagIsSeen) {
  EXPECT_TRUE(preprocessing_differences("w", kThen, kThen).empty());
  for (const OtherPixels& other : kOtherPixels) {
    SCOPED_TRACE(other.flag);
    Preprocessing here = kThen;
    other.change(here);
    const auto lines = preprocessing_differences("w", kThen, here);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(lines[0].starts_with(std::string("--weights w learnt from ") + other.says))
        << lines[0];
    EXPECT_NE(lines[0].find(std::string("--") + other.flag), std::string::npos) << lines[0];
    here.packed = true;
    const auto packed = preprocessing_differences("w", kThen, here);
    ASSERT_EQ(packed.size(), 1u);
    EXPECT_NE(packed[0].find(other.says_of_packed), std::string::npos) << packed[0];
  }
}

TEST(PreprocessingDifferences, AllAreSaidAndWhatIsNotKnownIsNot) {
  Preprocessing here = kThen;
  for (const OtherPixels& other : kOtherPixels) other.change(here);
  EXPECT_EQ(preprocessing_differences("w", kThen, here).size(), 4u);  // resize and fit are one
  EXPECT_TRUE(preprocessing_differences("w", {}, here).empty());
  EXPECT_TRUE(preprocessing_differences("w", kThen, {}).empty());
}

}  // namespace
}  // namespace cputrain::training
