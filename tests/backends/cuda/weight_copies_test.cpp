// Copies of weights that products read: made when weights have changed, whoever changed them.
#include "backends/cuda/weight_copies.h"

#include "backends/cuda/backend.h"
#include "backends/cuda/memory.h"
#include "compute/memory.h"
#include "emulated/counts.h"
#include "model/graph.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

constexpr std::size_t kWeights = 96;

/// A backend with weights and their copy.
class Copied : public ::testing::TestWithParam<Numbers> {
 protected:
  Copied()
      : backend_(make_device_backend()),
        memory_(dynamic_cast<DeviceMemory&>(backend_->memory())),
        weights_(memory_, kWeights, DType::f32),
        other_(memory_, kWeights, DType::f32),
        copy_(memory_.weight_copies(), GetParam()) {
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
    const Array& arena = weights_.array();
    const void* const copy = copy_.of(arena, arena.as<float>().data());
    copy_.renew(test_stream().get());
    std::vector<std::byte> bytes(kWeights * stored_bytes(GetParam()));
    copy_async(bytes.data(), copy, bytes.size(), test_stream().get());
    test_stream().synchronize();
    return loaded(GetParam(), bytes);
  }

  /// How often the copy is made anew for the next pass.
  std::uint64_t renewals() { return renewals(copy_); }
  static std::uint64_t renewals(WeightCopy& copy) {
    const emulated::Counts before = emulated::counts();
    copy.renew(test_stream().get());
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
  WeightCopy copy_;
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

/// Of slices that begin on 16 bytes, and of one that does not.
TEST_P(Copied, AreWrittenByUpdates) {
  const Array weights = weights_.array(), gradients = other_.array();
  WeightCopy another(memory_.weight_copies(), GetParam());
  static_cast<void>(another.of(weights, weights.as<float>().data()));
  for (const std::size_t first : {16u, 17u}) {
    another.renew(test_stream().get());
    const auto update = backend_->make_update(
        {optim::Sgd{},
         {{weights.slice(first, first + 20), gradients.slice(first, first + 20)},
          {weights.slice(48, 90), gradients.slice(48, 90)}}});
    expect_follows("updated", [&] {
      update->apply({optim::Sgd{}, 1});
      EXPECT_EQ(renewals(), 0u);
    });
    EXPECT_EQ(renewals(another), 1u) << "that of another program is stale";
  }
}

TEST_P(Copied, AreNotMadeAnewForOtherArrays) {
  const Array weights = weights_.array(), other = other_.array();
  write(random_floats(kWeights, 4), other);
  memory_.copy(weights.data, other.data, weights.bytes().size());
  const Array summands[] = {weights, other};
  backend_->sum(summands, other);
  EXPECT_EQ(renewals(), 0u);
}

TEST(WeightCopy, OfExactIsTheWeights) {
  WeightCopies all;
  WeightCopy copy(all, Numbers::exact);
  std::vector<float> weights(kWeights);
  const Array arena = Array::of(std::span(weights));
  EXPECT_EQ(copy.of(arena, weights.data() + 5), weights.data() + 5);
  compute::ParameterLayout layout;
  layout.arena_size = kWeights;
  EXPECT_EQ(copy.bytes(layout), 0u);
  EXPECT_EQ(WeightCopy(all, Numbers::tf32).bytes(layout), kWeights * 4);
  EXPECT_EQ(WeightCopy(all, Numbers::bf16).bytes(layout), kWeights * 2);
}

/// Bytes of a program of one large dense layer, which has hardly any activations.
std::size_t program_bytes(Numbers numbers) {
  model::Graph graph(Shape{16, 16, 3});
  graph.add(model::Flatten{});
  graph.add(model::Dense{512});
  graph.add(model::SoftmaxCrossEntropy{});
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
