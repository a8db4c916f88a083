#include "training/plan/training_plan.h"

#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "composition/services.h"
#include "training/plan/training_memory.h"
#include "training/request/choose_training.h"

namespace cputrain::training {
namespace {

constexpr std::size_t kMiB = 1 << 20;

/// dogcat on one rank of one thread.
class MicroBatch : public ::testing::Test {
 protected:
  MicroBatch() : services_(composition::make_services(launcher_, signals_)) {
    flags_.image_size = 256;  // 25,088 x 512 weights
    flags_.threads = 1;
    flags_.verbose = 0;
  }
  model::Graph graph() const { return build_graph(choose_training(flags_), 2); }
  Session session() const {
    Session session = start_session(flags_, services_);
    session.plan.crowding = 0.5;
    return session;
  }
  int micro_batch(const Session& session, std::optional<std::size_t> memory = {}) const {
    return training_micro_batch(flags_, session, graph(), memory);
  }

  system::SignalWatch signals_;
  placement::Launcher launcher_;
  Services services_;
  TrainingFlags flags_;
};

TEST_F(MicroBatch, BytesAreThoseOfMapsThatAreKept) {
  // Pooled maps and vectors of dogcat, each with its gradient, as floats.
  const std::size_t maps = 127 * 127 * 32 + 62 * 62 * 64 + 30 * 30 * 128 + 14 * 14 * 128;
  const std::size_t vectors = 512 + 256 + 1;
  EXPECT_GE(activation_bytes(graph()), 8 * (maps + vectors));
  EXPECT_LE(activation_bytes(graph()), 8 * (maps + vectors + 1));  // and the probability
}

TEST_F(MicroBatch, IsLargeWhereDenseLayersAre) {
  Session own = session();
  if (own.backend->name() != "cpu") GTEST_SKIP() << "this build has no oneDNN";
  EXPECT_EQ(micro_batch(own), 128);
  EXPECT_EQ(micro_batch(own, 4096 * kMiB), 128);
  // 252 MiB for weights and what goes with them; 6.8 MiB an image, four times.
  EXPECT_EQ(micro_batch(own, 252 * kMiB + 64 * 28 * kMiB), 64);
  EXPECT_EQ(micro_batch(own, 252 * kMiB + 32 * 28 * kMiB), 32);
  EXPECT_EQ(micro_batch(own, 252 * kMiB), 8);
  EXPECT_EQ(micro_batch(own, 0), 8);
  own.most_threads = 40;
  EXPECT_EQ(micro_batch(own), 320);
  own.most_threads = 1;
  own.plan.crowding = 5;  // ranks for each hardware thread
  EXPECT_EQ(micro_batch(own), 4);
  own.plan.crowding = 1;
  flags_.micro_batch = 100;
  EXPECT_EQ(micro_batch(own), 100);
  flags_.micro_batch.reset();
  flags_.image_size = 64;  // 512 x 512 weights stay in a cache
  EXPECT_EQ(micro_batch(own), 8);
}

TEST_F(MicroBatch, IsLargestOnADevice) {
  Session own = session();
  own.device.line = "a GPU";
  EXPECT_EQ(micro_batch(own), 256);
  EXPECT_EQ(micro_batch(own, 252 * kMiB + 256 * 28 * kMiB), 256);
  EXPECT_EQ(micro_batch(own, 252 * kMiB + 255 * 27 * kMiB), 128);
  EXPECT_EQ(micro_batch(own, 0), 128);
  own.plan.crowding = 5;
  flags_.image_size = 64;
  EXPECT_EQ(micro_batch(own), 256);
  flags_.micro_batch = 100;
  EXPECT_EQ(micro_batch(own), 100);
}

TEST_F(MicroBatch, IsSmallWhereEveryActivationIsKept) {
  Session own = session();
  own.backend = reference::make_reference_backend(DType::f32);
  EXPECT_EQ(micro_batch(own), 8);
}

TEST(DeviceMemory, IsThatOfTheTightestNode) {
  const auto least = [](const std::vector<NodeCapacity>& nodes) {
    return least_available(nodes, &NodeCapacity::backend_available);
  };
  NodeCapacity host{.host = "a", .ranks = {0, 1}, .available = 10}, large = host, small = host;
  large.backend_available = 3000;
  small.backend_available = 2000;
  EXPECT_FALSE(least({host}));
  EXPECT_EQ(least({host, large, small, large}), 2000u);
}

TEST(RankMemory, IsThatOfTheTightestNode) {
  EXPECT_FALSE(rank_memory({{.host = "a", .ranks = {0}, .available = {}}}, 0));
  const std::vector<NodeCapacity> nodes{{.host = "a", .ranks = {0, 1}, .available = 1000},
                                        {.host = "b", .ranks = {2, 3, 4, 5}, .available = 1200},
                                        {.host = "c", .ranks = {6}, .available = {}}};
  EXPECT_EQ(rank_memory(nodes, 0), 300u);
  EXPECT_EQ(rank_memory(nodes, 200), 250u);
  EXPECT_EQ(rank_memory(nodes, 5000), 0u);
}

}  // namespace
}  // namespace cputrain::training
