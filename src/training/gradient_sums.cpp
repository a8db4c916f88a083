#include "training/gradient_sums.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "exchange/compression/compression.h"
#include "exchange/exchange.h"
#include "exchange/exchanges.h"

namespace cputrain::training {
namespace {

/// An arena of so many float32 that begins with the parameter.
compute::ParameterLayout layout_of(compute::Parameter parameter, std::size_t elements) {
  compute::ParameterLayout layout;
  layout.parameters.push_back(std::move(parameter));
  layout.gradient_size = layout.arena_size = elements;
  return layout;
}

compute::ParameterLayout dense_layout(std::size_t elements) {
  constexpr std::size_t kColumns = 512;
  const std::size_t rows = elements / kColumns, whole = rows * kColumns;
  return layout_of({.name = "kernel",
                    .extents = {static_cast<int>(rows), static_cast<int>(kColumns)},
                    .count = whole,
                    .range = {0, whole},
                    .decays = true,
                    .learnt = true,
                    .averaged = false,
                    .l2 = 0},
                   elements);
}

}  // namespace

std::string automatic_allreduce(comm::Communicator& communicator, std::size_t elements,
                                const comm::SumArrays& sum) {
  const exchange::ExchangeParts parts{.communicator = communicator,
                                      .layout = layout_of({.name = "all",
                                                           .extents = {static_cast<int>(elements)},
                                                           .count = elements,
                                                           .range = {0, elements},
                                                           .decays = false,
                                                           .learnt = true,
                                                           .averaged = false,
                                                           .l2 = 0},
                                                          elements),
                                      .bucket_bytes = elements * sizeof(float),
                                      .sum = sum};
  return comm::to_text(exchange::make_exchange(parts, {}).choice);
}

std::vector<std::string> compressions() {
  std::vector<std::string> words;
  for (const exchange::Compression& compression : exchange::compressions()) {
    words.push_back(exchange::to_text(compression));
  }
  return words;
}

CompressedSum compressed_sum(const std::string& compression, std::size_t elements,
                             comm::Channel channel) {
  const Range all{0, elements};
  const std::shared_ptr<exchange::GradientSum> sum = exchange::make_gradient_sum(
      exchange::parse_compression(compression), dense_layout(elements), std::move(channel));
  return {exchange::compression_ratio(*sum, {&all, 1}, DType::f32),
          [=](const Array& gradient) { sum->sum(all, gradient); }};
}

}  // namespace cputrain::training
