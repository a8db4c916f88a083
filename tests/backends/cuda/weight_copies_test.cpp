// Copies of weights that products read: made when weights have changed, whoever changed them.
#include "backends/cuda/weight_copies.h"

#include "backends/cuda/backend.h"
#include "backends/cuda/memory.h"
#include "compute/memory.h"
#include "core/error.h"
#include "emulated/counts.h"
#include "model/graph.h"
#include "tests/backends/cuda/device_arrays.h"
#include "tests/backends/trial.h"
#include "tests/support/refusal.h"

namespace cputrain::cuda {
namespace {

constexpr std::size_t kWeights = 96;

/// A backend with weights and their copy.
class Copied : public ::testing::TestWithParam<Numbers> {
 protected:
  Copied()
      : backend_(make_device_backend({.numbers = GetParam()})),
        memory_(dynamic_cast<DeviceMemory&>(backend_->memory())),
        weights_(memory_, kWeights, DType::f32),
        other_(memory_, kWeights, DType::f32),
        copy_(*memory_.weight_copies().find(weights_.array().data)) {
    for (const auto& array : {weights_.array(), other_.array()}) {
      write(random_floats(kWeights, 1), array);
    }
    static_cast<void>(copied());
  }

  void write(const std::vector<float>& values, const Array& array) {
    memory_.write(std::as_bytes(std::span(values)), array.data);
  }
  std::vector<float> weights() {
    std::vector<float> values(kWeights);
    memory_.read(weights_.array().data, std::as_writable_bytes(std::span(values)));
    return values;
  }

  /// What products of the next pass find.
  std::vector<float> copied() {
    const void* const copy = copy_.of(weights_.array().as<float>().data());
    copy_.renew(test_stream().get());
    std::vector<std::byte> bytes(kWeights * stored_bytes(GetParam()));
    copy_async(bytes.data(), copy, bytes.size(), test_stream().get());
    test_stream().synchronize();
    return loaded(GetParam(), bytes);
  }

  /// How often the copy is made anew for the next pass.
  std::uint64_t renewals() {
    const emulated::Counts before = emulated::counts();
    copy_.renew(test_stream().get());
    test_stream().synchronize();
    return difference(emulated::counts(), before).kernels["round_numbers"].launches;
  }

  /// A change of weights is found in the copy, which is made once for it.
  template <class Change>
  void expect_follows(const char* what, const Change& change) {
    SCOPED_TRACE(what);
    const std::vector<float> before = weights();
    change();
    const std::vector<float> now = weights();
    EXPECT_NE(now, before);
    expect_same_values(copied(), rounded(GetParam(), now));
    EXPECT_EQ(renewals(), 0u);
  }

  std::unique_ptr<compute::Backend> backend_;
  DeviceMemory& memory_;
  compute::OwnedArray weights_, other_;
  WeightCopy& copy_;
};

INSTANTIATE_TEST_SUITE_P(Numbers, Copied, ::testing::Values(Numbers::tf32, Numbers::bf16),
                         [](const auto& test) { return word_of(test.param); });

TEST_P(Copied, FollowTheirWeights) {
  const Array weights = weights_.array(), other = other_.array();
  const std::vector<float> numbers = random_floats(kWeights, 2), few = random_floats(3, 3);
  expect_follows("written", [&] { write(numbers, weights); });
  expect_follows("written in part", [&] { write(few, weights.slice(90, 93)); });
  expect_follows("written now", [&] {
    memory_.write_now(std::as_bytes(std::span(few)), weights.slice(0, 3).data);
  });
  expect_follows("copied", [&] { memory_.copy(other.data, weights.data, weights.bytes().size()); });
  const Array summands[] = {weights, other};
  expect_follows("summed", [&] { backend_->sum(summands, weights); });
}

/// Copies of slices that begin on 16 bytes, and of one that does not.
TEST_P(Copied, AreWrittenByUpdates) {
  const Array weights = weights_.array(), gradients = other_.array();
  for (const std::size_t first : {16u, 17u}) {
    const auto update = backend_->make_update(
        {optim::Sgd{},
         {{weights.slice(first, first + 20), gradients.slice(first, first + 20)},
          {weights.slice(48, 90), gradients.slice(48, 90)}}});
    expect_follows("updated", [&] {
      update->apply({optim::Sgd{}, 1});
      EXPECT_EQ(renewals(), 0u);
    });
    // An update writes no more than its own.
    expect_follows("written and updated", [&] {
      write(random_floats(2, 5), weights.slice(0, 2));
      update->apply({optim::Sgd{}, 1});
    });
  }
}

TEST_P(Copied, HaveNoUpdatesOfTwoArenas) {
  const Array weights = weights_.array(), other = other_.array();
  EXPECT_THROW(backend_->make_update({optim::Sgd{}, {{weights, other}, {other, weights}}}), Error);
}

TEST_P(Copied, AreNotMadeAnewForOtherArrays) {
  const Array weights = weights_.array(), other = other_.array();
  write(random_floats(kWeights, 4), other);
  memory_.copy(weights.data, other.data, weights.bytes().size());
  const Array summands[] = {weights, other};
  backend_->sum(summands, other);
  EXPECT_EQ(renewals(), 0u);
}

constexpr Shape kView{6, 6, 3};
constexpr int kFew = 3, kKinds = 8;
constexpr double kRate = 0.3;

model::Graph products() {
  model::Graph graph(kView);
  graph.add(model::Convolution{8, 3}, "conv");
  graph.add(model::Flatten{});
  graph.add(model::Dense{kKinds}, "dense");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

/// Programs for training and for evaluation of one arena.
class ProgramsOfAnArena : public ::testing::TestWithParam<Numbers> {
 protected:
  using Values = std::vector<float>;

  std::unique_ptr<compute::Program> compile(compute::Phase phase,
                                            const compute::Arenas* arenas = nullptr) {
    return backend_->compile(
        products(), {phase, {kFew}}, [&](const compute::ParameterLayout& layout) {
          if (arenas) return *arenas;
          weights_ = compute::OwnedArray(memory(), layout.arena_size, layout.dtype);
          gradients_ = compute::OwnedArray(memory(), layout.gradient_size, layout.dtype);
          write_weights(seed_++);
          return compute::Arenas{weights_.array(), gradients_.array()};
        });
  }
  std::unique_ptr<compute::Program> compile_beside(compute::Phase phase) {
    const compute::Arenas arenas{weights_.array(), gradients_.array()};
    return compile(phase, &arenas);
  }

  compute::Memory& memory() { return backend_->memory(); }
  void write_weights(unsigned seed) {
    const Values values = random_floats(weights_.array().size, seed, -0.1f, 0.1f);
    memory().write(std::as_bytes(std::span(values)), weights_.array().data);
  }
  /// The update by the whole arena of gradients.
  std::unique_ptr<compute::Update> make_update() {
    const Array gradients = gradients_.array();
    return backend_->make_update(
        {optim::Sgd{}, {{weights_.array().slice(0, gradients.size), gradients}}});
  }

  void forward(compute::Program& program, compute::Phase phase) {
    std::vector<const std::uint8_t*> images;
    for (const auto& image : samples_.images) images.push_back(image.data());
    program.forward({images, samples_.labels, samples_.samples}, {phase, 1, 0, true});
  }
  void train(compute::Program& program, compute::Update& update) {
    forward(program, compute::Phase::train);
    const compute::StepUpdate of_step{&update, {optim::Sgd{}, kRate}};
    program.backward({.loss_scale = 1, .update = &of_step});
  }
  Values evaluate(compute::Program& program) {
    forward(program, compute::Phase::evaluate);
    const auto probabilities = program.probabilities();
    return {probabilities.begin(), probabilities.end()};
  }
  /// What a program gives that has read no weights before.
  Values expected() {
    const Array old = weights_.array();
    compute::OwnedArray weights(memory(), old.size, old.dtype);
    memory().copy(old.data, weights.array().data, old.bytes().size());
    const compute::Arenas arenas{weights.array(), {}};
    return evaluate(*compile(compute::Phase::evaluate, &arenas));
  }

  std::unique_ptr<compute::Backend> backend_ = make_device_backend({.numbers = GetParam()});
  testing::Samples samples_ = testing::make_images(kFew, kView, kKinds);
  unsigned seed_ = 1;
  compute::OwnedArray weights_, gradients_;
};

INSTANTIATE_TEST_SUITE_P(Numbers, ProgramsOfAnArena, ::testing::ValuesIn(kAllNumbers),
                         [](const auto& test) { return word_of(test.param); });

/// Weights change by an update in a pass, in a graph and not, and by others.
TEST_P(ProgramsOfAnArena, EvaluateTheWeightsOfNow) {
  const auto trained = compile(compute::Phase::train);
  const auto evaluated = compile_beside(compute::Phase::evaluate);
  const auto update = make_update();
  Values before = evaluate(*evaluated);
  const auto expect_now = [&](const char* what) {
    SCOPED_TRACE(what);
    const Values now = evaluate(*evaluated);
    expect_same_values(now, expected());
    EXPECT_NE(std::exchange(before, now), now);
  };
  for (int step = 0; step < 4; ++step) {
    train(*trained, *update);
    expect_now("a step");
  }
  write_weights(9);
  expect_now("written");
  train(*trained, *update);
  update->apply({optim::Sgd{}, kRate});
  expect_now("updated behind a pass");
}

TEST_P(ProgramsOfAnArena, ShareACopy) {
  const auto taken_by = [&](compute::Program& program) {
    const std::size_t before = *memory().available();
    evaluate(program);
    return before - *memory().available();
  };
  const auto first = compile(compute::Phase::evaluate);
  const auto second = compile_beside(compute::Phase::evaluate);
  const std::size_t of_first = taken_by(*first), of_second = taken_by(*second);
  const std::size_t copy = weights_.array().size * stored_bytes(GetParam());
  EXPECT_EQ(of_first - of_second, GetParam() == Numbers::exact ? 0 : copy);
}

/// The memory of an arena may be another's, later.
TEST_P(ProgramsOfAnArena, MayGoBeforeTheirArenaOrAfterIt) {
  auto first = compile(compute::Phase::evaluate);
  const Values before = evaluate(*first);
  first.reset();
  first = compile_beside(compute::Phase::evaluate);
  expect_same_values(evaluate(*first), before);
  weights_ = {};
  for (int arena = 0; arena < 3; ++arena) {
    const auto next = compile(compute::Phase::evaluate);
    expect_same_values(evaluate(*next), expected());
    weights_ = {};
  }
}

TEST_P(ProgramsOfAnArena, HaveNoUpdatesOfAnotherInAPass) {
  const auto first = compile(compute::Phase::train);
  const auto update = make_update();
  const compute::OwnedArray weights = std::move(weights_), gradients = std::move(gradients_);
  const auto second = compile(compute::Phase::train);
  const std::string text = testing::refused(ExitCode::internal, [&] { train(*second, *update); });
  EXPECT_NE(text.find("update of other weights"), std::string::npos);
}

/// Where a block was, another one of another size may be, whose weights nobody has rounded.
TEST(WeightCopies, GoWithTheirBlocks) {
  const std::vector<std::byte> bytes(256);
  const std::span<const std::byte> small = std::span(bytes).subspan(64, 64), large(bytes);
  WeightCopies copies(Numbers::bf16);
  EXPECT_EQ(copies.find(&small.front()), nullptr);
  copies.add(small);
  EXPECT_NE(copies.find(&small.front()), nullptr);
  EXPECT_EQ(copies.find(&small[20]), copies.find(&small.back()));
  EXPECT_EQ(copies.find(&bytes[63]), nullptr);
  EXPECT_EQ(copies.find(&bytes[128]), nullptr);
  copies.remove(small);
  EXPECT_EQ(copies.find(&small.front()), nullptr);
  copies.add(large);
  EXPECT_EQ(copies.find(&bytes[128]), copies.find(&large.front()));
  copies.remove(large);
}

TEST(WeightCopy, OfExactIsTheWeights) {
  const std::vector<float> weights(kWeights);
  WeightCopy copy(Numbers::exact, std::as_bytes(std::span(weights)));
  EXPECT_EQ(copy.of(weights.data() + 5), weights.data() + 5);
  EXPECT_EQ(WeightCopies(Numbers::exact).bytes(kWeights), 0u);
  EXPECT_EQ(WeightCopies(Numbers::tf32).bytes(kWeights), kWeights * 4);
  EXPECT_EQ(WeightCopies(Numbers::bf16).bytes(kWeights), kWeights * 2);
}

/// Bytes of a program of one large dense layer, which has hardly any activations.
std::size_t program_bytes(Numbers numbers) {
  model::Graph graph(Shape{16, 16, 3});
  testing::add_layers(graph, model::Flatten{}, model::Dense{512}, model::SoftmaxCrossEntropy{});
  const auto backend = make_device_backend({.numbers = numbers});
  compute::OwnedArray weights;
  const auto program = backend->compile(
      graph, {compute::Phase::evaluate, {1}}, [&](const compute::ParameterLayout& layout) {
        weights = compute::OwnedArray(backend->memory(), layout.arena_size, layout.dtype);
        return compute::Arenas{weights.array(), {}};
      });
  return program->workspace_bytes();
}

/// Numbers of exact and of tf32 are as large, so the copy is what is new.
TEST(WeightCopy, CountsAsMemoryOfItsProgram) {
  constexpr double kLayer = 16.0 * 16 * padded_channels(3) * 512;
  const auto bytes = [](Numbers numbers) { return static_cast<double>(program_bytes(numbers)); };
  EXPECT_NEAR(bytes(Numbers::tf32) - bytes(Numbers::exact), kLayer * 4, kLayer / 100);
}

}  // namespace
}  // namespace cputrain::cuda
