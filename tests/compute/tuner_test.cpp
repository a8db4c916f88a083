#include "compute/tuner.h"

#include <gtest/gtest.h>

namespace cputrain::compute {
namespace {

/// Has the methods a and b; each must be tried once.
class Choice : public MethodChoice {
 public:
  std::string methods() const override { return word_; }
  bool is_word(std::string_view word) const override { return word == "a" || word == "b"; }
  void use_methods(std::string_view word) override {
    word_ = word;
    left_ = 0;
  }
  bool trying() const override { return left_ > 0; }
  void try_again() override { left_ = 2; }

  void end_trial(std::string better) {
    if (left_ > 0 && --left_ == 0) word_ = std::move(better);
  }
  int left() const { return left_; }

 private:
  std::string word_ = "a";
  int left_ = 2;
};

TEST(Tuner, WithoutChoicesTriesNothing) {
  Tuner tuner;
  EXPECT_FALSE(tuner.trying());
  tuner.try_again();
  tuner.use_tuned_methods("a");
  EXPECT_EQ(tuner.take_tuned_methods(), "");
  EXPECT_EQ(tuner.tuned_methods(), "");
}

TEST(Tuner, TellsWhatItFoundOnceAllHaveBeenTried) {
  Choice first, second;
  Tuner tuner({&first, &second});
  EXPECT_TRUE(tuner.trying());
  for (int i = 0; i < 2; ++i) first.end_trial("b");
  EXPECT_EQ(tuner.take_tuned_methods(), "");  // the second is still at it
  for (int i = 0; i < 2; ++i) second.end_trial("a");
  EXPECT_FALSE(tuner.trying());
  EXPECT_EQ(tuner.take_tuned_methods(), "b a");
  EXPECT_EQ(tuner.take_tuned_methods(), "");
  EXPECT_EQ(tuner.tuned_methods(), "");  // rank 0's are in use when they come back
  tuner.use_tuned_methods("b a");
  EXPECT_EQ(tuner.tuned_methods(), "b a");
}

TEST(Tuner, UsesWhatAnotherFoundAndEndsItsOwnTrials) {
  Choice first, second;
  Tuner tuner({&first, &second});
  tuner.use_tuned_methods("b b");
  EXPECT_FALSE(tuner.trying());
  EXPECT_EQ(first.methods() + second.methods(), "bb");
  EXPECT_EQ(tuner.take_tuned_methods(), "");  // nothing of its own
  tuner.try_again();
  EXPECT_TRUE(tuner.trying());
  EXPECT_EQ(tuner.tuned_methods(), "b b");
}

TEST(Tuner, LeavesWordsAloneThatNoProgramOfTheGraphCanHaveFound) {
  for (const char* text : {"", "b", "b c", "b b b", "bb"}) {
    Choice first, second;
    Tuner tuner({&first, &second});
    tuner.use_tuned_methods(text);
    EXPECT_EQ(first.methods() + second.methods(), "aa") << text;
    EXPECT_TRUE(tuner.trying()) << text;
    EXPECT_EQ(tuner.tuned_methods(), "") << text;
  }
}

TEST(Tuner, BeginsAnewOnlyWhereNothingIsBeingTried) {
  Choice first, second;
  Tuner tuner({&first, &second});
  first.end_trial("b");
  tuner.try_again();
  EXPECT_EQ(first.left(), 1);  // goes on
  tuner.restart_trials();
  EXPECT_EQ(first.left(), 2);
  for (int i = 0; i < 2; ++i) first.end_trial("b");
  tuner.restart_trials();  // of those that are at it
  EXPECT_EQ(first.left(), 0);
  EXPECT_EQ(second.left(), 2);
}

/// As tiles of a GPU's products, whose times do not depend on weights.
class OnceOnly final : public Choice {
 public:
  void try_again() override {
    if (trying()) Choice::try_again();
  }
};

/// Trials may end in a pass of evaluation, and an epoch begins before a step takes what they found.
TEST(Tuner, KeepsWhatItFoundUntilItIsTaken) {
  OnceOnly choice;
  Tuner tuner({&choice});
  for (int i = 0; i < 2; ++i) choice.end_trial("b");
  tuner.try_again();
  EXPECT_FALSE(tuner.trying());
  EXPECT_EQ(tuner.take_tuned_methods(), "b");
  EXPECT_EQ(tuner.take_tuned_methods(), "");
}

TEST(Tuner, TriesAgainWhatNobodyTook) {
  Choice choice;
  Tuner tuner({&choice});
  for (int i = 0; i < 2; ++i) choice.end_trial("b");
  tuner.try_again();
  EXPECT_TRUE(tuner.trying());
  EXPECT_EQ(tuner.take_tuned_methods(), "");
  for (int i = 0; i < 2; ++i) choice.end_trial("a");
  EXPECT_EQ(tuner.take_tuned_methods(), "a");
}

}  // namespace
}  // namespace cputrain::compute
