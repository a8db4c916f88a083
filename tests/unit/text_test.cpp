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

TEST(Printable, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(printable("conv2d/kernel (3)"), "conv2d/kernel (3)");
  EXPECT_EQ(printable(std::string_view("a\x1b[2J\n\xff\0b", 9)), "a?[2J???b");
  EXPECT_EQ(printable(std::string(1000, 'x')), std::string(300, 'x') + "...");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,b", ','), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(split(",a,", ','), (std::vector<std::string>{"", "a", ""}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
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
