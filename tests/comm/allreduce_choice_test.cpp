#include "comm/allreduce_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/node.h"
#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::comm {
namespace {

using Scheme = AllreduceChoice::Scheme;

TEST(AllreduceChoice, ReadsEveryName) {
  EXPECT_EQ(parse_allreduce("auto"), AllreduceChoice{});
  EXPECT_EQ(parse_allreduce("ps").scheme, Scheme::server);
  EXPECT_TRUE(parse_allreduce("shm").one_node);
  EXPECT_EQ(parse_allreduce("hierarchical").scheme, Scheme::slices);
  EXPECT_TRUE(parse_allreduce("hierarchical").ranges.empty());
  for (const std::string& name : allreduce_algorithms()) {
    EXPECT_EQ(parse_allreduce(name), (AllreduceChoice{Scheme::replicas, {{name}}, false}));
    EXPECT_EQ(parse_allreduce("hierarchical+" + name).ranges, (std::vector<SizeRange>{{name}}));
  }
  EXPECT_EQ(parse_allreduce("recursive_doubling"), parse_allreduce("recursive-doubling"));
}

TEST(AllreduceChoice, OffersNoWordThatItDoesNotRead) {
  for (const std::string& word : allreduce_words()) {
    EXPECT_EQ(to_text(parse_allreduce(word)), word);
  }
  for (const std::string& name : allreduce_algorithms()) {
    EXPECT_EQ(std::ranges::count(allreduce_words(), name), 1) << name;
  }
}

// Seconds by hand: a ring of 3 takes 4 messages and 4/3 of the bytes, doubling 3 of each.
TEST(AllreduceChoice, TakesTheLeastTime) {
  EXPECT_EQ(quickest_algorithm({.fixed = 1, .each = 0}, 3, 1000), "recursive-doubling");
  EXPECT_EQ(quickest_algorithm({.fixed = 0, .each = 1}, 3, 1000), "ring");
  EXPECT_EQ(quickest_algorithm({.fixed = 599, .each = 1}, 1024, 1e6), "rabenseifner");
  EXPECT_EQ(quickest_algorithm({.fixed = 1600, .each = 1}, 3, 1000), "ring");
  EXPECT_EQ(quickest_algorithm({.fixed = 1700, .each = 1}, 3, 1000), "recursive-doubling");
}

TEST(AllreduceChoice, ReadsRangesInAnyOrder) {
  const auto choice = parse_allreduce("ring:8193-max;tree:0-100;rabenseifner:101-8192");
  const std::vector<SizeRange> expected{
      {"tree", 0, 100}, {"rabenseifner", 101, 8192}, {"ring", 8193, SizeRange{}.last}};
  EXPECT_EQ(choice.ranges, expected);
}

TEST(AllreduceChoice, SaysTheSameWordsBack) {
  for (const char* text :
       {"auto", "ps", "shm", "hierarchical", "ring", "nccl", "staged", "hierarchical+mpi",
        "tree:0-100;ring:101-max", "hierarchical+tree:0-7;mpi:8-max"}) {
    EXPECT_EQ(to_text(parse_allreduce(text)), text);
  }
}

TEST(AllreduceChoice, RefusesWhatLeavesSizesOutOrDoublesThem) {
  for (const char* text :
       {"", "rign", "ring:0-8", "ring:1-max", "ring:0-8;tree:8-max", "ring:0-8;tree:10-max",
        "ring:5-1;tree:2-max", "ring:0-x", "ring:0", "ring:-max", "hierarchical+", "shm:0-max",
        "ring;tree", "nccl:0-max", "staged+ring", "ring:0-99999999999999999999999"}) {
    const std::string said = testing::refused(ExitCode::usage, [&] { parse_allreduce(text); });
    EXPECT_NE(said.find("--allreduce"), std::string::npos);
  }
}

TEST(SliceOf, CutsOnTheGridAndLeavesNothingOut) {
  for (const Range whole : {Range{0, 0}, {0, 1}, {0, 100000}, {5000, 123457}, {4096, 4096 * 9}}) {
    for (const int lanes : {1, 2, 3, 7, 96}) {
      std::size_t position = whole.begin;
      for (int lane = 0; lane < lanes; ++lane) {
        const Range slice = slice_of(whole, lane, lanes);
        EXPECT_EQ(slice.begin, position);
        EXPECT_TRUE(slice.begin % kSliceGrid == 0 || slice.begin == whole.begin ||
                    slice.begin == whole.end);
        position = slice.end;
      }
      EXPECT_EQ(position, whole.end);
    }
  }
}

}  // namespace
}  // namespace cputrain::comm
