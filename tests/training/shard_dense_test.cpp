// Which rows of a dense layer's kernel are whose, and when it pays to have it so.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/reference/reference_backend.h"
#include "compute/parameters/parameters.h"
#include "core/error.h"
#include "model/model_json.h"
#include "model/rewrite.h"
#include "training/plan/training_memory.h"
#include "training/plan/training_plan.h"
#include "training/session/session.h"

namespace cputrain::training {
namespace {

model::Graph network() {
  model::Graph graph(Shape{4, 4, 3});
  graph.add(model::Convolution{2, 3});
  graph.add(model::Flatten{});
  graph.add(model::Dense{6});
  graph.add(model::Dense{1});
  graph.add(model::SigmoidCrossEntropy{});
  return graph;
}

model::Graph sharded() {
  const std::vector<std::string> layers{"dense"};
  return model::with_sharded_dense(network(), layers);
}

TEST(Shards, AreWholeRowsAndTogetherTheKernel) {
  const compute::ParameterLayout layout = compute::lay_out(sharded(), DType::f32);
  const auto kernels = compute::sharded_parameters(layout);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "dense/kernel");
  EXPECT_EQ(kernels[0].row, 6u);
  for (const int ranks : {1, 2, 3, 7, 8, 9, 96}) {
    std::size_t position = kernels[0].range.begin;
    for (int local = 0; local < ranks; ++local) {
      const Range shard = compute::shard_of(kernels[0], local, ranks);
      EXPECT_EQ(shard.begin, position);
      EXPECT_EQ(shard.size() % 6, 0u);
      EXPECT_LE(shard.size(), (8 / ranks + 1) * 6u);
      position = shard.end;
    }
    EXPECT_EQ(position, kernels[0].range.end);
  }
}

TEST(Shards, OthersAreAllThatARankDoesNotUse) {
  const compute::ParameterLayout layout = compute::lay_out(sharded(), DType::f32);
  const Range kernel = compute::sharded_parameters(layout)[0].range;
  const auto own =
      compute::shard_of(compute::sharded_parameters(layout)[0], 1, 4);  // rows 2 and 3 of 8
  EXPECT_EQ(own, (Range{kernel.begin + 12, kernel.begin + 24}));
  EXPECT_EQ(compute::used_gradients(layout, 1, 4),
            (std::vector<Range>{{0, kernel.begin}, own, {kernel.end, layout.gradient_size}}));
  EXPECT_EQ(compute::used_gradients(layout, 0, 1), (std::vector<Range>{{0, layout.gradient_size}}));
  EXPECT_EQ(compute::used_gradients(compute::lay_out(network(), DType::f32), 1, 4),
            (std::vector<Range>{{0, layout.gradient_size}}));
}

/// Containers of a machine share the arenas, whatever limit each of them has.
TEST(Shards, AreThoseOfTheNodeWhereAControlGroupHasSomeOfItsRanks) {
  const Services services{};
  Session session{.services = services, .communicator = nullptr};
  session.nodes.ranks = {{0, 1, 2, 3}};
  session.backend = reference::make_reference_backend(DType::f32);
  const compute::ParameterLayout layout = compute::lay_out(sharded(), DType::f32);
  const TrainingPlan plan{.spec = {},
                          .classes = 1,
                          .graph = sharded(),
                          .micro_batch = 1,
                          .usual_images = 1,
                          .chunks = {},
                          .sharded = {"dense"}};
  constexpr std::size_t kOfOthers = 6 * 6;  // numbers: six of eight rows
  const auto refused = [&](std::vector<int> ranks, std::size_t bytes) {
    try {
      check_arenas(session, plan, {{.host = "a", .ranks = std::move(ranks), .available = bytes}},
                   layout);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return true;
    }
  };
  for (const std::vector<int>& ranks : {std::vector{0}, {1, 2, 3}, {0, 1, 2, 3}}) {
    const std::size_t gradients = ranks.size() * (layout.gradient_size - kOfOthers);
    const std::size_t least = (layout.arena_size + gradients) * sizeof(float);
    EXPECT_FALSE(refused(ranks, least)) << ranks.size();
    EXPECT_TRUE(refused(ranks, least - 1)) << ranks.size();
  }
}

TEST(Shards, ChangeNeitherNamesNorTheDescription) {
  EXPECT_EQ(model::to_json(sharded()), model::to_json(network()));
  EXPECT_EQ(sharded().parameter_count(), network().parameter_count());
  EXPECT_TRUE(model::has_sharded_dense(sharded()));
  EXPECT_FALSE(model::has_sharded_dense(network()));
  const std::vector<std::string> frozen{"dense"};
  EXPECT_TRUE(compute::sharded_parameters(
                  compute::lay_out(model::with_frozen(sharded(), frozen), DType::f32))
                  .empty());
}

// Bytes by hand for the paper's first dense layer, 25088 x 512: 4 x 12.8 M numbers saved for every
// rank but one, 4 x 25088 and 3 x 512 a rank more for every image.
TEST(Shards, PayWhereFewerBytesMove) {
  EXPECT_FALSE(sharding_pays(25088, 512, 1, 32));
  EXPECT_FALSE(sharding_pays(25088, 512, 2, 64)) << "waits cost more than is saved";
  EXPECT_TRUE(sharding_pays(25088, 512, 3, 64));
  EXPECT_TRUE(sharding_pays(25088, 512, 96, 1024));
  // 102.76 M against n * 104,960 with three ranks: up to 979 images at once
  EXPECT_TRUE(sharding_pays(25088, 512, 3, 979));
  EXPECT_FALSE(sharding_pays(25088, 512, 3, 980));
  EXPECT_FALSE(sharding_pays(512, 1, 96, 128));
  EXPECT_FALSE(sharding_pays(1024, 1023, 96, 1)) << "less than 2^20 weights";
  // 778 M saved against 912 M: the partial sums of ResNet's last layer
  EXPECT_FALSE(sharding_pays(2048, 1000, 96, 3072));
}

}  // namespace
}  // namespace cputrain::training
