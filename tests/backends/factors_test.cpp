#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/reference/reference_backend.h"
#include "compute/chunked_program.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"

/// Leaves whose dense gradients are left as factors: added up, they are the gradient that
/// `reference` finds for the whole batch, whatever the slices in which sums are formed.
namespace cputrain::testing::factors_test {
namespace {

constexpr Shape kImage{22, 22, 3};
constexpr int kClasses = 3;

model::Graph graph_with_dense() {
  model::Graph graph = graph_of(kImage, model::Convolution{.filters = 8, .kernel = 3},
                                model::MaxPool{}, model::Relu{}, model::Flatten{});
  graph.add(model::Dense{.units = 48}, "large");
  graph.add(model::Relu{});
  graph.add(model::Dense{kClasses}, "last");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

bool has_factors(const compute::Parameter& parameter) { return parameter.factors.has_value(); }

/// A leaf program's gradients of the images, formed slice by slice.
class Chunk {
 public:
  Chunk(compute::Backend& backend, const compute::ReproducibleChunks& chunks, int images)
      : backend_(backend), gradients_(static_cast<std::size_t>(chunks.lanes)) {
    program_ = compute::make_chunked_program(
        backend, graph_with_dense(), {.phase = compute::Phase::train, .micro_batches = {images}},
        chunks, [&](const compute::ParameterLayout& layout, int lane) {
          if (lane == 0) weights_ = zeros(layout.arena_size);
          auto& gradients = gradients_[static_cast<std::size_t>(lane)];
          gradients = zeros(layout.gradient_size);
          return compute::Arenas{weights_.array(), gradients.array()};
        });
    sum_ = zeros(program_->layout().gradient_size);
  }

  /// As if a leaf before had left something where this one writes nothing.
  void poison_products() {
    for (const compute::Parameter& parameter : program_->layout().parameters) {
      if (!parameter.factors) continue;
      const std::vector<double> poison(parameter.range.size(), NAN);
      for (const compute::OwnedArray& lane : gradients_) {
        compute::write_numbers(backend_.memory(), poison,
                               lane.array().slice(parameter.range.begin, parameter.range.end));
      }
    }
  }

  compute::Program& program() { return *program_; }
  const Array& weights() const { return weights_.array(); }
  /// What the last call of gradients() made.
  const Array& sum() const { return sum_.array(); }

  std::vector<double> gradients(const compute::MicroBatch& batch,
                                const std::vector<Range>& slices) {
    program_->forward(batch, {compute::Phase::train, 1, 0});
    program_->backward({1.0 / batch.size()});
    sum_ = zeros(program_->layout().gradient_size);
    for (const Range& slice : slices) add_slice(slice, sum());
    return compute::read_numbers(backend_.memory(), sum());
  }

 private:
  compute::OwnedArray zeros(std::size_t count) const {
    return {backend_.memory(), count, DType::f32};
  }

  void add_slice(Range slice, const Array& sum) {
    for (const compute::GradientPart& part : compute::parts_of(program_->layout(), slice)) {
      const Array dst = sum.slice(part.range.begin, part.range.end);
      const Range read = part.factored ? part.factored->range : part.range;
      std::vector<Array> terms;
      for (const compute::OwnedArray& lane : gradients_) {
        terms.push_back(lane.array().slice(read.begin, read.end));
      }
      if (part.factored) {
        backend_.add_products(*part.factored->factors, terms, part.of_product(), dst);
      } else {
        terms.insert(terms.begin(), dst);
        backend_.sum(terms, dst);
      }
    }
  }

  compute::Backend& backend_;
  compute::OwnedArray weights_, sum_;
  std::vector<compute::OwnedArray> gradients_;  ///< by lane
  std::unique_ptr<compute::Program> program_;
};

class FactorsOfChunks : public ::testing::TestWithParam<BackendUnderTest> {};

TEST_P(FactorsOfChunks, AddUpToTheGradient) {
  const auto backend = GetParam().make();
  if (backend->name() == "cuda") return;  // the exchange refuses it
  const auto reference = reference::make_reference_backend(DType::f64);
  for (const int images : {1, 4, 7, 8}) {
    const Samples samples = make_images(images, kImage, kClasses);
    Trial whole(*reference, graph_with_dense(), {images});
    const Outcome expected = whole.train(samples, {images});
    Chunk chunk(*backend, {.images = 4, .lanes = 2}, images);
    const compute::ParameterLayout& layout = chunk.program().layout();
    EXPECT_EQ(std::ranges::any_of(layout.parameters, has_factors), backend->name() == "cpu");
    for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
      chunk.program().parameters().from_canonical(
          p, whole.program().parameters().to_canonical(p, whole.weights()), chunk.weights());
    }
    std::vector<const std::uint8_t*> views;
    for (const auto& image : samples.images) views.push_back(image.data());
    const compute::MicroBatch batch{views, samples.labels, samples.samples};
    chunk.poison_products();
    const std::vector<double> sum = chunk.gradients(batch, {{0, layout.gradient_size}});
    for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
      EXPECT_LE(relative_distance(chunk.program().parameters().to_canonical(p, chunk.sum()),
                                  expected.gradients[p]),
                10 * GetParam().tolerance)
          << layout.parameters[p].name << ", " << images << " images";
    }
    const std::size_t cut = layout.gradient_size / 3 / 16 * 16;
    EXPECT_EQ(chunk.gradients(batch, {{0, cut}, {cut, cut + 16}, {cut + 16, layout.gradient_size}}),
              sum);
    // Exact in any order of summation.
    const double loss = chunk.program().tally().wait().loss;  // of two passes
    EXPECT_EQ(std::nearbyint(std::ldexp(loss, 22)), std::ldexp(loss, 22));
    EXPECT_NEAR(loss, 2 * expected.tally.loss, 10 * GetParam().tolerance * loss);
  }
}

/// The rows of x that its elements lie in, and all of diff_y.
TEST(Factors, OfWhichAPartNeedsItsRows) {
  constexpr std::size_t kImages = 3, kRows = 4, kColumns = 5, kX = 100, kY = kX + kRows * kImages;
  compute::Parameter parameter{};
  parameter.range = {kX, kX + kRows * kColumns};
  parameter.factors = {kImages, kRows, kColumns};
  for (std::size_t begin = 0; begin < kRows * kColumns; ++begin) {
    for (std::size_t last = begin; last < kRows * kColumns; ++last) {
      const compute::GradientPart part{{kX + begin, kX + last + 1}, &parameter};
      EXPECT_EQ(compute::needed_for(part),
                (std::vector<Range>{
                    {kX + begin / kColumns * kImages, kX + (last / kColumns + 1) * kImages},
                    {kY, kY + kImages * kColumns}}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, FactorsOfChunks, ::testing::ValuesIn(backends_under_test()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cputrain::testing::factors_test
