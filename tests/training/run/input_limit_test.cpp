// What is said of steps that wait for images, and what to try.
#include "training/run/run_results.h"

#include <gtest/gtest.h>

namespace cputrain::training {
namespace {

/// Steps would take 1,000 images a second and got 800.
constexpr double kShare = 0.2, kGot = 800;

TEST(InputLimit, AFiftiethOfTheTimeIsNoLimit) {
  EXPECT_EQ(input_limit({.share = 0.0199, .got = kGot}), "");
  EXPECT_NE(input_limit({.share = 0.0201, .got = kGot}), "");
}

TEST(InputLimit, OfDecodersHasWhatTheyMakeAndWhatAFileNeeds) {
  EXPECT_EQ(
      input_limit({.share = kShare, .got = kGot, .decoded = 2776, .bytes = 2'831'155'200}),
      "Limit: images. Steps waited 20 % of the last epoch for them, and would take 1000 a second; "
      "they are decoded whenever they are needed, some 2776 a second with no steps beside it. Try "
      "a TMPDIR with room for 2.83 GB, more cores, or a packed file (data pack)");
}

/// A TMPDIR is no remedy for who asked that nothing is kept.
TEST(InputLimit, OfDecodersThatWereAskedForNamesTheFlag) {
  const std::string limit = input_limit(
      {.share = kShare, .got = kGot, .decoded = 2776, .asked = true, .bytes = 2'831'155'200});
  EXPECT_NE(limit.find("Try --cache auto, which keeps 2.83 GB in memory or on disk, more cores"),
            std::string::npos)
      << limit;
  EXPECT_EQ(limit.find("TMPDIR"), std::string::npos) << limit;
}

TEST(InputLimit, OfADiskNamesDecodingWhereThatIsQuickerThanTheSteps) {
  ImageWait wait{.share = kShare, .got = kGot, .decoded = 1001, .folder = "/var/tmp"};
  const std::string slow =
      "Limit: images. Steps waited 20 % of the last epoch for them, and would take 1000 a second; "
      "the file in /var/tmp gave 800. Try a TMPDIR on a quicker disk, or more memory";
  EXPECT_EQ(input_limit(wait), slow +
                                   "; or --cache none, which decodes some 1001 a second with no "
                                   "steps beside it");
  wait.decoded = 999;
  EXPECT_EQ(input_limit(wait), slow);
}

TEST(InputLimit, OfAPackedFileIsItsDisk) {
  EXPECT_EQ(
      input_limit({.share = kShare, .got = kGot, .packed = true}),
      "Limit: images. Steps waited 20 % of the last epoch for them, and would take 1000 a second; "
      "the packed file gave 800. Try a quicker disk, or more memory");
}

}  // namespace
}  // namespace cputrain::training
