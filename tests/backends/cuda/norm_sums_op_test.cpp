// Whose kernels make the sums of batch norms.
#include <gtest/gtest.h>

#include "backends/cuda/backend.h"
#include "emulated/counts.h"
#include "model/rewrite.h"
#include "tests/backends/trial.h"

namespace cputrain::cuda::norm_sums_op_test {
namespace {

using model::BatchNorm, model::Convolution, model::Dropout, model::MaxPool, model::Relu;

constexpr Shape kImageOfTrial{9, 11, 3};
/// Products with so little depth have no slices.
const Convolution kNarrow{.filters = 12, .kernel = 1};

/// Launches of kernels that read maps for their sums, in a training step of one micro-batch.
struct Reads {
  std::uint64_t moments, slopes;
  bool operator==(const Reads&) const = default;
};
std::ostream& operator<<(std::ostream& to, const Reads& reads) {
  return to << reads.moments << " for moments, " << reads.slopes << " for slopes";
}

Reads reads_of(const model::Graph& graph, Numbers numbers) {
  const auto backend = make_device_backend({.numbers = numbers});
  testing::Trial trial(*backend, graph, {4});
  const emulated::Counts before = emulated::counts();
  trial.train(testing::make_images(4, kImageOfTrial, testing::kTrialClasses), {4});
  auto made = difference(emulated::counts(), before);
  return {made.kernels["measure_channels"].launches, made.kernels["sum_slopes"].launches};
}

template <class... Layers>
model::Graph with_head(const Layers&... layers) {
  return testing::graph_of(kImageOfTrial, layers..., model::GlobalAveragePool{},
                           model::Dense{testing::kTrialClasses}, model::SoftmaxCrossEntropy{});
}

TEST(SumsOfNorms, AreMadeByTheProductsBesideThem) {
  for (const Numbers numbers : {Numbers::exact, Numbers::tf32, Numbers::bf16}) {
    EXPECT_EQ(reads_of(with_head(kNarrow, BatchNorm{}, Relu{}, kNarrow), numbers), (Reads{0, 0}));
    EXPECT_EQ(reads_of(with_head(kNarrow, BatchNorm{}, kNarrow), numbers), (Reads{0, 0}));
  }
}

TEST(SumsOfNorms, OfAShortcutAreMadeByTheProductThatAddsIt) {
  model::Graph graph(kImageOfTrial);
  const int trunk = graph.add(kNarrow);
  graph.add(kNarrow);
  const int residual = graph.add(kNarrow);
  graph.add(model::Add{}, "", {trunk, residual});
  testing::add_layers(graph, BatchNorm{}, Relu{}, kNarrow, model::GlobalAveragePool{},
                      model::Dense{testing::kTrialClasses}, model::SoftmaxCrossEntropy{});
  EXPECT_EQ(reads_of(graph, Numbers::bf16), (Reads{0, 0}));
}

TEST(SumsOfNorms, AreReadFromMapsWhereNoProductCanMakeThem) {
  const auto reads = [](const auto&... layers) {
    return reads_of(with_head(layers...), Numbers::bf16);
  };
  Convolution strided = kNarrow;
  strided.stride = 2;
  EXPECT_EQ(reads(kNarrow, BatchNorm{}, Relu{}, strided), (Reads{0, 1}));
  EXPECT_EQ(reads(kNarrow, BatchNorm{}, Relu{}, MaxPool{}), (Reads{0, 1}));
  EXPECT_EQ(reads(kNarrow, BatchNorm{}, Relu{}, Dropout{0.2f}, kNarrow), (Reads{0, 1}));
  EXPECT_EQ(reads(kNarrow, MaxPool{}, BatchNorm{}, Relu{}, kNarrow), (Reads{1, 0}));
  // A dense layer reads a map as one position.
  EXPECT_EQ(reads_of(testing::graph_of(kImageOfTrial, kNarrow, BatchNorm{}, Relu{},
                                       model::Dense{testing::kTrialClasses},
                                       model::SoftmaxCrossEntropy{}),
                     Numbers::bf16),
            (Reads{0, 1}));
}

TEST(SumsOfNorms, AreNotMadeOfWhatDoesNotLearn) {
  const model::Graph graph = with_head(kNarrow, BatchNorm{}, Relu{}, kNarrow);
  const std::string frozen[] = {graph.nodes()[2].name};
  EXPECT_EQ(reads_of(model::with_frozen(graph, frozen), Numbers::bf16), (Reads{0, 0}));
}

}  // namespace
}  // namespace cputrain::cuda::norm_sums_op_test
