// Trainings whose every number is computed by kernels for CUDA devices: on the emulated one, whose
// arrays the host cannot touch and which does its work as late as it may, and on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/backend.h"
#include "comm/communicator.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

MadeOptions on_cuda(MadeOptions options, cuda::Numbers numbers = cuda::Numbers::exact) {
  options.backend = [numbers] { return cuda::make_device_backend({.numbers = numbers}); };
  return options;
}

std::map<std::string, MadeOptions> recipes() {
  std::map<std::string, MadeOptions> list = made_recipes();
  // A bias before a batch norm has no gradient but rounding, of which RMSprop makes whole steps.
  for (auto& [name, options] : list) {
    if (options.batch_norm) options.optimizer.rule = optim::Sgd{.momentum = 0.9};
  }
  list["RMSprop"] = {};
  list["Adam"].optimizer.rule = optim::Adam{};
  list["clipped values"].optimizer = {optim::Sgd{.momentum = 0.9, .nesterov = true}, 0.1, 0.01};
  return list;
}

/// Floats against doubles over ten steps: weights are a few units in the last place off by then.
constexpr double kBoundOfFloats = 1e-4;

void expect_curve(const MadeResult& made, const MadeResult& expected, const std::string& name,
                  double bound = kBoundOfFloats) {
  const std::vector<double> here = losses(made), there = losses(expected);
  ASSERT_EQ(here.size(), there.size()) << name;
  for (std::size_t i = 0; i < here.size(); ++i) {
    EXPECT_NEAR(here[i], there[i], bound * std::abs(there[i])) << name << ", value " << i;
  }
}

class CudaTraining : public ::testing::TestWithParam<int> {};

/// Every other one with threads that read gradients while backward goes on.
TEST_P(CudaTraining, HasTheCurveOfPlainLoops) {
  std::size_t which = 0;
  const std::vector<std::string> algorithms{"auto", "ring", "rabenseifner", "tree", "mpi"};
  for (auto& [name, options] : recipes()) {
    MadeOptions device = on_cuda(options);
    device.allreduce = comm::parse_allreduce(algorithms[which++ % algorithms.size()]);
    device.overlap = which % 2 != 0;
    const MadeResult expected = train_made(*comm::make_solo(), options);
    const auto made = train_ranks(GetParam(), device);
    for (const auto& [rank, of_rank] : made) {
      expect_curve(of_rank, expected, name + ", rank " + std::to_string(rank));
      EXPECT_EQ(of_rank.weights_hash, made.at(0).weights_hash) << name;
    }
  }
}

/// What is left out of the gradient depends on the ranks, so the curve is that of as many.
TEST_P(CudaTraining, CompressesAsPlainLoopsDo) {
  for (const char* compression : {"topk:0.3", "bf16"}) {
    MadeOptions options;
    options.optimizer.rule = optim::Sgd{.momentum = 0.9};
    options.compression = exchange::parse_compression(compression);
    options.allreduce = comm::parse_allreduce("tree");
    const auto expected = train_ranks(GetParam(), options);
    const auto made = train_ranks(GetParam(), on_cuda(options));
    for (const auto& [rank, of_rank] : made) {
      expect_curve(of_rank, expected.at(rank), compression);
    }
  }
}

/// Batches differ from rank to rank, so the curve is that of as many; some have several.
TEST_P(CudaTraining, HasBatchNormOfEachMicroBatch) {
  MadeOptions options;
  options.batch_norm = true;
  options.synchronised = false;
  options.optimizer.rule = optim::Sgd{.momentum = 0.9};
  options.allreduce = comm::parse_allreduce("tree");
  const auto expected = train_ranks(GetParam(), options);
  const auto made = train_ranks(GetParam(), on_cuda(options));
  for (const auto& [rank, of_rank] : made) {
    expect_curve(of_rank, expected.at(rank), "rank " + std::to_string(rank));
    EXPECT_EQ(of_rank.weights_hash, made.at(0).weights_hash);
  }
}

/// The gradient of a dense layer over five images has rank five, so nothing is lost: where the
/// matrix is read as it lies.
TEST_P(CudaTraining, LosesNothingToPowerSgdOfTheGradientsRank) {
  MadeOptions options;
  options.optimizer.rule = optim::Sgd{.momentum = 0.9};
  options.allreduce = comm::parse_allreduce("tree");
  const auto expected = train_made(*comm::make_solo(), options);
  options.compression = exchange::parse_compression("powersgd:5");
  for (const auto& [rank, made] : train_ranks(GetParam(), on_cuda(options))) {
    expect_curve(made, expected, "rank " + std::to_string(rank));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CudaTraining, ::testing::Values(1, 2, 3, 7));

struct RoundedTraining {
  cuda::Numbers numbers;
  double bound;  ///< of losses: a few times what rounding moves them by here
};
class CudaPrecision : public ::testing::TestWithParam<RoundedTraining> {};

INSTANTIATE_TEST_SUITE_P(Numbers, CudaPrecision,
                         ::testing::Values(RoundedTraining{cuda::Numbers::tf32, 5e-3},
                                           RoundedTraining{cuda::Numbers::bf16, 2e-2}),
                         [](const auto& test) { return word_of(test.param.numbers); });

/// With several ranks others write weights, which makes copies of them stale.
TEST_P(CudaPrecision, HasTheCurveOfPlainLoops) {
  MadeOptions options;
  options.optimizer = {optim::Sgd{.momentum = 0.9}, 0.1, 0.01};
  const MadeResult expected = train_made(*comm::make_solo(), options);
  for (const int ranks : {1, 2, 3}) {
    const auto made = train_ranks(ranks, on_cuda(options, GetParam().numbers));
    for (const auto& [rank, of_rank] : made) {
      expect_curve(of_rank, expected, std::to_string(ranks) + " ranks", GetParam().bound);
      EXPECT_EQ(of_rank.weights_hash, made.at(0).weights_hash);
    }
  }
}

TEST(CudaTraining, HasTheSameBitsEveryTime) {
  std::vector<std::vector<double>> weights;
  for (const auto numbers : {cuda::Numbers::exact, cuda::Numbers::tf32, cuda::Numbers::bf16}) {
    MadeOptions options = on_cuda({}, numbers);
    const MadeResult first = train_made(*comm::make_solo(), options);
    EXPECT_EQ(train_made(*comm::make_solo(), options).weights, first.weights);
    options.train.seed = 4;
    EXPECT_NE(train_made(*comm::make_solo(), options).weights, first.weights);
    EXPECT_EQ(std::ranges::count(weights, first.weights), 0) << word_of(numbers);
    weights.push_back(first.weights);
  }
}

}  // namespace
}  // namespace cputrain::loop
