#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"

/// What a device can do at most: the denominators of efficiency.
namespace cputrain::cuda {

/// Multiply-adds of such numbers that launch_multiply_adds() does, from registers: products of the
/// kind that convolutions take, three of which make one of exact numbers.
double multiply_adds(Numbers, int multiprocessors, int rounds);
/// `sums` has as many floats as multiply_add_sums(): the compiler may not leave the products out.
std::size_t multiply_add_sums(int multiprocessors);
void launch_multiply_adds(Stream, Numbers, int multiprocessors, int rounds, float* sums);

/// a[i] = b[i] + factor * c[i] of doubles (STREAM's triad): 24 bytes for each i.
void launch_triad(Stream, std::size_t size, double factor, const double* b, const double* c,
                  double* a);

}  // namespace cputrain::cuda
