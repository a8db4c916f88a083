// What libFuzzer does, with less wit and any compiler: a fuzzer's seeds with some random changes.

#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing {
namespace {

class Mutations {
 public:
  explicit Mutations(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  void change(std::string& text) {
    static const std::vector<std::string> kWords{"0",    "-1",   "1e999", "18446744073709551616",
                                                 "null", "\"\"", "[]",    "{}",
                                                 "\n",   "\xff", "../",   "nan:7ff8000000000000"};
    const std::size_t place = below(text.size() + 1), count = below(text.size() - place + 1);
    const std::string& other = seeds_[below(seeds_.size())];
    switch (below(6)) {
      case 0:
        text.erase(place, count);
        break;
      case 1:
        text.insert(place, text.substr(below(text.size() + 1), below(64)));
        break;
      case 2:
        text.insert(place, kWords[below(kWords.size())]);
        break;
      case 3:
        text.replace(place, below(8), kWords[below(kWords.size())]);
        break;
      case 4:
        text = text.substr(0, place) + other.substr(below(other.size()));
        break;
      default:
        if (place < text.size()) text[place] = static_cast<char>(text[place] ^ 1 << below(8));
    }
  }

  std::vector<std::string> seeds_;
  std::mt19937 random_{1};
};

class Fuzzers : public ::testing::TestWithParam<const Fuzzer*> {};

TEST_P(Fuzzers, TakesItsSeeds) {
  for (const auto& seed : GetParam()->seeds()) EXPECT_TRUE(GetParam()->takes(seed)) << seed;
  EXPECT_FALSE(GetParam()->takes(""));
}

TEST_P(Fuzzers, KeepsItsPromisesWhateverIsChanged) {
  Mutations mutations(GetParam()->seeds());
  for (int i = 0; i < 750; ++i) {
    const std::string text = mutations.next();
    ASSERT_NO_THROW(GetParam()->takes(text)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fuzzers, ::testing::ValuesIn(Fuzzer::all()),
                         [](const auto& made) { return std::string(made.param->name); });

}  // namespace
}  // namespace cputrain::testing
