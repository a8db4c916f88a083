#include "core/text.h"

#include <gtest/gtest.h>

namespace cputrain {
namespace {

TEST(DidYouMean, OffersTheNearestWordIfItIsNear) {
  const std::vector<std::string> words{"batch", "backend", "epochs"};
  EXPECT_EQ(did_you_mean("bacth", words), "; did you mean batch?");
  EXPECT_EQ(did_you_mean("epoch", words), "; did you mean epochs?");
  EXPECT_EQ(did_you_mean("zzzzzz", words), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

TEST(WithCommas, GroupsByThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(13217985), "13,217,985");
}

TEST(BytesText, UsesPowersOfTen) {
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(52871940), "52.9 MB");
  EXPECT_EQ(bytes_text(4.4236e9), "4.42 GB");
}

TEST(EtaText, IsKerasForm) {
  EXPECT_EQ(eta_text(42.9), "42s");
  EXPECT_EQ(eta_text(250), "4:10");
  EXPECT_EQ(eta_text(3725), "1:02:05");
  EXPECT_EQ(eta_text(-1), "0s");
}

}  // namespace
}  // namespace cputrain
