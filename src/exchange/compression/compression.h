#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/allreduce/allreduce_choice.h"
#include "compute/parameters/parameters.h"
#include "core/names.h"
#include "exchange/gradient_sum.h"

/// --compress: how gradients travel between ranks, or between nodes.
namespace cputrain::exchange {

struct Compression {
  enum class Method { none, fp16, bf16, topk, powersgd };
  friend constexpr auto names(Method) {
    return std::to_array<Name<Method>>({{Method::none, "none"},
                                        {Method::fp16, "fp16"},
                                        {Method::bf16, "bf16"},
                                        {Method::topk, "topk"},
                                        {Method::powersgd, "powersgd"}});
  }
  Method method = Method::none;
  double fraction = 0.01;  ///< topk: the part that is sent
  int rank = 4;            ///< powersgd

  bool operator==(const Compression&) const = default;
};

/// none | fp16 | bf16 | topk[:FRACTION] | powersgd[:RANK]. Throws Error(usage).
Compression parse_compression(const std::string& text);
/// The same words back.
std::string to_text(const Compression&);
/// Those that change something, each as it is by default.
std::vector<Compression> compressions();

/// Error(usage) where the two exclude each other: what shares memory sends nothing, and a parameter
/// server is there for comparison only.
void check_compression(const Compression&, const comm::AllreduceChoice&);

/// The sum over the channel's ranks of gradients with this layout.
std::unique_ptr<GradientSum> make_gradient_sum(const Compression&, const compute::ParameterLayout&,
                                               comm::Channel);

}  // namespace cputrain::exchange
