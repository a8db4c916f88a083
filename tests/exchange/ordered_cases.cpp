#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/exchange/cases.h"
#include "tests/exchange/exchange_ways.h"

namespace cputrain::exchange {

namespace {

/// The number that leaf `leaf` has at element i: sums of such depend on the order of additions.
float uneven(std::size_t chunk, std::size_t i) {
  return std::sin(static_cast<float>(i + 3 * chunk + 1)) *
         std::pow(10.0f, static_cast<float>((i + chunk) % 5));
}

/// The product's element i of a leaf's factors, image by image onto `sum`, as one rank adds it.
float add_product(const compute::Parameter& parameter, std::size_t chunk, std::size_t i,
                  float sum) {
  const compute::Factors& factors = *parameter.factors;
  const std::size_t row = (i - parameter.range.begin) / factors.columns,
                    column = (i - parameter.range.begin) % factors.columns,
                    diff_y = parameter.range.begin + factors.rows * factors.images;
  for (std::size_t image = 0; image < factors.images; ++image) {
    sum += uneven(chunk, parameter.range.begin + row * factors.images + image) *
           uneven(chunk, diff_y + image * factors.columns + column);
  }
  return sum;
}

/// Element i of so many chunks added by one rank, chunk by chunk.
float expected_sum(const compute::ParameterLayout& layout, std::size_t chunks, std::size_t i) {
  const auto factored = std::ranges::find_if(layout.parameters, [&](const compute::Parameter& p) {
    return p.factors && p.range.begin <= i && i < p.range.end;
  });
  float sum = 0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    sum = factored == layout.parameters.end() ? sum + uneven(chunk, i)
                                              : add_product(*factored, chunk, i, sum);
  }
  return sum;
}

/// Two rounds of two lanes a rank. What factors leave free of an arena is never written.
void expect_order(comm::Communicator& comm, const compute::ParameterLayout& layout) {
  constexpr int kLanes = 2, kRounds = 2;
  ExchangeParts parts{.communicator = comm, .layout = layout, .lanes = kLanes};
  const auto exchange = make_exchange(parts, {}).exchange;
  const auto chunks = static_cast<std::size_t>(comm.size() * kLanes);
  for (int k = 0; k < kRounds; ++k) {
    ASSERT_EQ(exchange->begin(k, k + 1 == kRounds), compute::Accumulate::overwrite);
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto gradients = exchange->lane_arenas(lane).gradients.as<float>();
      const std::size_t chunk = static_cast<std::size_t>(k) * chunks +
                                static_cast<std::size_t>(comm.rank() * kLanes + lane);
      for (const Range& used : compute::used_gradients(layout, 0, 1)) {
        for (std::size_t i = used.begin; i < used.end; ++i) gradients[i] = uneven(chunk, i);
      }
    }
    exchange->ready(layout.gradient_size);
  }
  exchange->finish([&](Range range) {
    const auto sums = exchange->arenas().gradients.as<float>();
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const float expected = expected_sum(layout, kRounds * chunks, i);
      if (sums[i] != expected) FAIL() << sums[i] << " instead of " << expected << " at " << i;
    }
  });
}

void sums_in_order(comm::Communicator& comm) {
  expect_order(comm, layout_of_counts({9000, 17}, DType::f32));
}

/// Leaves that hold the factors of two parameters.
void products_in_order(comm::Communicator& comm) {
  compute::ParameterLayout layout = layout_of_counts({9000, 50 * 400, 17, 30 * 160}, DType::f32);
  layout.parameters[1].factors = compute::Factors{.images = 3, .rows = 50, .columns = 400};
  layout.parameters[3].factors = compute::Factors{.images = 3, .rows = 30, .columns = 160};
  expect_order(comm, layout);
}

}  // namespace

std::vector<comm::CommCase> ordered_exchange_cases() {
  return {{"sums_in_order", sums_in_order}, {"products_in_order", products_in_order}};
}

}  // namespace cputrain::exchange
