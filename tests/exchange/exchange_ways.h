#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exchange/exchanges.h"
#include "tests/support/locked_exchange.h"

/// What the cases of exchange_cases.cpp are made of: layouts, ways to exchange, gradients.
namespace cputrain::exchange {

inline constexpr bool kOverlap = true;

/// Parameters in model order, the last one first in the arena, each on a 64-byte boundary, as
/// lay_out() makes them; written out here so that a mistake there is no excuse here.
inline compute::ParameterLayout layout_of_counts(const std::vector<std::size_t>& counts,
                                                 DType dtype) {
  compute::ParameterLayout layout;
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

/// One way to exchange, made for a layout.
struct Way {
  std::string name;
  std::string allreduce;
  bool overlap = false;
  int lanes = 0;  ///< above 0: sums in the order of leaves
  std::string compression = "none";
  bool locked = false;  ///< arenas that the host cannot touch while an exchange is at work

  std::unique_ptr<GradientExchange> make(comm::Communicator& comm,
                                         const compute::ParameterLayout& layout,
                                         std::size_t bucket_bytes) const {
    if (locked) {
      return std::make_unique<testing::LockedExchange>(
          [&](compute::Memory& memory) { return make_in(memory, comm, layout, bucket_bytes); });
    }
    return make_in(compute::host_memory(), comm, layout, bucket_bytes);
  }

 private:
  std::unique_ptr<GradientExchange> make_in(compute::Memory& memory, comm::Communicator& comm,
                                            const compute::ParameterLayout& layout,
                                            std::size_t bucket_bytes) const {
    ExchangeParts parts{.communicator = comm,
                        .layout = layout,
                        .bucket_bytes = bucket_bytes,
                        .overlap = overlap,
                        .lanes = lanes,
                        .compression = parse_compression(compression),
                        .memory = memory};
    return make_exchange(parts, comm::parse_allreduce(allreduce)).exchange;
  }
};

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

}  // namespace cputrain::exchange
