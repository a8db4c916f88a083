#include "model/normalization.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::model {
namespace {

TEST(Normalization, WordsAndFigures) {
  EXPECT_EQ(parse_normalization("unit"), Input{});
  EXPECT_EQ(parse_normalization("0/1"), Input{});
  EXPECT_EQ(parse_normalization("0.5/0.5"), parse_normalization("symmetric"));
  EXPECT_EQ(parse_normalization("0.485,0.456,0.406/0.229,0.224,0.225"),
            parse_normalization("imagenet"));
  const Input mixed = parse_normalization("0.1,0.2,0.3/2");
  EXPECT_EQ(mixed.scale, PerColour(1.0f / 510));
  EXPECT_FLOAT_EQ(mixed.offset.of[2], -0.15f);
}

TEST(Normalization, OtherTextsAreRefused) {
  for (const char* text : {"", "caffe", "1", "0.5/0", "0.5/-1", "1,2/1", "1,2,3,4/1", "nan/1",
                           "0.5/0.5/0.5", "0.5/0.5x", "1e9/1"}) {
    testing::refused(ExitCode::usage, [&] { parse_normalization(text); });
  }
}

TEST(Normalization, SaysWhatIsDone) {
  for (const std::string& word : normalization_words()) {
    EXPECT_EQ(normalization_text(parse_normalization(word)), word);
  }
  EXPECT_EQ(normalization_text({{0.5f, 0.25f, 0.5f}, -1}), "x * (0.5, 0.25, 0.5) + -1");
}

}  // namespace
}  // namespace cputrain::model
