#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/allreduce_choice.h"
#include "exchange/compression/compression.h"
#include "tests/exchange/cases.h"

/// What the cases of compressed sums are made of.
namespace cputrain::exchange {

/// One parameter of these extents.
inline compute::ParameterLayout layout_of(std::vector<int> extents, DType dtype,
                                          std::size_t panel = 0) {
  std::size_t count = 1;
  for (const int n : extents) count *= static_cast<std::size_t>(n);
  compute::ParameterLayout layout;
  layout.dtype = dtype;
  layout.parameters = {{.name = "p",
                        .extents = std::move(extents),
                        .count = count,
                        .range = {0, count},
                        .decays = true,
                        .learnt = true,
                        .averaged = false,
                        .l2 = 0,
                        .rate = 1,
                        .panel = panel}};
  layout.gradient_size = layout.arena_size = count;
  return layout;
}

inline std::unique_ptr<GradientSum> make_sum(const std::string& text, comm::Communicator& comm,
                                             const compute::ParameterLayout& layout) {
  return make_gradient_sum(parse_compression(text), layout, comm::open_world(comm, {{"ring"}}));
}

inline compute::ParameterLayout vector_of(std::size_t size, DType dtype) {
  return layout_of({static_cast<int>(size)}, dtype);
}

template <class T>
void expect_same_bits(comm::Communicator& comm, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const auto texts = comm.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::string& text : texts) ASSERT_TRUE(text == texts[0]);
}

/// Gradients of many sizes, as small as they come.
inline float small_number(std::size_t i, int rank) {
  return std::sin(static_cast<float>(i + 1) * static_cast<float>(rank + 1)) *
         std::pow(10.0f, -7.0f - static_cast<float>((i + static_cast<std::size_t>(rank)) % 3));
}

/// A case of one way to compress, "topk:0.1", named "topk_what".
inline comm::CommCase case_of(
    const std::string& text, const std::string& what,
    std::function<void(const std::string& text, comm::Communicator&)> body) {
  return {text.substr(0, text.find(':')) + "_" + what,
          [text, body = std::move(body)](comm::Communicator& comm) { body(text, comm); }};
}

}  // namespace cputrain::exchange
