#include "comm/communicator.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

namespace cputrain::comm {

void sum_numbers(Communicator& communicator, std::span<double* const> numbers) {
  std::array<double, 16> sums;
  assert(numbers.size() <= sums.size());
  std::ranges::transform(numbers, sums.begin(), [](const double* number) { return *number; });
  communicator.sum(Array{sums.data(), numbers.size(), DType::f64});
  for (std::size_t i = 0; i < numbers.size(); ++i) *numbers[i] = sums[i];
}

double mean_of_ranks(Communicator& communicator, double mine) {
  communicator.sum(Array::of<double>({&mine, 1}));
  return mine / communicator.size();
}

std::optional<double> largest_of_ranks(Communicator& communicator, std::optional<double> mine) {
  constexpr double kUnknown = -std::numeric_limits<double>::infinity();
  const double largest = std::ranges::max(gather_values(communicator, mine.value_or(kUnknown)));
  return largest == kUnknown ? std::nullopt : std::optional(largest);
}

}  // namespace cputrain::comm
