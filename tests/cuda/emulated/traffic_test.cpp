#include "emulated/traffic.h"

#include <set>

#include "emulated/counts.h"
#include "emulated/device_fixture.h"
#include "emulated/shadow.h"
#include "emulated/test_kernels.h"

/// Bytes of kernels, beside what their lines say.
namespace cputrain::emulated {
namespace {

constexpr std::uint64_t kBytesOfX = kTrafficFloats * sizeof(float);
constexpr std::uint64_t kSector = Traffic::kSectorBytes;

class TrafficTest : public OnDevice {
 protected:
  void SetUp() override {
    if (!kernels_are_checked()) GTEST_SKIP() << "plain kernels do not report their accesses";
    restart({.counts_bytes = true});
  }

  TrafficArguments arguments() const {
    return {x_.data(), y_.data(), words_.data(), bytes_.data()};
  }
  /// What was counted of each launch that was done since then.
  static std::vector<Counts::CountedLaunch> since(const Counts& before) {
    return difference(counts(), before).traffic;
  }
  Traffic traffic_of(const char* kernel, unsigned blocks, unsigned threads) const {
    const Counts before = counts();
    launch_traffic(kernel, stream_.get(), blocks, threads, arguments());
    stream_.synchronize();
    const auto launches = since(before);
    EXPECT_EQ(launches.size(), 1u);
    EXPECT_EQ(launches.at(0).kernel, kernel);
    EXPECT_EQ(launches.at(0).blocks, blocks);
    return launches.at(0).traffic;
  }
  static void expect(const Traffic::Way& way, std::uint64_t bytes, std::uint64_t sectors) {
    EXPECT_EQ(way.bytes, bytes);
    EXPECT_EQ(way.sectors, sectors);
  }

  const cuda::OwnedStream stream_;
  const DeviceArray<float> x_{std::vector<float>(kTrafficFloats, 1), "x"};
  const DeviceArray<float> y_{kTrafficFloats, "y"};
  const DeviceArray<unsigned> words_{std::vector<unsigned>(1, 0), "words"};
  const DeviceArray<std::uint8_t> bytes_{128, "bytes"};
};

TEST_F(TrafficTest, WhatIsReadTwiceIsASectorOnce) {
  const Traffic t = traffic_of("read_twice", 2 * kTrafficFloats / 128, 128);
  expect(t.read, 2 * kBytesOfX, kBytesOfX / kSector);
  expect(t.written, kBytesOfX / 8, kTrafficFloats / 8);  // eight floats are a sector
}

TEST_F(TrafficTest, VectorsHaveTheirWidth) {
  const Traffic t = traffic_of("move_vectors", 2, kTrafficFloats / 4 / 2);
  expect(t.read, kBytesOfX, kBytesOfX / kSector);
  expect(t.written, kBytesOfX / 2, kBytesOfX / 2 / kSector);
}

TEST_F(TrafficTest, AnAccessMayLieInSeveralSectors) {
  const Traffic t = traffic_of("move_structs", 1, 21);  // 48 bytes each: the last ends in a half
  expect(t.read, 21 * 48, 21 * 48 / kSector + 1);
  expect(t.written, 21 * 48, 21 * 48 / kSector + 1);
}

TEST_F(TrafficTest, CopiesToSharedMemoryAreReadsAndSharedMemoryIsNot) {
  const Traffic t = traffic_of("stage", 3, 64);
  expect(t.read, 3 * 15 * 16, 15 * 16 / kSector + 1);
  expect(t.written, 3 * 64 * sizeof(float), 3 * 64 * sizeof(float) / kSector);
}

TEST_F(TrafficTest, AtomicOperationsReadAndWrite) {
  const Traffic t = traffic_of("add_atomically", 3, 50);
  expect(t.read, 150 * sizeof(unsigned), 1);
  expect(t.written, 150 * sizeof(unsigned), 1);
}

TEST_F(TrafficTest, ScatteredBytes) {
  std::set<std::uint64_t> sectors;
  for (unsigned i = 0; i < 128; ++i) sectors.insert(31 * i / kSector);
  const Traffic t = traffic_of("read_bytes", 1, 128);
  expect(t.read, 128, sectors.size());
  expect(t.written, 128, 128 / kSector);
}

TEST_F(TrafficTest, EachLaunchBeginsWithNothing) {
  const Counts before = counts();
  const cuda::Graph graph(stream_.get(), [&] {
    launch_traffic("move_vectors", stream_.get(), 1, 8, arguments());
    launch_traffic("add_atomically", stream_.get(), 1, 8, arguments());
  });
  for (int i = 0; i < 2; ++i) graph.launch(stream_.get());
  stream_.synchronize();
  const auto launches = since(before);
  ASSERT_EQ(launches.size(), 4u);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    EXPECT_EQ(launches[i].kernel, i % 2 == 0 ? "move_vectors" : "add_atomically");
    expect(launches[i].traffic.read, i % 2 == 0 ? 8 * 16 : 8 * 4, i % 2 == 0 ? 4 : 1);
  }
}

TEST_F(TrafficTest, IsInTheJson) {
  const Counts before = counts();
  for (int i = 0; i < 2; ++i) launch_traffic("move_vectors", stream_.get(), 1, 8, arguments());
  stream_.synchronize();
  std::string json = json_of(difference(counts(), before));
  std::erase_if(json, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_PRED2(contains, json,
               R"({"move_vectors":{"launches":2,"blocks":2,"read":{"bytes":256,"sectors":8},)"
               R"("written":{"bytes":128,"sectors":4}}})");
  const std::string one = R"({"kernel":"move_vectors","blocks":1,"read":{"bytes":128,"sectors":4},)"
                          R"("written":{"bytes":64,"sectors":2}})";
  EXPECT_PRED2(contains, json, R"("traffic":[)" + one + "," + one + "]");
}

TEST_F(TrafficTest, IsCountedWhereItIsAskedForAlone) {
  restart({});
  const Counts before = counts();
  launch_traffic("move_vectors", stream_.get(), 1, 8, arguments());
  stream_.synchronize();
  EXPECT_TRUE(since(before).empty());
  EXPECT_EQ(difference(counts(), before).launches(), 1u);
}

}  // namespace
}  // namespace cputrain::emulated
