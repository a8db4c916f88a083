// What the ranks of a job decide, against figures worked out by hand.
#include "training/plan/training_plan.h"

#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "tests/support/locked_backend.h"
#include "tests/support/refusal.h"

namespace cputrain::training {
namespace {

/// One rank whose plan has these threads, the first of them its own; more stand for other ranks.
Session session_of(const Services& services, const std::vector<int>& threads) {
  Session session{.services = services, .communicator = comm::make_solo()};
  session.nodes = comm::read_node_map(*session.communicator);
  session.threads = threads.front();
  for (std::size_t rank = 0; rank < threads.size(); ++rank) {
    session.plan.ranks.push_back(
        {.rank = static_cast<int>(rank), .host = "here", .threads = threads[rank]});
    session.most_threads = std::max(session.most_threads, threads[rank]);
  }
  session.backend = reference::make_reference_backend(DType::f32);
  return session;
}

class TrainingPlans : public ::testing::Test {
 protected:
  TrainingPlans() { flags_.image_size = 64; }

  TrainingPlan plan(const std::vector<int>& threads = {1}) {
    const Session session = session_of(services_, threads);
    return plan_training(session, choose_training(flags_), 2);
  }
  /// The words of the refusal; empty where there is none.
  std::string refusal() {
    return testing::refusal_of(ExitCode::usage, [&] { plan(); });
  }

  Services services_;
  TrainingFlags flags_;
};

TEST_F(TrainingPlans, OneRankCutsItsBatchEvenly) {
  flags_.batch = 20;
  EXPECT_EQ(plan().micro_batch, 7);  // one thread has up to 8 at once: 7, 7 and 6
  flags_.batch = 16;
  EXPECT_EQ(plan().micro_batch, 8);
  flags_.batch = 5;
  EXPECT_EQ(plan().micro_batch, 8);  // there is nothing to cut
  EXPECT_EQ(plan().usual_images, 5);
}

TEST_F(TrainingPlans, ABatchThatGrowsIsNotCutEvenly) {
  flags_.batch = 20;
  flags_.batch_growth = {{1, 2}};
  EXPECT_EQ(plan().micro_batch, 8);
}

TEST_F(TrainingPlans, WhatWasAskedIsTaken) {
  flags_.batch = 20;
  flags_.micro_batch = 3;
  EXPECT_EQ(plan().micro_batch, 3);
  EXPECT_EQ(plan().usual_images, 3);
  flags_.batch = 2;
  EXPECT_EQ(plan().usual_images, 2);
}

TEST_F(TrainingPlans, StatisticsCoverTheShare) {
  flags_.model = "resnet50v2";
  flags_.batch = 20;
  EXPECT_EQ(plan().micro_batch, 20);
  EXPECT_TRUE(plan().whole_share());
  flags_.micro_batch = 6;
  EXPECT_EQ(plan().micro_batch, 6);
  EXPECT_FALSE(plan().whole_share());
}

TEST_F(TrainingPlans, ChunksAreForTheThreadsThatEveryRankHas) {
  flags_.batch = 100;
  EXPECT_FALSE(plan({3, 2, 4}).chunks);
  EXPECT_EQ(plan({3, 2, 4}).lanes(), 1);
  flags_.reproducible = true;
  const TrainingPlan made = plan({3, 2, 4});
  EXPECT_EQ(made.chunks->images, 8);
  EXPECT_EQ(made.lanes(), 2);
  EXPECT_EQ(made.micro_batch, 16);
}

TEST_F(TrainingPlans, FitTheRanks) {
  flags_.batch_per_rank = 12;
  EXPECT_EQ(plan().spec.batch, 12u);
}

TEST_F(TrainingPlans, RefuseWhatTheNetworkDoesNotAllow) {
  EXPECT_EQ(refusal(), "");
  flags_.sync_bn = true;
  EXPECT_NE(refusal().find("--sync-bn: dogcat has no batch normalization"), std::string::npos);
  flags_.model = "resnet50v2";
  flags_.batch = 20;
  EXPECT_EQ(refusal(), "");
  flags_.micro_batch = 6;
  EXPECT_NE(refusal().find("a rank's share is 20 images"), std::string::npos);
  flags_.sync_bn = false;
  flags_.reproducible = true;
  EXPECT_NE(refusal().find("--reproducible with batch normalization"), std::string::npos);
}

TEST_F(TrainingPlans, NobodySharesALayerAlone) {
  EXPECT_TRUE(plan().sharded.empty());
  flags_.shard_dense = true;
  EXPECT_TRUE(plan().sharded.empty());  // one rank has all of it
}

/// dogcat at 256x256 has a dense layer of 25,088 x 512 weights: 4 ranks with a micro-batch of 4
/// move 4 * 3 * 25,088 * 512 numbers less without it, against 4 * 16 * 25,088 + 3 * 4 * 16 * 512
/// more.
TEST_F(TrainingPlans, RanksOfANodeShareItsLargeLayer) {
  flags_.image_size = 256;
  flags_.batch = 16;
  flags_.micro_batch = 4;
  Session session = session_of(services_, {1, 1, 1, 1});
  session.nodes.ranks = {{0, 1, 2, 3}};
  const auto sharded = [&] { return plan_training(session, choose_training(flags_), 2).sharded; };
  EXPECT_EQ(sharded(), std::vector<std::string>{"dense"});
  session.nodes.ranks = {{0, 1, 2}, {3}};  // uneven
  EXPECT_TRUE(sharded().empty());
  session.nodes.ranks = {{0, 1, 2, 3}};
  flags_.shard_dense = false;
  EXPECT_TRUE(sharded().empty());
}

/// What lies on a device cannot be shared by the ranks of a node.
TEST_F(TrainingPlans, OnlyArraysOfTheHostAreShared) {
  flags_.image_size = 256;
  flags_.batch = 16;
  Session session = session_of(services_, {1, 1, 1, 1});
  session.nodes.ranks = {{0, 1, 2, 3}};
  session.backend =
      testing::make_locked_backend(reference::make_reference_backend(DType::f32), std::nullopt);
  EXPECT_TRUE(plan_training(session, choose_training(flags_), 2).sharded.empty());
  flags_.shard_dense = true;
  EXPECT_THROW(plan_training(session, choose_training(flags_), 2), Error);
}

}  // namespace
}  // namespace cputrain::training
