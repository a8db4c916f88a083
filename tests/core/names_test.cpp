#include "core/names.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/precision.h"
#include "tests/support/refusal.h"

namespace cputrain {
namespace {

using Words = std::vector<std::string>;

/// One that stands in a class, with a value that has no word.
struct Door {
  enum class State { open, closed, painted };
  friend constexpr auto names(State) {
    return std::to_array<Name<State>>({{State::open, "open"}, {State::closed, "closed"}});
  }
};

static_assert(Named<Door::State> && Named<Precision> && !Named<int>);
static_assert(word_of(Precision::f64) == "double");

TEST(Names, AreTheSameBothWays) {
  for (const std::string& word : all_words<Precision>()) {
    EXPECT_EQ(word_of(*value_named<Precision>(word)), word);
  }
  EXPECT_EQ(all_words<Precision>(), (Words{"float", "bf16", "exact", "double"}));
  EXPECT_EQ(words_of<Precision>({Precision::exact, Precision::f32}), (Words{"exact", "float"}));
}

TEST(Names, AreNotThoseOfValuesWithoutOne) {
  EXPECT_EQ(all_words<Door::State>(), (Words{"open", "closed"}));
  EXPECT_EQ(word_of(Door::State::painted), "");
  EXPECT_EQ(value_named<Door::State>("painted"), std::nullopt);
  EXPECT_EQ(value_named<Door::State>(""), std::nullopt);
}

TEST(Names, AreOfferedWhereAWordIsNone) {
  EXPECT_EQ(parse_word<Door::State>("door", "closed"), Door::State::closed);
  const auto refusal = [](const char* word) -> std::string {
    return testing::refusal_of(ExitCode::usage, [&] { parse_word<Door::State>("door", word); });
  };
  EXPECT_EQ(refusal("clsoed"), "--door clsoed: must be one of open, closed; did you mean closed?");
  EXPECT_EQ(refusal("blue"), "--door blue: must be one of open, closed");
  EXPECT_EQ(refusal(""), "--door : must be one of open, closed");
}

}  // namespace
}  // namespace cputrain
