#include "training/micro_batch.h"

#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "comm/solo.h"
#include "training/request/build_graph.h"

namespace cputrain::training {
namespace {

class MicroBatch : public ::testing::Test {
 protected:
  MicroBatch() {
    session_.most_threads = 1;
    session_.backend = reference::make_reference_backend(DType::f32);
  }
  model::Graph graph() const { return build_graph(choose_training(flags_), 2); }

  Services services_;
  Session session_{.services = services_, .communicator = comm::make_solo()};
  TrainingFlags flags_;
};

TEST_F(MicroBatch, BytesAreThoseOfMapsThatAreKept) {
  flags_.image_size = 256;
  // Pooled maps and vectors of dogcat, each with its gradient, as floats.
  const std::size_t maps = 127 * 127 * 32 + 62 * 62 * 64 + 30 * 30 * 128 + 14 * 14 * 128;
  const std::size_t vectors = 512 + 256 + 1;
  EXPECT_GE(activation_bytes(graph()), 8 * (maps + vectors));
  EXPECT_LE(activation_bytes(graph()), 8 * (maps + vectors + 1));  // and the probability
}

TEST_F(MicroBatch, MemoryLimitsImages) {
  EXPECT_EQ(images_for_dense(1000, std::nullopt), 64);
  EXPECT_EQ(images_for_dense(1000, 1'000'000), 64);
  EXPECT_EQ(images_for_dense(1000, 100'000), 25);
  EXPECT_EQ(images_for_dense(1000, 3'000), 0);
}

TEST_F(MicroBatch, WhatKeepsEveryActivationTakesFewImages) {
  flags_.image_size = 256;
  EXPECT_EQ(training_micro_batch(flags_, session_, graph()), 8);
  flags_.micro_batch = 100;
  EXPECT_EQ(training_micro_batch(flags_, session_, graph()), 100);
}

}  // namespace
}  // namespace cputrain::training
