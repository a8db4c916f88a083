// Another number of ranks, or another backend, goes on from a checkpoint: what they get is what was
// there.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "checkpoint/folder.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/state_file.h"
#include "tests/backends/backends_under_test.h"
#include "tests/checkpoint/rank_jobs.h"

namespace cputrain::training {
namespace {

class OtherRanks : public RankJobs {
 protected:
  RankJob job(const TrainingFlags& flags, const std::string& allreduce, int ranks) {
    RankJob made{allreduce, flags, floats, ranks};
    made.flags.allreduce = comm::parse_allreduce(allreduce);
    return made;
  }

  /// Weights and optimizer state of two checkpoints are the same bits.
  static void expect_same_arrays(const std::filesystem::path& here,
                                 const std::filesystem::path& there) {
    for (const char* file : {checkpoint::kModelName, checkpoint::kOptimizerName}) {
      EXPECT_EQ(tensors_of(here / file), tensors_of(there / file)) << there;
    }
  }
};

TEST_F(OtherRanks, EveryExchangeHasTheSameWeightsAndState) {
  TrainingFlags adam = flags("adam");
  const std::filesystem::path first = folder("first");
  train(job(adam, "shm", 2), 4, first);
  EXPECT_EQ(numbers_in(first / checkpoint::kOptimizerName, "head/bias/v").size(), 2u);
  for (const auto& [allreduce, ranks] :
       std::map<std::string, int>{{"shm", 3}, {"ring", 1}, {"ps", 7}, {"hierarchical+ring", 5}}) {
    RankJob other = job(adam, allreduce, ranks);
    if (ranks == 5) other.ranks_a_node = 2;
    const std::filesystem::path copied = folder("copied by " + std::to_string(ranks));
    copy(other, first, copied);
    expect_same_arrays(first, copied);
  }
}

TEST_F(OtherRanks, EveryBackendHasTheSameWeightsAndState) {
  TrainingFlags adam = flags("adam");
  const std::filesystem::path first = folder("first");
  train(job(adam, "shm", 2), 4, first);
  for (const testing::BackendUnderTest& backend : testing::backends_under_test()) {
    RankJob other = job(adam, "ring", 2);
    other.backend = backend.make;
    const std::filesystem::path copied = folder(backend.name);
    copy(other, first, copied);
    expect_same_arrays(first, copied);
  }
}

/// Sums of leaves do not depend on the number of ranks, so neither do weights.
TEST_F(OtherRanks, ReproducibleTrainingsEndWithTheSameBits) {
  for (const char* optimizer : {"adam", "lars"}) {
    RankJob made{optimizer, flags(optimizer), floats, 2};
    made.flags.reproducible = true;
    const std::filesystem::path at = folder(optimizer);
    const std::vector<double> weights = train(made, 4, at)[0].weights;
    for (const int ranks : {1, 3, 7}) {
      made.ranks = ranks;
      for (const RankResult& resumed : resume(made, at)) {
        EXPECT_TRUE(resumed.weights == weights) << optimizer << " on " << ranks << " ranks";
      }
    }
  }
}

/// The mean, weighted by images, is every new rank's; images are shared out.
TEST_F(OtherRanks, StatisticsAreTheMean) {
  RankJob made = job(flags("sgd", kBatchNorm), "ring", 4);
  const std::filesystem::path at = folder("at");
  train(made, 4, at);
  const std::filesystem::path ranks = at / checkpoint::kRanksName;
  const std::vector<double> images = numbers_in(ranks, "own_images");
  // 4 steps of 6 images: one or two of a rank.
  ASSERT_EQ(images.size(), 4u);
  EXPECT_EQ(std::ranges::count(images, 8.0), 2);
  EXPECT_EQ(std::ranges::count(images, 4.0), 2);
  const std::vector<double> all = numbers_in(ranks, "statistics");
  ASSERT_EQ(all.size(), 4u * 10);  // mean and variance of 5 channels
  const std::vector<double> means =
      numbers_in(at / checkpoint::kModelName, "batch_normalization/moving_mean");
  ASSERT_EQ(means.size(), 5u);
  for (std::size_t c = 0; c < 5; ++c) {
    double sum = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) sum += images[rank] * all[rank * 10 + c];
    EXPECT_NEAR(means[c], sum / 24, 1e-7) << c;
    EXPECT_NE(all[c], all[10 + c]) << "ranks have statistics of their own";
  }
  for (const int other : {1, 3}) {
    made.ranks = other;
    const std::filesystem::path copied = folder(std::to_string(other));
    for (const RankResult& rank : copy(made, at, copied)) {
      EXPECT_EQ(rank.progress.own_images, 24.0 / other);
    }
    const std::vector<double> here =
        numbers_in(copied / checkpoint::kModelName, "batch_normalization/moving_mean");
    for (std::size_t c = 0; c < 5; ++c) EXPECT_NEAR(here[c], means[c], 1e-7);
  }
}

/// Element by element, over all owners.
std::vector<double> all_unsent(const std::filesystem::path& folder) {
  std::vector<double> sum;
  for (int k = 0;; ++k) {
    const auto part = numbers_in(folder / checkpoint::kRanksName, "unsent/" + std::to_string(k));
    if (part.empty()) return sum;
    sum.resize(part.size());
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
  }
}

TEST_F(OtherRanks, NothingIsLostOfWhatWasNotSent) {
  for (const char* compress : {"topk:0.05", "powersgd:2"}) {
    TrainingFlags sgd = flags("sgd");
    sgd.compress = exchange::parse_compression(compress);
    sgd.image_size = 24;
    const std::filesystem::path at = folder(compress);
    train(job(sgd, "ring", 2), 4, at);
    const std::vector<double> owed = all_unsent(at);
    EXPECT_GT(std::ranges::count_if(owed, [](double x) { return x != 0; }), 100) << compress;
    RankJob nodes = job(sgd, "hierarchical+tree", 6);
    nodes.ranks_a_node = 2;
    for (const RankJob& other : {job(sgd, "ring", 1), job(sgd, "tree", 3), nodes}) {
      const std::filesystem::path copied =
          folder(compress + std::string(" on ") + std::to_string(other.ranks));
      const auto results = copy(other, at, copied);
      const std::vector<double> here = all_unsent(copied);
      ASSERT_EQ(here.size(), owed.size());
      for (std::size_t i = 0; i < owed.size(); ++i) {
        ASSERT_NEAR(here[i], owed[i], 1e-6 * std::abs(owed[i])) << compress << " at " << i;
      }
      // All of it is the first owner's.
      const auto second = numbers_in(copied / checkpoint::kRanksName, "unsent/1");
      EXPECT_EQ(std::ranges::count(second, 0.0), std::ssize(second));
      EXPECT_TRUE(resume(other, at)[0].steps == 12) << "and it goes on";
    }
  }
}

/// Nodes of another size own the same again: each keeps what it had.
TEST_F(OtherRanks, NodesKeepWhatTheyHaveNotSent) {
  TrainingFlags sgd = flags("sgd");
  sgd.compress = exchange::parse_compression("topk:0.05");
  sgd.image_size = 24;
  RankJob nodes = job(sgd, "hierarchical+tree", 4);
  nodes.ranks_a_node = 2;
  const std::filesystem::path at = folder("at"), copied = folder("copied");
  train(nodes, 4, at);
  nodes.ranks = 6;
  nodes.ranks_a_node = 3;
  copy(nodes, at, copied);
  for (const char* node : {"unsent/0", "unsent/1"}) {
    EXPECT_EQ(numbers_in(at / checkpoint::kRanksName, node),
              numbers_in(copied / checkpoint::kRanksName, node));
  }
}

/// Factors begin anew, also where the training has made steps with others since.
TEST_F(OtherRanks, GoesBackAsOften) {
  TrainingFlags sgd = flags("sgd");
  sgd.compress = exchange::parse_compression("powersgd:2");
  const std::filesystem::path at = folder("at");
  train(job(sgd, "ring", 1), 4, at);
  EXPECT_EQ(resume(job(sgd, "ring", 2), at)[1].weights,
            resume(job(sgd, "ring", 2), at, 2)[1].weights);
}

TEST_F(OtherRanks, FactsAndProgressCanBeReadAlone) {
  const std::filesystem::path at = folder("at");
  const auto results = train(job(flags("sgd"), "shm", 2), 8, at);
  EXPECT_EQ(checkpoint::read_facts(at).dump(), R"({"fact":"of a test"})");
  const loop::Progress progress = checkpoint::read_progress(at);
  EXPECT_EQ(progress.steps, 8u);
  EXPECT_EQ(progress.epochs, 1);
  EXPECT_EQ(progress.begun->steps, 2u);
  EXPECT_EQ(progress.begun->train.loss, results[0].progress.begun->train.loss);
  EXPECT_EQ(progress.own_images, 12) << "of all ranks";
}

}  // namespace
}  // namespace cputrain::training
