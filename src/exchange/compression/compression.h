#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "compute/parameters/parameters.h"
#include "core/names.h"
#include "exchange/compression/gradient_sum.h"

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

// Sums that send fewer bytes; each file begins with the method and its source. T is the type of the
// gradients.

template <class T>
std::unique_ptr<GradientSum> make_fp16_sum(comm::Channel);
template <class T>
std::unique_ptr<GradientSum> make_bf16_sum(comm::Channel);
/// `elements` of the arena, `fraction` of each range sent, in (0, 1].
template <class T>
std::unique_ptr<GradientSum> make_top_k_sum(std::size_t elements, double fraction, comm::Channel);
template <class T>
std::unique_ptr<GradientSum> make_power_sgd_sum(const compute::ParameterLayout&, int rank,
                                                comm::Channel);

// For those that send a part: what they do with the rest, which a checkpoint may have put there.

/// For elements that travel as they are from now on: adds what is owed of them to what is sent.
/// Only what is owed is written, since pages of zeros may take no memory.
template <class T>
void send_owed(std::span<T> unsent, std::span<T> sent) {
  for (std::size_t i = 0; i < unsent.size(); ++i) {
    if (unsent[i] == 0) continue;
    sent[i] += unsent[i];
    unsent[i] = 0;
  }
}

template <class T>
void clear_nonfinite(std::span<T> values) {
  for (T& value : values) {
    if (!std::isfinite(value)) value = 0;
  }
}

}  // namespace cputrain::exchange
