#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "exchange/exchanges.h"
#include "tests/exchange/compressed_sums.h"
#include "tests/exchange/exchange_ways.h"

namespace cputrain::exchange {
namespace {

/// From nothing to several messages; no length that the number of ranks divides.
constexpr std::size_t kSizes[] = {0, 1, 2, 7, 8, 1000, 100003, 600011};

/// Numbers of rank r whose sum over 8 ranks is a whole number below 256: exact in every format.
template <class T>
T whole(int rank, std::size_t i) {
  return static_cast<T>((rank + 1) * (static_cast<int>(i % 15) - 7));
}

template <class T>
void expect_exact(const std::string& text, comm::Communicator& comm) {
  const int factor = comm.size() * (comm.size() + 1) / 2;
  for (const std::size_t size : kSizes) {
    const auto sum = make_sum(text, comm, vector_of(size, dtype_of<T>()));
    std::vector<T> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = whole<T>(comm.rank(), i);
    sum->sum({0, size}, Array::of(std::span(values)));
    for (std::size_t i = 0; i < size; ++i) {
      const T expected = static_cast<T>(factor) * whole<T>(0, i);
      if (values[i] != expected) FAIL() << values[i] << " at " << i << " of " << size;
    }
  }
}

void exact_sums(const std::string& text, comm::Communicator& comm) {
  expect_exact<float>(text, comm);
  expect_exact<double>(text, comm);
}

/// Half a unit in the last place of what each other rank sends and of the sum: 2^-11 in fp16,
/// 2^-8 in bf16, relative. Beside it what fp16 has for numbers far below a message's largest.
void rounding_is_bounded(const std::string& text, comm::Communicator& comm) {
  constexpr std::size_t kSize = 40009;
  const double half_unit = text == "fp16" ? 0x1p-11 : 0x1p-8;
  const auto sum = make_sum(text, comm, vector_of(kSize, DType::f32));
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) values[i] = small_number(i, comm.rank());
  sum->sum({0, kSize}, Array::of(std::span(values)));
  expect_same_bits(comm, values);
  bool rounded = false;
  for (std::size_t i = 0; i < kSize; ++i) {
    double exact = 0, size = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
      exact += static_cast<double>(small_number(i, rank));
      size += std::abs(static_cast<double>(small_number(i, rank)));
    }
    const double far = std::abs(static_cast<double>(values[i]) - exact);
    ASSERT_LE(far, 2.01 * half_unit * size + 1e-7 * 0x1p-36) << "at " << i;
    rounded |= far > 0.1 * half_unit * size;
  }
  EXPECT_TRUE(rounded);  // else nothing was in 16 bits
}

/// From the largest number of a message down to the smallest that fp16 has, which is 2^-38 of it.
void range_is_whole(comm::Communicator& comm) {
  const auto size = 200 * static_cast<std::size_t>(comm.size());
  const float large = 2 - 0x1p-10f, small = 0x1p-38f;
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = comm.rank() > 0 ? 0 : i % 2 == 0 ? large : small;
  }
  make_sum("fp16", comm, vector_of(size, DType::f32))->sum({0, size}, Array::of(std::span(values)));
  for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(values[i], i % 2 == 0 ? large : small) << i;
}

/// A diverged run must end: what is no number stays none, on all ranks, and its neighbours stay.
void nan_survives(const std::string& text, comm::Communicator& comm) {
  constexpr std::size_t kSize = 20000;
  const auto sum = make_sum(text, comm, layout_of({100, 200}, DType::f32));
  std::vector<float> values(kSize, 1.0f);
  const bool last = comm.rank() == comm.size() - 1;
  if (last) values[7] = std::numeric_limits<float>::quiet_NaN();
  if (last) values[12345] = -std::numeric_limits<float>::infinity();
  sum->sum({0, kSize}, Array::of(std::span(values)));
  EXPECT_TRUE(std::isnan(values[7]));
  EXPECT_FALSE(std::isfinite(values[12345]));
  if (text == "fp16" || text == "bf16") {
    EXPECT_EQ(values[12345], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(values[8], static_cast<float>(comm.size()));
  }
}

/// Through exchanges, with buckets and slices that cut matrices: the same weights on all ranks.
void exchanges_give_the_same_bits(const std::string& text, comm::Communicator& comm) {
  compute::ParameterLayout layout = layout_of({300, 200}, DType::f32);
  layout.parameters.push_back({"bias", {77}, 77, {60000, 60077}, false, true, false, 0, 1});
  layout.gradient_size = layout.arena_size = 60080;
  for (const char* allreduce : {"rabenseifner", "hierarchical+ring"}) {
    ExchangeParts parts{comm, layout, 1000, kOverlap, {}, comm::sum_plainly};
    parts.compression = parse_compression(text);
    const auto exchange = make_exchange(parts, comm::parse_allreduce(allreduce)).exchange;
    const compute::Arenas arenas = exchange->arenas();
    const auto weights = arenas.weights.as<float>(), gradients = arenas.gradients.as<float>();
    for (int step = 0; step < 3; ++step) {
      exchange->begin(0, true);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] = small_number(i, comm.rank() + step);
      }
      exchange->ready(layout.gradient_size);
      exchange->finish([&](Range range) {
        for (std::size_t i = range.begin; i < range.end; ++i) weights[i] -= gradients[i];
      });
    }
    expect_same_bits(comm, std::vector<float>(weights.begin(), weights.end()));
    EXPECT_NE(std::ranges::count(weights, 0.0f), std::ssize(weights));
  }
}

/// Ratios of bytes, and that the exchange says them.
void exchanges_say_what_they_save(comm::Communicator& comm) {
  const auto layout = layout_of({1000, 500}, DType::f32);
  const auto describe = [&](const std::string& text) {
    ExchangeParts parts{comm, layout, 1u << 30, !kOverlap, {}, comm::sum_plainly};
    parts.compression = parse_compression(text);
    return make_exchange(parts, comm::parse_allreduce("ring")).exchange->describe();
  };
  const auto ends_with = [&](const std::string& text, const std::string& end) {
    EXPECT_TRUE(describe(text).ends_with(end)) << describe(text);
  };
  ends_with("none", "rank");
  ends_with("fp16", "gradients as fp16: 2.0 times fewer bytes");
  ends_with("powersgd", "gradients as powersgd:4: 83.3 times fewer bytes");
  const auto sum = make_sum("topk", comm, layout);  // pairs of 8 bytes from every rank
  EXPECT_EQ(sum->volume({0, 500000}), 5000.0 * 8 * comm.size() / 2);
}

}  // namespace

std::vector<comm::CommCase> compression_cases() {
  std::vector<comm::CommCase> cases;
  for (const char* text : {"none", "fp16", "bf16", "topk:1"}) {
    cases.push_back(case_of(text, "exact_sums", exact_sums));
  }
  for (const char* text : {"fp16", "bf16"}) {
    cases.push_back(case_of(text, "rounding_is_bounded", rounding_is_bounded));
  }
  cases.push_back({"fp16_range_is_whole", range_is_whole});
  for (const char* text : {"fp16", "bf16", "topk", "powersgd"}) {
    cases.push_back(case_of(text, "nan_survives", nan_survives));
    cases.push_back(case_of(text, "exchanges_give_the_same_bits", exchanges_give_the_same_bits));
  }
  cases.push_back({"compressed_exchanges_say_what_they_save", exchanges_say_what_they_save});
  return cases;
}

}  // namespace cputrain::exchange
