#pragma once

#include <memory>

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

}  // namespace cputrain::exchange
