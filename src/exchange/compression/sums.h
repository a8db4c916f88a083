#pragma once

#include <cmath>
#include <memory>
#include <span>

#include "compute/parameters/parameters.h"
#include "exchange/gradient_sum.h"

/// Sums that send fewer bytes; each file begins with the method and its source. T is the type of
/// the gradients.
namespace cputrain::exchange {

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
