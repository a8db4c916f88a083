#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/exchange/cases.h"
#include "tests/exchange/exchange_ways.h"

namespace cputrain::exchange {

namespace {

/// How a rank tells the exchange which gradients are final.
enum class Calls { one, each_parameter, odd_positions, late_ranks };

/// Positions at which ready() is called, ascending, the arena's end last.
std::vector<std::size_t> ready_positions(const compute::ParameterLayout& layout, Calls calls) {
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
void backward(GradientExchange& exchange, const compute::ParameterLayout& layout, Calls calls,
              int rank, int step) {
  EXPECT_EQ(exchange.begin(0, true), compute::Accumulate::overwrite);
  const auto gradients = exchange.lane_arenas(0).gradients.as<T>();
  const auto positions = ready_positions(layout, calls);
  std::size_t done = 0;
  for (const std::size_t n : positions) {
    for (; done < n; ++done) gradients[done] = gradient<T>(rank, step, done);
    // Two sleeps a step: every case runs once for each way and number of ranks.
    if (calls == Calls::late_ranks && (n == positions.front() || n == positions.back())) {
      std::this_thread::sleep_for(std::chrono::milliseconds((rank + step) % 3 * 2));
    }
    exchange.ready(n);
  }
}

struct Plan {
  compute::ParameterLayout layout;
  std::size_t bucket_bytes;
};

template <class T>
void expect_steps(const Way& way, comm::Communicator& comm, const Plan& plan, Calls calls) {
  const auto exchange = way.make(comm, plan.layout, plan.bucket_bytes);
  const compute::Arenas arenas = exchange->arenas();
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
void expect_steps_with_all_calls(const Way& way, comm::Communicator& comm, const Plan& plan) {
  for (const Calls calls :
       {Calls::one, Calls::each_parameter, Calls::odd_positions, Calls::late_ranks}) {
    expect_steps<T>(way, comm, plan, calls);
  }
}

const std::vector<std::size_t> kUneven = {27, 1, 5000, 16, 17, 1, 300};

/// Every parameter is a bucket, padding lies between them.
void a_bucket_a_parameter(const Way& way, comm::Communicator& comm) {
  expect_steps_with_all_calls<float>(way, comm, {layout_of_counts(kUneven, DType::f32), 0});
  expect_steps_with_all_calls<double>(way, comm, {layout_of_counts(kUneven, DType::f64), 0});
}

void buckets_of_one_element(const Way& way, comm::Communicator& comm) {
  expect_steps_with_all_calls<float>(way, comm, {layout_of_counts({1, 1, 1, 1, 1}, DType::f32), 4});
}

void one_bucket(const Way& way, comm::Communicator& comm) {
  expect_steps_with_all_calls<float>(way, comm, {layout_of_counts(kUneven, DType::f32), 1u << 30});
}

void some_buckets(const Way& way, comm::Communicator& comm) {
  expect_steps_with_all_calls<float>(way, comm, {layout_of_counts(kUneven, DType::f32), 1000});
  expect_steps_with_all_calls<double>(way, comm, {layout_of_counts(kUneven, DType::f64), 1000});
}

/// Fewer elements than ranks, and more than any message that is sent in one go.
void small_and_large_arenas(const Way& way, comm::Communicator& comm) {
  expect_steps<float>(way, comm, {layout_of_counts({1}, DType::f32), 0}, Calls::one);
  expect_steps<float>(way, comm, {layout_of_counts({100000, 400001}, DType::f32), 1u << 20},
                      Calls::each_parameter);
}

void no_parameters(const Way& way, comm::Communicator& comm) {
  const auto exchange = way.make(comm, layout_of_counts({}, DType::f32), 0);
  exchange->begin(0, true);
  exchange->ready(0);
  exchange->finish([](Range range) { EXPECT_EQ(range.size(), 0u); });
}

/// Two at once: a program may hold several, each with its own arenas.
void two_exchanges(const Way& way, comm::Communicator& comm) {
  const compute::ParameterLayout a = layout_of_counts({100}, DType::f32),
                                 b = layout_of_counts({50}, DType::f32);
  const auto first = way.make(comm, a, 0), second = way.make(comm, b, 0);
  const auto update = [](GradientExchange& exchange) {
    exchange.finish([&](Range range) {
      const compute::Arenas arenas = exchange.arenas();
      std::ranges::copy(arenas.gradients.as<float>().subspan(range.begin, range.size()),
                        arenas.weights.as<float>().begin() + std::ptrdiff_t(range.begin));
    });
  };
  backward<float>(*first, a, Calls::one, comm.rank(), 0);
  backward<float>(*second, b, Calls::one, comm.rank(), 1);
  update(*second);
  update(*first);
  const auto expect = [&](GradientExchange& exchange, std::size_t count, int step) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(exchange.arenas().weights.as<float>()[i],
                summed_gradient<float>(comm.size(), step, i));
    }
  };
  expect(*first, 100, 0);
  expect(*second, 50, 1);
}

/// Micro-batches add to one gradient, which travels once.
void several_micro_batches(const Way& way, comm::Communicator& comm) {
  const compute::ParameterLayout layout = layout_of_counts({300, 9000}, DType::f32);
  const auto exchange = way.make(comm, layout, 1000);
  const auto gradients = exchange->lane_arenas(0).gradients.as<float>();
  for (int k = 0; k < 3; ++k) {
    const compute::Accumulate accumulate = exchange->begin(k, k == 2);
    EXPECT_TRUE(k > 0 || accumulate == compute::Accumulate::overwrite);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const float own = gradient<float>(comm.rank(), k, i);
      gradients[i] = accumulate == compute::Accumulate::overwrite ? own : gradients[i] + own;
    }
    exchange->ready(layout.gradient_size);
  }
  exchange->finish([&](Range range) {
    const auto sums = exchange->arenas().gradients.as<float>();
    for (std::size_t i = range.begin; i < range.end; ++i) {
      float expected = 0;
      for (int k = 0; k < 3; ++k) expected += summed_gradient<float>(comm.size(), k, i);
      if (sums[i] != expected) FAIL() << sums[i] << " at " << i;
    }
  });
}

/// Rank 0's weights reach everybody, and a version tells when weights change.
void weights_are_spread(const Way& way, comm::Communicator& comm) {
  const compute::ParameterLayout layout = layout_of_counts({5000, 77}, DType::f32);
  const auto exchange = way.make(comm, layout, 0);
  const auto weights = exchange->arenas().weights.as<float>();
  if (comm.rank() == 0) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 1000);
  }
  exchange->spread_weights();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != static_cast<float>(i % 1000)) FAIL() << weights[i] << " at " << i;
  }
  comm.barrier();
  const std::uint64_t before = exchange->weights_version();
  EXPECT_EQ(before % 2, 0u);
  comm.barrier();
  backward<float>(*exchange, layout, Calls::one, comm.rank(), 0);
  std::uint64_t meanwhile = 1;
  exchange->finish([&](Range) { meanwhile = exchange->weights_version(); });
  comm.barrier();
  EXPECT_EQ(exchange->weights_version() % 2, 0u);
  EXPECT_TRUE(exchange->weights_version() == before || meanwhile % 2 == 1);
  EXPECT_GE(exchange->weights_version(), before);
}

/// Numbers that ranks do not share, such as moving statistics, stay each rank's own, while the
/// weights before them are the same.
void ranks_keep_their_own(const Way& way, comm::Communicator& comm) {
  compute::ParameterLayout layout = layout_of_counts({10, 6000}, DType::f32);
  layout.parameters[0].learnt = false;
  layout.parameters[0].averaged = true;
  layout.gradient_size = layout.parameters[0].range.begin;
  const auto exchange = way.make(comm, layout, 0);
  const auto weights = exchange->arenas().weights.as<float>();
  const Range own = layout.parameters[0].range;
  for (std::size_t i = own.begin; i < own.end; ++i)
    weights[i] = static_cast<float>(comm.rank() + 5);
  comm.barrier();
  for (int step = 0; step < 2; ++step) {
    exchange->begin(0, true);
    const auto gradients = exchange->lane_arenas(0).gradients.as<float>();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      gradients[i] = gradient<float>(comm.rank(), step, i);
    }
    exchange->ready(layout.gradient_size);
    exchange->finish([&](Range range) {
      const auto sums = exchange->arenas().gradients.as<float>();
      for (std::size_t i = range.begin; i < range.end; ++i) weights[i] += sums[i];
    });
  }
  for (std::size_t i = 0; i < layout.gradient_size; ++i) {
    const float expected =
        summed_gradient<float>(comm.size(), 0, i) + summed_gradient<float>(comm.size(), 1, i);
    if (weights[i] != expected) FAIL() << weights[i] << " instead of " << expected << " at " << i;
  }
  for (std::size_t i = own.begin; i < own.end; ++i) {
    ASSERT_EQ(weights[i], static_cast<float>(comm.rank() + 5));
  }
}

/// Gradients whose sum depends on the order of additions: all replicas still get the same bits.
void weights_have_the_same_bits(const Way& way, comm::Communicator& comm) {
  const compute::ParameterLayout layout = layout_of_counts({40000, 333, 70000}, DType::f32);
  const auto exchange = way.make(comm, layout, 1000);
  exchange->begin(0, true);
  const auto gradients = exchange->lane_arenas(0).gradients.as<float>();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = 1.0f / static_cast<float>((i * 17 + 1) * (comm.rank() + 3));
  }
  exchange->ready(layout.arena_size);
  exchange->finish([&](Range range) {
    const auto weights = exchange->arenas().weights.as<float>();
    const auto sums = exchange->arenas().gradients.as<float>();
    for (std::size_t i = range.begin; i < range.end; ++i) weights[i] = sums[i] * 0.3f;
  });
  const auto bytes = exchange->arenas().weights.bytes();
  const auto texts = comm.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::string& text : texts) ASSERT_TRUE(text == texts[0]);
}

/// Measures come after the sums and before the updates, each with what the one before found; their
/// numbers are sums over owners, so the same on every rank.
void measures_before_updates(const Way& way, comm::Communicator& comm) {
  const compute::ParameterLayout layout = layout_of_counts({100, 7}, DType::f64);
  const auto exchange = way.make(comm, layout, 100);
  exchange->begin(0, true);
  const auto gradients = exchange->lane_arenas(0).gradients.as<double>();
  const auto sums = exchange->arenas().gradients.as<double>();
  std::vector<double> first(1), second(2);
  std::vector<std::string> calls;
  const std::vector<Measure> measures{[&]() -> std::span<double> {
                                        calls.push_back("first");
                                        for (const Range range : exchange->owned()) {
                                          for (std::size_t i = range.begin; i < range.end; ++i)
                                            first[0] += sums[i];
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

/// One rank is late to read them, and the others may share them with it.
void weights_change_when_all_have_read_them(const Way& way, comm::Communicator& comm) {
  const auto exchange = way.make(comm, layout_of_counts({5000}, DType::f32), 1000);
  const auto weights = exchange->arenas().weights.as<float>();
  for (int round = 0; round < 3; ++round) {
    if (comm.rank() == round % comm.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(std::ranges::count(weights, static_cast<float>(round)), std::ssize(weights));
    exchange->change_weights([&](Range range) {
      for (std::size_t i = range.begin; i < range.end; ++i) weights[i] += 1;
    });
  }
}

/// Algorithms are compared at the size that each rank's slice has.
void slices_are_timed_at_their_size(comm::Communicator& comm) {
  const MadeExchange made =
      make_exchange({.communicator = comm, .layout = layout_of_counts({1200000}, DType::f32)},
                    comm::parse_allreduce("hierarchical"));
  const comm::NodeMap map = comm::read_node_map(comm);
  ASSERT_EQ(made.lines.size(), map.nodes() == 1 ? 0u : 1u);
  if (made.lines.empty()) return;
  // The last node has the fewest ranks: one, or two of four.
  const std::string size = map.ranks.back().size() == 1 ? "4.8" : "2.4";
  EXPECT_TRUE(made.lines[0].starts_with("Allreduce of " + size + " MB: ")) << made.lines[0];
}

struct ExchangeCase {
  const char* name;
  void (*body)(const Way&, comm::Communicator&);
};

constexpr ExchangeCase kCases[] = {
    {"a_bucket_a_parameter", a_bucket_a_parameter},
    {"buckets_of_one_element", buckets_of_one_element},
    {"one_bucket", one_bucket},
    {"some_buckets", some_buckets},
    {"small_and_large_arenas", small_and_large_arenas},
    {"no_parameters", no_parameters},
    {"two_exchanges", two_exchanges},
    {"several_micro_batches", several_micro_batches},
    {"weights_are_spread", weights_are_spread},
    {"ranks_keep_their_own", ranks_keep_their_own},
    {"weights_change_when_all_have_read_them", weights_change_when_all_have_read_them},
    {"weights_have_the_same_bits", weights_have_the_same_bits},
    {"measures_before_updates", measures_before_updates},
};

const std::vector<Way>& ways() {
  static const std::vector<Way> list{
      {"automatic", "auto"},
      {"mpi", "mpi"},
      {"ring", "ring"},
      {"ring_overlapped", "ring", kOverlap},
      {"recursive_doubling", "recursive_doubling"},
      {"rabenseifner", "rabenseifner"},
      {"tree", "tree"},
      {"by_size", "recursive-doubling:0-399;tree:400-8192;ring:8193-max"},
      {"slices", "hierarchical+ring"},
      {"slices_mpi", "hierarchical+mpi"},
      {"slices_overlapped", "hierarchical+rabenseifner", kOverlap},
      {"server", "ps"},
      {"ordered", "auto", !kOverlap, 1},
      {"automatic_topk", "auto", !kOverlap, 0, "topk:1"},
      {"slices_topk", "hierarchical+tree", kOverlap, 0, "topk:1"},
      {"locked_automatic", "auto", !kOverlap, 0, "none", true},
      {"locked_mpi", "mpi", !kOverlap, 0, "none", true},
      {"locked_ring_overlapped", "ring", kOverlap, 0, "none", true},
      {"locked_topk", "auto", kOverlap, 0, "topk:1", true},
  };
  return list;
}

}  // namespace

std::vector<comm::CommCase> exchange_cases() {
  std::vector<comm::CommCase> cases{
      {"slices_are_timed_at_their_size", slices_are_timed_at_their_size}};
  for (const Way& way : ways()) {
    for (const ExchangeCase& c : kCases) {
      cases.push_back({way.name + "_" + c.name,
                       [&way, body = c.body](comm::Communicator& comm) { body(way, comm); }});
    }
  }
  return cases;
}

}  // namespace cputrain::exchange
