// A dense layer that the ranks of a node compute together makes the curve and the weights of one
// that each computes for itself.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop::sharded_training_test {
namespace {

void expect_near(const std::vector<double>& a, const std::vector<double>& b,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 1e-10 * std::max(1.0, std::abs(a[i]))) << what << ", value " << i;
  }
}

/// With so many ranks, sharded, the losses and weights of the plain layer on one.
void expect_as_alone(MadeOptions options, int ranks, int ranks_a_node, const std::string& name) {
  options.sharded = false;
  const MadeResult alone = train_made(*comm::make_solo(), options);
  options.sharded = true;
  std::map<int, MadeResult> results;
  std::mutex mutex;
  threads::run_ranks(
      ranks,
      [&](comm::Communicator& communicator) {
        MadeResult made = train_made(communicator, options);
        const std::lock_guard lock(mutex);
        results.emplace(communicator.rank(), std::move(made));
      },
      ranks_a_node);
  for (const auto& [rank, made] : results) {
    const std::string what = name + ", rank " + std::to_string(rank) + " of " +
                             std::to_string(ranks) + " by " + std::to_string(ranks_a_node);
    expect_near(losses(alone), losses(made), what);
    expect_near(alone.weights, made.weights, what);
    EXPECT_EQ(made.weights_hash, results.at(0).weights_hash) << what;
  }
}

std::map<std::string, MadeOptions> trainings() {
  std::map<std::string, MadeOptions> list;
  // 22 images in steps of 5: shares differ, two of 7 ranks have none, and the last step has 2.
  list["uneven shares"] = {};
  MadeOptions micro;
  micro.batch = 11;
  micro.micro_batch = 1;
  micro.optimizer.rule = optim::Sgd{.momentum = 0.9, .nesterov = true};
  list["several micro-batches"] = micro;
  MadeOptions norms;
  norms.plan.accumulate = 2;
  norms.optimizer = {optim::Lamb{}, 0.1, {}, 1.0};
  norms.l2 = 0.01f;
  list["norms of the whole"] = norms;
  MadeOptions batch_norm;
  batch_norm.batch_norm = true;  // weights are then a replica per rank
  batch_norm.micro_batch = 22;
  batch_norm.optimizer.rule = optim::Sgd{};
  list["batch norm"] = batch_norm;
  return list;
}

class ShardedTraining : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ShardedTraining, MakesTheSameLossesAndWeights) {
  const auto [ranks, ranks_a_node] = GetParam();
  for (const auto& [name, options] : trainings()) {
    expect_as_alone(options, ranks, ranks_a_node, name);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShardedTraining,
                         ::testing::Values(std::pair(1, 1), std::pair(2, 2), std::pair(3, 3),
                                           std::pair(4, 4), std::pair(7, 7), std::pair(4, 2),
                                           std::pair(3, 1)));

TEST(ShardedOverNodes, TravelsBetweenNodesByAnyAlgorithm) {
  for (const char* name : {"hierarchical+ring", "hierarchical+rabenseifner"}) {
    MadeOptions options;
    options.allreduce = comm::parse_allreduce(name);
    expect_as_alone(options, 4, 2, name);
  }
}

}  // namespace
}  // namespace cputrain::loop::sharded_training_test
