#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "comm/cases.h"

namespace cputrain {

namespace {

/// Parameters in model order, the last one first in the arena, each on a 64-byte boundary, as
/// lay_out() makes them; written out here so that a mistake there is no excuse here.
ParameterLayout layout_of(const std::vector<std::size_t>& counts, DType dtype) {
  ParameterLayout layout;
  layout.dtype = dtype;
  layout.parameters.resize(counts.size());
  const std::size_t step = 64 / size_of(dtype);
  for (std::size_t i = counts.size(); i-- > 0;) {
    const std::size_t begin = layout.arena_size;
    layout.parameters[i] = {"p" + std::to_string(i),
                            {static_cast<int>(counts[i])},
                            counts[i],
                            Range{begin, begin + counts[i]},
                            true,
                            true,
                            false,
                            0};
    layout.gradient_size = layout.arena_size = (begin + counts[i] + step - 1) / step * step;
  }
  return layout;
}

/// How a rank tells the exchange which gradients are final.
enum class Calls { one, each_parameter, odd_positions, late_ranks };

/// The gradient of rank r at element i in a step; small whole numbers.
template <class T>
T gradient(int rank, int step, std::size_t i) {
  return static_cast<T>((rank + 1 + step) * (static_cast<int>(i * 7 % 101) - 50));
}

template <class T>
T summed_gradient(int ranks, int step, std::size_t i) {
  const int factor = ranks * (ranks + 1) / 2 + ranks * step;
  return static_cast<T>(factor * (static_cast<int>(i * 7 % 101) - 50));
}

/// Positions at which ready() is called, ascending, the arena's end last.
std::vector<std::size_t> ready_positions(const ParameterLayout& layout, Calls calls) {
  std::vector<std::size_t> positions;
  if (calls == Calls::odd_positions) {
    for (std::size_t n = 0; n < layout.arena_size; n += 13) positions.push_back(n);
  } else if (calls != Calls::one) {
    for (std::size_t i = layout.parameters.size(); i-- > 0;) {
      positions.push_back(layout.parameters[i].range.end);
    }
  }
  positions.push_back(layout.arena_size);
  return positions;
}

template <class T>
void backward(GradientExchange& exchange, const ParameterLayout& layout, Calls calls, int rank,
              int step) {
  const auto gradients = exchange.arenas().gradients.as<T>();
  std::size_t done = 0;
  for (const std::size_t n : ready_positions(layout, calls)) {
    for (; done < n; ++done) gradients[done] = gradient<T>(rank, step, done);
    if (calls == Calls::late_ranks) {
      std::this_thread::sleep_for(std::chrono::milliseconds((rank + step) % 3 * 2));
    }
    exchange.ready(n);
  }
}

template <class T>
void expect_steps(Communicator& comm, const ExchangePlan& plan, Calls calls) {
  const auto exchange = comm.make_exchange(plan);
  const Arenas arenas = exchange->arenas();
  ASSERT_EQ(arenas.weights.size, plan.layout.arena_size);
  ASSERT_EQ(arenas.gradients.size, plan.layout.arena_size);
  ASSERT_EQ(arenas.weights.dtype, plan.layout.dtype);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arenas.weights.data) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arenas.gradients.data) % 64, 0u);
  EXPECT_EQ(std::ranges::count(arenas.weights.as<T>(), T{0}), std::ssize(arenas.weights.as<T>()));

  std::vector<T> expected(plan.layout.arena_size);
  for (int step = 0; step < 3; ++step) {
    backward<T>(*exchange, plan.layout, calls, comm.rank(), step);
    std::vector<Range> updated;
    const ExchangeTimes times = exchange->finish([&](Range range) {
      updated.push_back(range);
      const auto weights = arenas.weights.as<T>();
      const auto gradients = arenas.gradients.as<T>();
      for (std::size_t i = range.begin; i < range.end; ++i) weights[i] -= gradients[i];
    });
    const auto owned = exchange->owned();
    EXPECT_EQ(updated, std::vector<Range>(owned.begin(), owned.end()));
    EXPECT_GE(times.straggler_wait, 0);
    EXPECT_GE(times.allreduce_exposed, 0);
    EXPECT_GE(times.optimizer, 0);
    const auto weights = arenas.weights.as<T>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] -= summed_gradient<T>(comm.size(), step, i);
      if (weights[i] != expected[i]) {
        FAIL() << weights[i] << " instead of " << expected[i] << " at " << i << " in step " << step;
      }
    }
  }
}

template <class T>
void expect_steps_with_all_calls(Communicator& comm, const ExchangePlan& plan) {
  for (const Calls calls :
       {Calls::one, Calls::each_parameter, Calls::odd_positions, Calls::late_ranks}) {
    expect_steps<T>(comm, plan, calls);
  }
}

const std::vector<std::size_t> kUneven = {27, 1, 5000, 16, 17, 1, 300};

/// Every parameter is a bucket, padding lies between them.
void a_bucket_a_parameter(Communicator& comm) {
  expect_steps_with_all_calls<float>(comm, {layout_of(kUneven, DType::f32), 0});
  expect_steps_with_all_calls<double>(comm, {layout_of(kUneven, DType::f64), 0});
}

void buckets_of_one_element(Communicator& comm) {
  expect_steps_with_all_calls<float>(comm, {layout_of({1, 1, 1, 1, 1}, DType::f32), 4});
}

void one_bucket(Communicator& comm) {
  expect_steps_with_all_calls<float>(comm, {layout_of(kUneven, DType::f32), 1u << 30});
}

void some_buckets(Communicator& comm) {
  expect_steps_with_all_calls<float>(comm, {layout_of(kUneven, DType::f32), 1000});
  expect_steps_with_all_calls<double>(comm, {layout_of(kUneven, DType::f64), 1000});
}

/// Fewer elements than ranks, and more than any message that is sent in one go.
void small_and_large_arenas(Communicator& comm) {
  expect_steps<float>(comm, {layout_of({1}, DType::f32), 0}, Calls::one);
  expect_steps<float>(comm, {layout_of({100000, 400001}, DType::f32), 1u << 20},
                      Calls::each_parameter);
}

void no_parameters(Communicator& comm) {
  const auto exchange = comm.make_exchange({layout_of({}, DType::f32), 0});
  exchange->ready(0);
  exchange->finish([](Range range) { EXPECT_EQ(range.size(), 0u); });
}

/// Two at once: a program may hold several, each with its own arenas.
void two_exchanges(Communicator& comm) {
  const auto first = comm.make_exchange({layout_of({100}, DType::f32), 0});
  const auto second = comm.make_exchange({layout_of({50}, DType::f32), 0});
  const ParameterLayout a = layout_of({100}, DType::f32), b = layout_of({50}, DType::f32);
  backward<float>(*first, a, Calls::one, comm.rank(), 0);
  backward<float>(*second, b, Calls::one, comm.rank(), 1);
  second->finish([](Range) {});
  first->finish([](Range) {});
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(first->arenas().gradients.as<float>()[i], summed_gradient<float>(comm.size(), 0, i));
  }
  for (std::size_t i = 0; i < 50; ++i) {
    ASSERT_EQ(second->arenas().gradients.as<float>()[i], summed_gradient<float>(comm.size(), 1, i));
  }
}

/// Gradients whose sum depends on the order of additions: all replicas still get the same bits.
void weights_have_the_same_bits(Communicator& comm) {
  const ParameterLayout layout = layout_of({40000, 333, 70000}, DType::f32);
  const auto exchange = comm.make_exchange({layout, 1000});
  const auto gradients = exchange->arenas().gradients.as<float>();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = 1.0f / static_cast<float>((i * 17 + 1) * (comm.rank() + 3));
  }
  exchange->ready(layout.arena_size);
  exchange->finish([&](Range range) {
    const auto weights = exchange->arenas().weights.as<float>();
    for (std::size_t i = range.begin; i < range.end; ++i) weights[i] = gradients[i] * 0.3f;
  });
  const auto bytes = exchange->arenas().weights.bytes();
  const auto texts = comm.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::string& text : texts) ASSERT_TRUE(text == texts[0]);
}

/// Measures come after the sums and before the updates, each with what the one before found; their
/// numbers are sums over owners, so the same on every rank.
void measures_before_updates(Communicator& comm) {
  const ParameterLayout layout = layout_of({100, 7}, DType::f64);
  const auto exchange = comm.make_exchange({layout, 100});
  const auto gradients = exchange->arenas().gradients.as<double>();
  std::vector<double> first(1), second(2);
  std::vector<std::string> calls;
  const std::vector<Measure> measures{[&]() -> std::span<double> {
                                        calls.push_back("first");
                                        for (const Range range : exchange->owned()) {
                                          for (std::size_t i = range.begin; i < range.end; ++i)
                                            first[0] += gradients[i];
                                        }
                                        return first;
                                      },
                                      [&]() -> std::span<double> {
                                        calls.push_back("second");
                                        for (const Range range : exchange->owned()) {
                                          second[0] += first[0] * static_cast<double>(range.size());
                                        }
                                        return second;
                                      }};
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = 1;
  exchange->ready(gradients.size());
  exchange->finish(measures, [&](Range) { calls.push_back("update"); });
  const auto elements = static_cast<double>(gradients.size());
  EXPECT_EQ(first[0], elements * comm.size());
  EXPECT_EQ(second[0], elements * elements * comm.size());
  std::vector<std::string> expected{"first", "second"};
  expected.resize(2 + exchange->owned().size(), "update");
  EXPECT_EQ(calls, expected);
}

constexpr CommCase kCases[] = {
    {"a_bucket_a_parameter", a_bucket_a_parameter},
    {"buckets_of_one_element", buckets_of_one_element},
    {"one_bucket", one_bucket},
    {"some_buckets", some_buckets},
    {"small_and_large_arenas", small_and_large_arenas},
    {"no_parameters", no_parameters},
    {"two_exchanges", two_exchanges},
    {"weights_have_the_same_bits", weights_have_the_same_bits},
    {"measures_before_updates", measures_before_updates},
};

}  // namespace

std::span<const CommCase> exchange_cases() { return kCases; }

}  // namespace cputrain
