// What a training lost to restarts, checkpoints, stragglers and stalls, of the lines that it wrote.

#include "runfiles/lost_seconds.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace cputrain::runfiles {
namespace {

class LostSecondsTest : public ::testing::Test {
 protected:
  void write(const char* name, const char* lines) { std::ofstream(folder_.path() / name) << lines; }
  LostSeconds lost() {
    return lost_seconds(folder_.path(), read_metrics(folder_.path() / kMetricsName));
  }

  const testing::TemporaryFolder folder_;
};

constexpr const char* kMetrics =
    R"({"type":"epoch","epoch":1,"steps":1,"images":4,"seconds":9,"straggler":{"rank":1,"host":"a","seconds":2.5}}
{"type":"resume","step":5,"lost_seconds":20}
{"type":"summary","outcome":"interrupted","checkpoint_seconds":9}
{"type":"resume","step":9}
{"type":"epoch","epoch":2,"steps":1,"images":4,"seconds":9,"straggler":{"rank":0,"host":"b","seconds":1}}
{"type":"epoch","epoch":3,"steps":1,"images":4,"seconds":9,"straggler":{"rank":1,"host":"a","seconds":0.5}}
{"type":"resume","step":12,"lost_seconds":10.25}
{"type":"summary","outcome":"finished","checkpoint_seconds":1.5}
)";
constexpr const char* kStalls = R"({"event":"stall","seconds":60,"ranks":[2],"hosts":["vm"],"by":0}
{"event":"goes_on","seconds":70.5,"ranks":[2],"hosts":["vm"],"by":0}
{"event":"end","seconds":600,"ranks":[1],"hosts":["vm"],"by":0}
{"event":"goes_on","seconds":61,"ranks":[0,1],"hosts":["vm-0","vm-1"],"by":0}
)";

TEST_F(LostSecondsTest, IsTheSumOfTheLines) {
  write("metrics.jsonl", kMetrics);
  write("stalls.jsonl", kStalls);
  EXPECT_EQ(text_of(lost()),
            "2 restarts 30.2 s, checkpoints 1.5 s, stragglers 4.0 s (most: rank 1 on a), "
            "2 stalls 131.5 s (most: rank 2 on vm)");
}

TEST_F(LostSecondsTest, AStallThatTwoSidesTellOfIsOne) {
  write("stalls.jsonl",
        R"({"time":1170,"event":"goes_on","seconds":70,"ranks":[1],"hosts":["b"],"by":0}
{"time":1170.4,"event":"goes_on","seconds":69.8,"ranks":[0],"hosts":["a"],"by":1}
{"time":1300,"event":"goes_on","seconds":61,"ranks":[1],"hosts":["b"],"by":0}
)");
  EXPECT_EQ(text_of(lost()), "2 stalls 131.0 s (most: rank 1 on b)");
}

TEST_F(LostSecondsTest, LittleIsNotSaid) {
  EXPECT_FALSE(lost().any());
  write("metrics.jsonl", R"({"type":"summary","outcome":"finished","checkpoint_seconds":0.4})");
  EXPECT_TRUE(lost().any());
  EXPECT_EQ(text_of(lost()), "");
}

TEST_F(LostSecondsTest, LinesThatAreNoneOfOursCountNothing) {
  write("metrics.jsonl",
        "{\"type\":\"resume\",\"lost_seconds\":-3}\n{\"type\":\"resume\",\"lost_seconds\":\"x\"}\n"
        "{\"type\":\"resume\",\"lost_seconds\":1e300}\n{\"type\":\"epoch\",\"straggler\":[]}\n7\n"
        "{\"type\":\"epoch\",\"straggler\":{\"seconds\":3}}\n{\"type\":\"resume\",\"lost_se");
  write("stalls.jsonl",
        "{\"event\":\"goes_on\",\"seconds\":5}\n{\"event\":7}\n"
        "{\"event\":\"goes_on\",\"seconds\":5,\"ranks\":{},\"hosts\":7}\n[]\n");
  EXPECT_LE(lost().stalls.times, 1);
  EXPECT_EQ(lost().restarts.times + lost().stragglers.times, 0);
}

}  // namespace
}  // namespace cputrain::runfiles
