#pragma once

#include <memory>

#include "compute/parameters.h"
#include "exchange/gradient_sum.h"

/// Sums that send fewer bytes; each file begins with the method and its source. T is the type of
/// the gradients.
namespace cputrain {

template <class T>
std::unique_ptr<GradientSum> make_fp16_sum(Channel);
template <class T>
std::unique_ptr<GradientSum> make_bf16_sum(Channel);
/// `elements` of the arena, `fraction` of each range sent, in (0, 1].
template <class T>
std::unique_ptr<GradientSum> make_top_k_sum(std::size_t elements, double fraction, Channel);
template <class T>
std::unique_ptr<GradientSum> make_power_sgd_sum(const ParameterLayout&, int rank, Channel);

}  // namespace cputrain
