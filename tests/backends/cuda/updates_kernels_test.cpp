#include "backends/cuda/kernels/updates.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <string>

#include "exchange/compression/sixteen_bits.h"
#include "optim/update_math.h"
#include "tests/backends/cuda/device_arrays.h"

namespace cputrain::cuda {
namespace {

/// One element, in double.
struct Element {
  double weight, gradient, state[optim::kMaxStateArrays];
};

constexpr double kRate = 0.013;
constexpr std::uint64_t kStep = 4;  // the fifth

/// What is done to an element. What it comes to is what the host's loops make of it in double,
/// which tests/optim and tests/golden hold to the formulas.
struct Rule {
  const char* name;
  optim::UpdateRule rule;
  double decay;

  void operator()(Element& e) const {
    optim::update_elements<double>(
        rule, {&e.weight, &e.gradient, {&e.state[0], &e.state[1], &e.state[2]}, 1}, kRate, decay,
        kStep);
  }
};

std::vector<Rule> rules() {
  using optim::RmsProp, optim::Sgd;
  return {{"SGD", Sgd{}, 0},
          {"momentum", Sgd{.momentum = 0.9}, 0.02},
          {"Nesterov", Sgd{0.9, true}, 0},
          {"RMSProp", RmsProp{}, 0.02},
          {"RMSProp, momentum", RmsProp{.momentum = 0.5}, 0},
          {"RMSProp, centered", RmsProp{.centered = true}, 0},
          {"RMSProp, both", RmsProp{.momentum = 0.5, .centered = true}, 0.02},
          {"Adam", optim::Adam{}, 0},
          {"AdamW", optim::AdamW{}, 0.02},
          {"LARS", optim::Lars{}, 0},
          {"LAMB", optim::Lamb{}, 0}};
}

/// Where the arrays of a slice begin: so many elements behind a 16-byte boundary.
struct Shifts {
  std::size_t weights, gradients, state[optim::kMaxStateArrays];
};
constexpr Shifts kShifts[] = {
    {0, 0, {0, 0, 0}}, {1, 1, {1, 1, 1}}, {3, 0, {2, 1, 0}}, {0, 0, {1, 2, 3}}, {0, 1, {0, 0, 0}}};
constexpr std::size_t kSizes[] = {1, 7, 4097, 40001};
constexpr std::size_t kAround = 4;  // elements of others before and behind the slice

/// An array in the middle of a larger one, whose other elements must stay as they are.
class Part {
 public:
  Part(const std::vector<float>& values, std::size_t shift)
      : shift_(shift), all_(values.size() + shift + 2 * kAround, 77), array_(fill(values)) {}

  Array array(std::size_t size) const { return {array_.data() + begin(), size, DType::f32}; }
  std::vector<float> read(std::size_t size) const {
    const auto all = array_.read();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool beside = i < begin() || i >= begin() + size;
      EXPECT_TRUE(!beside || all[i] == 77) << "beside the slice, at " << i;
    }
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin());
    return {first, first + static_cast<std::ptrdiff_t>(size)};
  }

 private:
  std::size_t begin() const { return kAround + shift_; }
  const std::vector<float>& fill(const std::vector<float>& values) {
    std::ranges::copy(values, all_.begin() + static_cast<std::ptrdiff_t>(begin()));
    return all_;
  }

  std::size_t shift_;
  std::vector<float> all_;
  DeviceArray<float> array_;
};

/// Weights, gradients and state of a slice before a step.
struct SliceNumbers {
  std::vector<float> weights, gradients, state[optim::kMaxStateArrays];

  explicit SliceNumbers(std::size_t size)
      : weights(random_floats(size, 1)),
        gradients(random_floats(size, 2)),
        // Squares are not below zero, and above those of means.
        state{random_floats(size, 3, 1, 2), random_floats(size, 4, 0.1f, 0.9f),
              random_floats(size, 5)} {}

  Element element(std::size_t i) const {
    return {weights[i], gradients[i], {state[0][i], state[1][i], state[2][i]}};
  }
};

using Arrays = std::tuple<std::vector<float>, std::vector<float>, std::vector<float>,
                          std::vector<float>, std::vector<float>>;

/// All arrays after `work`(slice) with the first `states` of the state arrays.
template <class Work>
Arrays after(const SliceNumbers& n, const Shifts& shifts, int states, const Work& work) {
  const std::size_t size = n.weights.size();
  return twice([&] {
    const Part weights(n.weights, shifts.weights), gradients(n.gradients, shifts.gradients);
    const Part state[] = {{n.state[0], shifts.state[0]},
                          {n.state[1], shifts.state[1]},
                          {n.state[2], shifts.state[2]}};
    optim::UpdateSlice slice{.weights = weights.array(size), .gradients = gradients.array(size)};
    for (int i = 0; i < states; ++i)
      slice.state[static_cast<std::size_t>(i)] = state[i].array(size);
    work(slice);
    return Arrays{weights.read(size), gradients.read(size), state[0].read(size),
                  state[1].read(size), state[2].read(size)};
  });
}

void run_update(const optim::UpdatePlan& plan, const optim::UpdateStep& step) {
  const Stream stream = test_stream().get();
  const UpdateTable table = make_table(plan);
  const DeviceArray<UpdateSegment> segments(table.segments);
  const DeviceArray<std::uint32_t> segment_of_block(table.segment_of_block);
  const bool by_segment = !step.trust.empty();
  const auto facts = DeviceArray<UpdateFacts>::poisoned(by_segment ? plan.slices.size() : 1);
  if (by_segment) {
    write_segment_facts(stream, step, plan.weight_decay, facts.data());
  } else {
    write_facts(stream, update_facts(step, plan.weight_decay), facts.data());
  }
  update(stream, plan.rule,
         {.segments = segments.data(),
          .segment_of_block = segment_of_block.data(),
          .blocks = static_cast<std::uint32_t>(table.segment_of_block.size()),
          .width = table.width,
          .limit = static_cast<float>(plan.limit),
          .facts = facts.data(),
          .by_segment = by_segment});
  test_stream().synchronize();
}

void expect_near(float actual, double expected) {
  ASSERT_NEAR(actual, expected, 2e-6 * std::max(1.0, std::abs(expected)));
}

void expect_elements(const SliceNumbers& before, const Arrays& arrays,
                     const std::function<void(Element&)>& formula) {
  const auto& [weights, gradients, state0, state1, state2] = arrays;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    SCOPED_TRACE("element " + std::to_string(i));
    Element e = before.element(i);
    formula(e);
    expect_near(weights[i], e.weight);
    expect_near(gradients[i], e.gradient);
    expect_near(state0[i], e.state[0]);
    expect_near(state1[i], e.state[1]);
    expect_near(state2[i], e.state[2]);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(UpdateKernels, AreTheHostsLoops) {
  for (const std::size_t size : kSizes) {
    const SliceNumbers numbers(size);
    for (const Rule& rule : rules()) {
      for (const Shifts& shifts : kShifts) {
        if (size > 10000 && &shifts != &kShifts[0]) continue;
        SCOPED_TRACE(std::string(rule.name) + ", " + std::to_string(size) + " elements");
        const auto arrays =
            after(numbers, shifts, optim::state_arrays(rule.rule), [&](optim::UpdateSlice& slice) {
              slice.decays = true;
              run_update({.rule = rule.rule, .slices = {slice}, .weight_decay = rule.decay},
                         {rule.rule, kRate, kStep});
            });
        expect_elements(numbers, arrays, rule);
      }
    }
  }
}

/// Slices of 300 parts of a block, more than one launch takes facts of: each has its own weights
/// added, decays or not, and has a rate of its own.
TEST(UpdateKernels, TakeAllSlicesAtOnce) {
  constexpr std::size_t kSlices = 300;
  const SliceNumbers numbers(kSlices * 40 + 3000);
  for (const std::size_t shift : {0, 1}) {
    SCOPED_TRACE(shift);
    std::vector<std::size_t> ends{3000};  // the first one has several blocks
    while (ends.size() < kSlices) ends.push_back(ends.back() + (ends.size() % 2 ? 40 : 12));
    optim::UpdatePlan plan{.rule = optim::Lars{}, .limit = 0.4, .weight_decay = 0.02};
    std::vector<double> trust;
    const auto arrays =
        after(numbers, {shift, shift, {shift, 0, 0}}, 1, [&](optim::UpdateSlice& all) {
          plan.slices.clear(), trust.clear();
          std::size_t begin = 0;
          for (const std::size_t end : ends) {
            optim::UpdateSlice slice{all.weights.slice(begin, end),
                                     all.gradients.slice(begin, end)};
            slice.state[0] = all.state[0].slice(begin, end);
            slice.added_weights = plan.slices.size() % 3 == 0 ? 0.2 : 0;
            slice.decays = plan.slices.size() % 4 == 0;
            trust.push_back(1 + 0.01 * static_cast<double>(plan.slices.size()));
            plan.slices.push_back(slice);
            begin = end;
          }
          run_update(plan, {plan.rule, kRate, kStep, trust});
        });
    std::size_t i = 0, slice = 0;
    expect_elements(numbers, arrays, [&](Element& e) {
      if (i == ends[std::min(slice, kSlices - 1)]) ++slice;
      ++i;
      if (slice == kSlices) return;  // nobody's
      const double added = slice % 3 == 0 ? 0.2 : 0, decay = slice % 4 == 0 ? 0.02 : 0;
      const double gradient = std::min(std::max(e.gradient + added * e.weight, -0.4), 0.4);
      e.weight *= 1 - kRate * trust[slice] * decay;
      e.state[0] = 0.9 * e.state[0] - kRate * trust[slice] * gradient;
      e.weight += e.state[0];
    });
  }
}

/// An operation on gradients, likewise.
struct Change {
  const char* name;
  optim::GradientOperation operation;
  int states;

  void operator()(Element& e) const {
    const optim::GradientPointers<double> p{
        &e.weight, &e.gradient, {&e.state[0], &e.state[1], &e.state[2]}, 1};
    std::visit([&](const auto& o) { optim::gradient_math(o, p); }, operation);
  }
};

std::vector<Change> changes() {
  return {{"weights added", optim::AddWeights{0.2}, 0},
          {"clipped", optim::ClipValues{0.5}, 0},
          {"scaled", optim::ScaleGradients{0.37}, 0},
          {"averaged", optim::MoveAverage{0.9}, 0},
          {"LAMB", optim::LambDirection{optim::Lamb{}, 0.05, kStep}, 2}};
}

TEST(ChangeGradientsKernels, AreTheHostsLoops) {
  for (const std::size_t size : kSizes) {
    const SliceNumbers numbers(size);
    for (const Change& change : changes()) {
      for (const Shifts& shifts : kShifts) {
        if (size > 10000 && &shifts != &kShifts[0]) continue;
        SCOPED_TRACE(std::string(change.name) + ", " + std::to_string(size) + " elements");
        const auto arrays =
            after(numbers, shifts, change.states, [&](const optim::UpdateSlice& slice) {
              change_gradients(test_stream().get(), change.operation, slice);
            });
        expect_elements(numbers, arrays, change);
      }
    }
  }
}

// A run whose gradients are no numbers must end, not go on with the limit.
TEST(ChangeGradientsKernels, ClipInfinityAndKeepNaN) {
  const std::vector<float> gradients{kNaN, kInfinity, -kInfinity};
  const DeviceArray<float> g(gradients), w(std::vector<float>{0, 0, 0});
  optim::UpdateSlice slice{};
  slice.weights = {w.data(), 3, DType::f32};
  slice.gradients = {g.data(), 3, DType::f32};
  change_gradients(test_stream().get(), optim::ClipValues{0.5}, slice);
  expect_same_values(g.read(), {gradients[0], 0.5f, -0.5f});
}

TEST(SumArrays, AddsInOrder) {
  for (const int count : {1, 2, 3, kMostSummands}) {
    for (const std::size_t size : kSizes) {
      for (const std::size_t shift : {0, 1}) {
        for (const bool in_place : {false, true}) {
          std::vector<std::vector<float>> values;
          for (int i = 0; i < count; ++i) {
            values.push_back(random_floats(size, static_cast<unsigned>(i), -1e3f, 1e3f));
            values.back()[0] = -0.0f;  // of which only zeros with that sign make one
          }
          std::vector<float> expected = values[0];
          for (std::size_t i = 1; i < values.size(); ++i) {
            for (std::size_t k = 0; k < size; ++k) expected[k] += values[i][k];
          }
          const auto sum = twice([&] {
            std::vector<DeviceArray<float>> src;
            Summands summands{{}, count};
            for (int i = 0; i < count; ++i) {
              src.emplace_back(values[static_cast<std::size_t>(i)], shift);
              summands.src[i] = src.back().data();
            }
            // The last one, whose place in the order must not change.
            const Part apart(std::vector<float>(size), shift);
            float* dst = in_place ? src.back().data() : static_cast<float*>(apart.array(size).data);
            sum_arrays(test_stream().get(), summands, size, dst);
            return in_place ? src.back().read() : apart.read(size);
          });
          ASSERT_TRUE(same_bits(sum, expected)) << count << " arrays of " << size;
        }
      }
    }
  }
}

// Beside the host's own bf16, from any place to any place; numbers behind the last stay.
TEST(UpdateKernels, NarrowGradientsAsTheHostDoes) {
  for (const std::size_t size : {1u, 255u, 256u, 1000u}) {
    for (const std::size_t shift : {0u, 1u, 3u}) {
      std::vector<float> values = random_floats(size, 7, -1e3f, 1e3f);
      values[0] = -0.0f;
      values[size / 2] = kInfinity;
      values[size / 3] = std::bit_cast<float>(0x3f808000u);  // between two, so to the even one
      std::vector<float> expected;
      for (const float value : values) {
        expected.push_back(exchange::from_bf16(exchange::to_bf16(value)));
      }
      const auto widened = twice([&] {
        const DeviceArray<float> src(values, shift);
        const DeviceArray<Bf16> narrow(std::vector<Bf16>(size + 1, Bf16{0x1234}), shift);
        const DeviceArray<float> dst(std::vector<float>(size + 1, 5.0f), shift);
        const auto count = static_cast<std::int64_t>(size);
        narrow_gradients(test_stream().get(), src.data(), count, narrow.data());
        widen_gradients(test_stream().get(), narrow.data(), count, dst.data());
        EXPECT_EQ(narrow.read().back(), Bf16{0x1234});
        return dst.read();
      });
      expected.push_back(5.0f);
      ASSERT_TRUE(same_bits(widened, expected)) << size << " numbers, " << shift << " behind";
    }
  }
}

// Without memory: whatever was launched would be a fault.
TEST(UpdateKernels, LaunchNothingForNoElements) {
  const Stream stream = test_stream().get();
  update(stream, optim::Adam{}, {});
  change_gradients(stream, optim::ScaleGradients{2}, {});
  sum_arrays(stream, {{}, 2}, 0, nullptr);
  block_norms(stream, nullptr, 0, 5, nullptr);
  narrow_gradients(stream, nullptr, 0, nullptr);
  widen_gradients(stream, nullptr, 0, nullptr);
  test_stream().synchronize();
}

}  // namespace
}  // namespace cputrain::cuda
