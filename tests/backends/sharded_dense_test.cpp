#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "backends/reference/reference_backend.h"
#include "backends/threads/threads_communicator.h"
#include "data/batch_plan.h"
#include "model/rewrite.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

/// Dense layers that the ranks of a node compute together: the gradients of some images on 1 to 7
/// ranks, some of which have none, are those of all images on one rank with plain layers.
namespace cputrain::testing::sharded_dense_test {
namespace {

constexpr Shape kImage{9, 8, 3};
constexpr int kClasses = 3;
constexpr double kMark = 7;  // where no gradient is to be written

/// The first layer reads a blocked map whose last block has filling; two more read one map, so that
/// one of them adds to the gradient that the other wrote; the last has fewer inputs than ranks.
/// With many units the first is large enough for the cpu backend to skip zeros of what it reads.
constexpr int kFewUnits = 25, kManyUnits = 640;

model::Graph network(int units) {
  model::Graph graph = graph_of(kImage, model::Convolution{.filters = 20, .kernel = 3},
                                model::Relu{}, model::MaxPool{}, model::Flatten{});
  graph.add(model::Dense{.units = units}, "first");
  const int trunk = graph.add(model::Relu{});
  graph.add(model::Dense{.units = 5}, "left", {trunk});
  graph.add(model::Dense{.units = 5, .bias = false}, "right", {trunk});
  graph.add(model::Add{}, "", {trunk + 1, trunk + 2});
  graph.add(model::Dense{kClasses}, "last");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

model::Graph sharded_network(int units) {
  const std::vector<std::string> layers{"first", "left", "right", "last"};
  return model::with_sharded_dense(network(units), layers);
}

/// The rank's images of every micro-batch.
struct Shares {
  Samples samples;
  std::vector<int> pieces;
};

Shares shares_of(const Samples& all, const std::vector<int>& micro_batches, int rank, int ranks) {
  Shares own;
  std::size_t first = 0;
  for (const int images : micro_batches) {
    const Range mine = data::share(static_cast<std::size_t>(images), rank, ranks);
    for (std::size_t i = first + mine.begin; i < first + mine.end; ++i) {
      own.samples.images.push_back(all.images[i]);
      own.samples.labels.push_back(all.labels[i]);
      own.samples.samples.push_back(all.samples[i]);
    }
    own.pieces.push_back(static_cast<int>(mine.size()));
    first += static_cast<std::size_t>(images);
  }
  return own;
}

std::vector<int> sizes_of(const std::vector<int>& pieces) {
  std::vector<int> sizes{1};
  for (const int piece : pieces) sizes.push_back(std::max(piece, 1));
  return sizes;
}

/// Whether other ranks' shards still hold `kMark`.
bool marks_stay(const std::vector<double>& gradients, const compute::ParameterLayout& layout,
                const comm::Communicator& comm) {
  std::vector<bool> used(gradients.size(), false);
  for (const Range& range : compute::used_gradients(layout, comm.rank(), comm.size())) {
    for (std::size_t i = range.begin; i < range.end; ++i) used[i] = true;
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!used[i] && gradients[i] != kMark) return false;
  }
  return true;
}

class ShardedDenseLayers : public ::testing::TestWithParam<BackendUnderTest> {
 protected:
  struct OfRank {
    Outcome trained, evaluated;
  };

  /// What every rank computed; other ranks' shards of its gradients are cleared.
  std::vector<OfRank> run(const Samples& samples, const std::vector<int>& micro_batches, int ranks,
                          int units) {
    std::map<int, OfRank> outcomes;
    std::mutex mutex;
    int images = 0;
    for (const int count : micro_batches) images += count;
    threads::run_ranks(ranks, [&](comm::Communicator& comm) {
      const auto backend = GetParam().make();
      const Shares own = shares_of(samples, micro_batches, comm.rank(), ranks);
      Trial trial(*backend, sharded_network(units), sizes_of(own.pieces), compute::Phase::train,
                  nullptr, &comm);
      compute::Memory& memory = backend->memory();
      compute::write_numbers(memory, std::vector<double>(trial.gradients().size, kMark),
                             trial.gradients());
      OfRank outcome;
      outcome.evaluated = trial.evaluate(own.samples, own.pieces);
      outcome.trained = trial.train(own.samples, own.pieces, 0, images);
      const compute::ParameterLayout& layout = trial.program().layout();
      auto gradients = compute::read_numbers(memory, trial.gradients());
      EXPECT_TRUE(marks_stay(gradients, layout, comm));
      for (const compute::Parameter& parameter : compute::sharded_parameters(layout)) {
        const Range shard = compute::shard_of(parameter, comm.rank(), ranks);
        for (std::size_t i = parameter.range.begin; i < parameter.range.end; ++i) {
          if (i < shard.begin || i >= shard.end) gradients[i] = 0;
        }
      }
      compute::write_numbers(memory, gradients, trial.gradients());
      for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
        outcome.trained.gradients[p] =
            trial.program().parameters().to_canonical(p, trial.gradients());
      }
      const std::lock_guard lock(mutex);
      outcomes.emplace(comm.rank(), std::move(outcome));
    });
    std::vector<OfRank> list;
    for (auto& [rank, outcome] : outcomes) list.push_back(std::move(outcome));
    return list;
  }

  void expect_gradients_of_plain_ones(const std::vector<int>& micro_batches, int units) {
    if (!GetParam().runs(sharded_network(units))) {
      return expect_refusal(GetParam(), sharded_network(units));
    }
    int images = 0;
    for (const int count : micro_batches) images += count;
    const Samples samples = make_images(images, kImage, kClasses);
    const auto reference = reference::make_reference_backend(DType::f64);
    Trial whole(*reference, network(units), {images});
    const Outcome expected = whole.train(samples, {images});
    const Outcome evaluated = whole.evaluate(samples, {images});
    for (const int ranks : {1, 2, 3, 4, 7}) {
      double loss = 0, evaluated_loss = 0;
      std::vector<std::vector<double>> sums(expected.gradients.size());
      for (const OfRank& of_rank : run(samples, micro_batches, ranks, units)) {
        loss += of_rank.trained.tally.loss;
        evaluated_loss += of_rank.evaluated.tally.loss;
        for (std::size_t p = 0; p < sums.size(); ++p) {
          sums[p].resize(expected.gradients[p].size());
          for (std::size_t i = 0; i < sums[p].size(); ++i) {
            sums[p][i] += of_rank.trained.gradients[p][i];
          }
        }
      }
      EXPECT_NEAR(loss, expected.tally.loss, GetParam().tolerance * loss) << ranks;
      EXPECT_NEAR(evaluated_loss, evaluated.tally.loss, GetParam().tolerance * loss) << ranks;
      for (std::size_t p = 0; p < sums.size(); ++p) {
        EXPECT_LE(relative_distance(sums[p], expected.gradients[p]), 10 * GetParam().tolerance)
            << whole.program().layout().parameters[p].name << " on " << ranks << " ranks";
      }
    }
  }
};

TEST_P(ShardedDenseLayers, MakeTheGradientsOfPlainOnes) {
  for (const std::vector<int>& micro_batches :
       std::vector<std::vector<int>>{{5}, {6, 3, 6}, {2, 1}}) {
    expect_gradients_of_plain_ones(micro_batches, kFewUnits);
  }
}

TEST_P(ShardedDenseLayers, MakeThemWhereZerosAreSkipped) {
  expect_gradients_of_plain_ones({3, 2}, kManyUnits);
}

INSTANTIATE_TEST_SUITE_P(AllBackends, ShardedDenseLayers,
                         ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::sharded_dense_test
