// As many ranks as before go on from a checkpoint as if nothing had happened: the same bits.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tests/backends/backends_under_test.h"
#include "tests/checkpoint/rank_jobs.h"

namespace cputrain::training {
namespace {

class SameRanks : public RankJobs {
 protected:
  /// Leaves a checkpoint behind a step and compares what goes on from it with what went on.
  void expect_same(const RankJob& job, std::uint64_t step) {
    const std::string what = job.name + ", step " + std::to_string(step);
    const std::filesystem::path at = folder(what);
    const std::vector<RankResult> whole = train(job, step, at);
    const std::vector<RankResult> resumed = resume(job, at);
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      EXPECT_EQ(resumed[rank].progress.steps, step) << what;
      EXPECT_EQ(resumed[rank].progress.begun.has_value(), whole[rank].progress.begun.has_value());
      EXPECT_TRUE(resumed[rank].at_checkpoint == whole[rank].at_checkpoint)
          << what << ": arrays of rank " << rank;
      EXPECT_EQ(resumed[rank].steps, whole[rank].steps) << what;
      EXPECT_TRUE(resumed[rank].weights == whole[rank].weights) << what << ", rank " << rank;
    }
  }

  RankJob job(const std::string& optimizer, const std::string& allreduce, int ranks,
              const BackendMaker& backend, const std::string& layers = "") {
    RankJob made{optimizer + " by " + allreduce, flags(optimizer, layers), backend, ranks};
    std::ranges::replace(made.name, '/', ' ');
    made.flags.allreduce = comm::parse_allreduce(allreduce);
    return made;
  }
};

TEST_F(SameRanks, MomentumThatIsCorrected) {
  for (const char* allreduce : {"ring", "shm", "ps"}) {
    RankJob made = job("sgd", allreduce, 3, floats);
    made.flags.optimizer.figures = {{"momentum", 0.9}};
    made.flags.momentum_correction = true;
    made.flags.warmup_epochs = 2;  // another rate at every step
    expect_same(made, 4);
  }
}

TEST_F(SameRanks, AllArraysOfRmsprop) {
  RankJob made = job("rmsprop", "shm", 2, doubles);
  made.flags.optimizer.figures = {{"momentum", 0.5}, {"centered", 1}};
  expect_same(made, 3);
  made.backend = own_kernels;
  made.name += " on floats";
  expect_same(made, 3);
}

TEST_F(SameRanks, AdamOnAllBackends) {
  expect_same(job("adam", "ps", 3, doubles), 5);
  expect_same(job("adam", "rabenseifner", 2, locked), 5);
  expect_same(job("adam", "shm", 3, own_kernels), 5);
  for (const testing::BackendUnderTest& cuda : testing::cuda_backends_under_test()) {
    expect_same(job("adam", "ring", 2, cuda.make), 1);
  }
}

TEST_F(SameRanks, RatesOfLayers) {
  RankJob lars = job("lars", "shm", 3, own_kernels);
  lars.flags.weight_decay = 0.1;
  expect_same(lars, 4);
  RankJob lamb = job("lamb", "ring", 2, locked);
  lamb.flags.clip_norm = 0.5;
  lamb.flags.weight_decay = 0.1;
  expect_same(lamb, 4);
}

TEST_F(SameRanks, SlicesOfSeveralNodes) {
  RankJob made = job("adam", "hierarchical+ring", 4, floats);
  made.ranks_a_node = 2;
  made.overlap = true;
  made.flags.bucket_mb = 0.001;
  expect_same(made, 4);
  made.ranks = 3;  // of which one is alone on its node
  made.name += " of uneven nodes";
  expect_same(made, 4);
}

/// Whose rows the ranks of each node own.
TEST_F(SameRanks, ShardedLayers) {
  RankJob made = job("adam", "hierarchical+ring", 4, floats);
  made.ranks_a_node = 2;
  made.flags.shard_dense = true;
  expect_same(made, 4);
}

TEST_F(SameRanks, SumsInTheOrderOfImages) {
  RankJob made = job("adam", "auto", 2, own_kernels);
  made.flags.reproducible = true;
  expect_same(made, 4);
}

/// Behind an epoch's last step, before it ends, and behind an epoch.
TEST_F(SameRanks, AtTheEndsOfEpochs) {
  const RankJob made = job("sgd", "shm", 2, floats, kBatchNorm);
  for (const std::uint64_t step : {1, 6, 12}) expect_same(made, step);
}

/// Losses that do not fall by 0.0001 an epoch halve the rate from the second one on.
TEST_F(SameRanks, PlateausOfTheLoss) {
  RankJob made = job("sgd", "shm", 2, floats);
  made.flags.schedule = optim::Plateau{.patience = 1, .factor = 0.5};
  made.flags.lr = 1e-5;
  made.flags.epochs = 3;
  expect_same(made, 13);
  EXPECT_EQ(resume(made, path() / (made.name + ", step 13"))[1].progress.plateau.factor, 0.5);
}

TEST_F(SameRanks, MovingStatisticsWithinAnEpoch) {
  for (const char* allreduce : {"shm", "ring", "ps"}) {
    RankJob made = job("sgd", allreduce, 4, own_kernels, kBatchNorm);
    expect_same(made, 4);
  }
  RankJob made = job("adam", "ring", 3, locked, kBatchNorm);
  made.flags.sync_bn = true;
  made.flags.micro_batch.reset();
  expect_same(made, 8);
}

TEST_F(SameRanks, AveragesOfWeights) {
  for (const char* allreduce : {"shm", "ring", "ps"}) {
    RankJob made = job("rmsprop", allreduce, 3, own_kernels, kBatchNorm);
    made.flags.optimizer.figures = {{"momentum", 0.5}, {"centered", 1}};  // three arrays of its own
    made.flags.ema = 0.8;
    made.name += " with averages";
    for (const std::uint64_t step : {4, 12}) expect_same(made, step);
  }
  for (const testing::BackendUnderTest& cuda : testing::cuda_backends_under_test()) {
    RankJob made = job("adam", "ring", 2, cuda.make);
    made.flags.ema = 0.8;
    made.name += " with averages";
    expect_same(made, 4);
  }
}

TEST_F(SameRanks, WhatCompressionHasNotSent) {
  for (const char* compress : {"topk:0.05", "powersgd:2"}) {
    const auto with = [&](RankJob made) {
      made.flags.compress = exchange::parse_compression(compress);
      made.flags.optimizer.figures = {{"momentum", 0.9}};
      made.name += std::string(" with ") + compress;
      // Small ranges travel whole: the dense layer is large enough.
      made.flags.image_size = 24;
      return made;
    };
    expect_same(with(job("sgd", "ring", 2, floats)), 4);
    expect_same(with(job("sgd", "tree", 2, locked)), 4);
    expect_same(with(job("sgd", "ring", 3, doubles)), 4);
    RankJob nodes = with(job("sgd", "hierarchical+tree", 4, own_kernels));
    nodes.ranks_a_node = 2;
    expect_same(nodes, 4);
  }
}

/// As they may be behind a step whose loss was still a number.
TEST_F(SameRanks, WeightsThatAreNoNumbersGetIntoNoCheckpoint) {
  for (const auto backend : {floats, doubles, locked}) {
    const RankJob made = job("sgd", "auto", 1, backend);
    const std::filesystem::path at = folder("good"), copied = folder("bad");
    train(made, 4, at);
    for (const double bad : {std::nan(""), -HUGE_VAL, 0.0}) {
      const auto change = [&](Training& training) {
        compute::Memory& memory = training.session().backend->memory();
        std::vector<double> weights = compute::read_numbers(memory, training.weights());
        weights[weights.size() / 2] = bad;
        compute::write_numbers(memory, weights, training.weights());
      };
      if (bad == 0) {
        EXPECT_NO_THROW(copy(made, at, copied, change));
      } else {
        EXPECT_THROW(copy(made, at, copied, change), Error);
      }
      EXPECT_EQ(std::filesystem::is_empty(copied), bad != 0);
    }
    std::filesystem::remove_all(at);
    std::filesystem::remove_all(copied);
  }
}

/// A training that has gone on goes back: nothing of what it did since is left.
TEST_F(SameRanks, GoesBackToo) {
  for (const char* compress : {"none", "topk:0.05", "powersgd:2"}) {
    RankJob made = job("rmsprop", "ring", 2, floats, kBatchNorm);
    made.flags.compress = exchange::parse_compression(compress);
    made.flags.image_size = 24;
    const std::filesystem::path at = folder(std::string("back with ") + compress);
    const std::vector<RankResult> whole = train(made, 4, at), twice = resume(made, at, 2);
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      EXPECT_TRUE(twice[rank].at_checkpoint == whole[rank].at_checkpoint) << compress;
      EXPECT_TRUE(twice[rank].weights == whole[rank].weights) << compress;
    }
  }
}

}  // namespace
}  // namespace cputrain::training
