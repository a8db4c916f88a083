// Where arrays lie: the host's memory, and a memory that the host cannot touch, which proves that
// it cannot.
#include "compute/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>

#include "backends/reference/reference_backend.h"
#include "compute/program.h"
#include "core/error.h"
#include "tests/backends/backends_under_test.h"
#include "tests/backends/trial.h"
#include "tests/support/in_a_child.h"
#include "tests/support/locked_backend.h"
#include "tests/support/refusal.h"

namespace cputrain::testing::memory_test {
namespace {

struct Kind {
  std::string name;
  std::function<std::shared_ptr<compute::Memory>()> make;
};

class Memories : public ::testing::TestWithParam<Kind> {
 protected:
  std::shared_ptr<compute::Memory> memory_ = GetParam().make();
};

std::vector<double> counted(std::size_t count) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.0);
  return numbers;
}

TEST_P(Memories, GiveZerosOnACacheLine) {
  for (const std::size_t size : {1u, 17u, 100'000u}) {
    const compute::OwnedArray array(*memory_, size, DType::f32);
    EXPECT_EQ(array.bytes(), 4 * size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.array().data) % 64, 0u);
    EXPECT_EQ(compute::read_numbers(*memory_, array.array()), std::vector<double>(size));
  }
  EXPECT_EQ(compute::OwnedArray(*memory_, 0, DType::f64).array().size, 0u);
}

TEST_P(Memories, KeepWhatIsWrittenAndCopied) {
  const compute::OwnedArray a(*memory_, 1000, DType::f64), b(*memory_, 1000, DType::f64);
  compute::write_numbers(*memory_, counted(1000), a.array());
  memory_->copy(a.array().slice(3, 503).data, b.array().slice(500, 1000).data, 500 * 8);
  const auto numbers = compute::read_numbers(*memory_, b.array());
  EXPECT_EQ(numbers[499], 0);
  EXPECT_EQ(numbers[500], 4);
  EXPECT_EQ(numbers[999], 503);
  EXPECT_EQ(compute::read_numbers(*memory_, a.array()), counted(1000));
}

TEST_P(Memories, RoundWhatIsKeptAsFloat) {
  const compute::OwnedArray array(*memory_, 3, DType::f32);
  compute::write_numbers(*memory_, std::vector<double>{1.0 + 0x1p-24, 0x1p-150 * 1.5, -3},
                         array.array());
  EXPECT_EQ(compute::read_numbers(*memory_, array.array()), (std::vector<double>{1, 0x1p-149, -3}));
}

// By FNV-1a in a few lines of Python.
TEST_P(Memories, HashesOfBytes) {
  const compute::OwnedArray three(*memory_, 3, DType::f64);
  compute::write_numbers(*memory_, std::vector<double>{1.0, -2.5, 1e300}, three.array());
  EXPECT_EQ(compute::hash_of(*memory_, three.array()), 0xa349cf692ab2f53au);
  const std::size_t size = 4'194'309;  // two pieces and five numbers
  ASSERT_EQ(size, 2 * compute::piece_elements(DType::f32) + 5);
  const compute::OwnedArray large(*memory_, size, DType::f32);
  std::vector<double> numbers(size);
  for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<double>(i % 251);
  compute::write_numbers(*memory_, numbers, large.array());
  EXPECT_EQ(compute::hash_of(*memory_, large.array()), 0x0e90a75b4e199c28u);
  EXPECT_EQ(compute::hash_of(*memory_, large.array().slice(0, 0)), 0xcbf29ce484222325u);
}

TEST_P(Memories, AreReadInPiecesThatAreTheWhole) {
  const std::size_t size = 2 * compute::piece_elements(DType::f32) + 5;
  const compute::OwnedArray array(*memory_, size, DType::f32);
  compute::write_numbers(*memory_, counted(size), array.array());  // exact in float up to 2^24
  std::size_t pieces = 0, next = 0;
  compute::read_in_pieces(*memory_, array.array(), [&](const Array& piece) {
    ++pieces;
    EXPECT_EQ(piece.data == array.array().data, memory_->is_host());
    for (const float value : piece.as<float>()) ASSERT_EQ(value, static_cast<float>(++next));
  });
  EXPECT_EQ(next, size);
  EXPECT_EQ(pieces, memory_->is_host() ? 1u : 3u);
}

std::vector<Kind> kinds() {
  std::vector<Kind> list{{"host",
                          [] {
                            return std::shared_ptr<compute::Memory>(&compute::host_memory(),
                                                                    [](compute::Memory*) {});
                          }},
                         {"locked", [] { return std::make_shared<LockedMemory>(); }}};
  for (const BackendUnderTest& under_test : cuda_backends_under_test()) {
    list.push_back({under_test.name, [make = under_test.make] {
                      const std::shared_ptr<compute::Backend> backend = make();
                      return std::shared_ptr<compute::Memory>(backend, &backend->memory());
                    }});
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Memories, ::testing::ValuesIn(kinds()),
                         [](const auto& test) { return test.param.name; });

TEST(LockedMemory, GivesNoMoreThanItsRoom) {
  LockedMemory memory(1000);
  EXPECT_EQ(memory.available(), 1000u);
  auto block = memory.allocate(900);
  EXPECT_EQ(memory.available(), 100u);
  testing::refused(ExitCode::internal, [&] { memory.allocate(101); });
  block.reset();
  EXPECT_EQ(memory.available(), 1000u);
}

/// Whether a child process that does this ends by it.
template <class What>
bool is_deadly(What what) {
  return in_a_child([&] {
           what();
           return 0;
         }) != 0;
}

void touch(const Array& array) { static_cast<volatile std::byte*>(array.data)[0] = std::byte{1}; }

void look_at(const Array& array) {
  const std::byte seen = static_cast<const volatile std::byte*>(array.data)[0];
  static_cast<void>(seen);
}

constexpr Shape kImage{6, 6, 3};

model::Graph network() {
  return graph_of(kImage, model::Convolution{.filters = 2, .kernel = 3}, model::Relu{},
                  model::Flatten{}, model::Dense{2}, model::SoftmaxCrossEntropy{});
}

// Else the backend under test would let through what a device does not.
TEST(LockedBackend, ArraysAreDeadlyOutsideOfItsCalls) {
  const auto backend = make_locked_backend(reference::make_reference_backend(DType::f32));
  Trial trial(*backend, network(), {2});
  const Array weights = trial.weights(), gradients = trial.gradients();
  EXPECT_TRUE(is_deadly([&] { touch(weights); }));
  EXPECT_TRUE(is_deadly([&] { touch(gradients); }));
  EXPECT_TRUE(is_deadly([&] { look_at(weights); }));
  EXPECT_TRUE(is_deadly([&] { touch(weights.slice(weights.size - 1, weights.size)); }));
  EXPECT_FALSE(is_deadly([&] { compute::read_numbers(backend->memory(), weights); }));
  trial.train(make_images(2, kImage, 2), {2});
  EXPECT_TRUE(is_deadly([&] { touch(weights); }));  // locked again
  EXPECT_TRUE(is_deadly([&] { touch(gradients); }));
}

TEST(LockedBackend, ArraysAreDeadlyWhereBackwardCallsOut) {
  const auto backend = make_locked_backend(reference::make_reference_backend(DType::f32));
  Trial trial(*backend, network(), {2});
  const Samples samples = make_images(2, kImage, 2);
  const std::vector<const std::uint8_t*> images{samples.images[0].data(), samples.images[1].data()};
  trial.program().forward({images, samples.labels, samples.samples}, {compute::Phase::train, 1, 0});
  int calls = 0;
  const auto ready = [&](std::size_t, compute::Event*) {
    EXPECT_TRUE(is_deadly([&] { touch(trial.gradients()); }));
    ++calls;
  };
  trial.program().backward({.ready = ready});
  EXPECT_GT(calls, 0);
}

TEST(LockedBackend, KnowsOnlyArraysOfItsOwn) {
  const auto backend = make_locked_backend(reference::make_reference_backend(DType::f32));
  const auto other = make_locked_backend(reference::make_reference_backend(DType::f32));
  std::vector<float> of_host(100);
  EXPECT_THROW(backend->sum_of_squares(Array::of<float>(of_host)), std::logic_error);
  const compute::OwnedArray own(backend->memory(), 100, DType::f32),
      others(other->memory(), 100, DType::f32);
  EXPECT_EQ(backend->sum_of_squares(own.array()), 0);
  EXPECT_THROW(backend->sum_of_squares(others.array()), std::logic_error);
  EXPECT_THROW(backend->memory().copy(own.array().data, others.array().data, 8), std::logic_error);
  const Array too_long{own.array().data, 1u << 20, DType::f32};
  EXPECT_THROW(backend->sum_of_squares(too_long), std::logic_error);
  optim::UpdateSlice slice;
  slice.weights = own.array();
  slice.gradients = Array::of<float>(of_host);
  EXPECT_THROW(backend->make_update({optim::Sgd{}, {slice}}), std::logic_error);
}

// The same layout gives the same number, wherever it is looked at.
TEST(LockedBackend, HasTheLayoutOfTheBackendInIt) {
  const auto reference = reference::make_reference_backend(DType::f32);
  const auto locked = make_locked_backend(reference::make_reference_backend(DType::f32));
  Trial plain(*reference, network(), {2}), trial(*locked, network(), {2});
  EXPECT_EQ(compute::layout_fingerprint(trial.program(), locked->memory()),
            compute::layout_fingerprint(plain.program(), compute::host_memory()));
  EXPECT_EQ(compute::hash_of(locked->memory(), trial.weights()),
            compute::hash_of(compute::host_memory(), plain.weights()));
}

}  // namespace
}  // namespace cputrain::testing::memory_test
