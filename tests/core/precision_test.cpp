#include "core/precision.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace cputrain {
namespace {

TEST(Precision, HasOneWordEach) {
  EXPECT_EQ(precision_words(), (std::vector<std::string>{"float", "bf16", "exact", "double"}));
  for (const std::string& word : precision_words()) EXPECT_EQ(word_of(parse_precision(word)), word);
  EXPECT_EQ(parse_precision("double"), Precision::f64);
  EXPECT_EQ(words_of({Precision::exact, Precision::f32}),
            (std::vector<std::string>{"exact", "float"}));
  EXPECT_THROW(parse_precision("fp32"), Error);
  EXPECT_THROW(parse_precision(""), Error);
}

}  // namespace
}  // namespace cputrain
