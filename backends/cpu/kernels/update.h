#pragma once

#include <span>

#include "optim/update_rule.h"

namespace cputrain::cpu {

/// Applies the rule to a slice with the calling thread's OpenMP threads.
void update_in_parallel(const optim::UpdateStep&, double weight_decay, const optim::UpdateSlice&);

/// Backend::change_gradients and block_norms with these threads.
void change_gradients_in_parallel(const optim::GradientOperation&, const optim::UpdateSlice&);
void block_norms_in_parallel(const Array&, std::size_t position, std::span<double> blocks);

}  // namespace cputrain::cpu
