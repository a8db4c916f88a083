#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "compute/selftest_case.h"

/// Cases of the kernels themselves for `selftest`: launches on maps with padding, beside loops in
/// double. Sizes are functions of the seed; how sums are cut is that of a named number of
/// multiprocessors, not of this device's, so that hashes of two devices can be compared.
namespace cputrain::cuda {

/// All of them, one after the other, on a device.
void run_device_cases(int device, std::uint64_t seed, const compute::SelftestSink& run);

/// The parts; plans put their work into the stream, which they borrow.
std::vector<compute::CasePlan> convolution_plans(Numbers, std::uint64_t seed, const OwnedStream&);
std::vector<compute::CasePlan> first_block_plans(Numbers, std::uint64_t seed, const OwnedStream&);
std::vector<compute::CasePlan> grouped_convolution_plans(Numbers, std::uint64_t seed,
                                                         const OwnedStream&);
std::vector<compute::CasePlan> concat_plans(Numbers, std::uint64_t seed, const OwnedStream&);
std::vector<compute::CasePlan> batch_norm_plans(Numbers, std::uint64_t seed, const OwnedStream&);
std::vector<compute::CasePlan> pool_plans(Numbers, std::uint64_t seed, const OwnedStream&);
std::vector<compute::CasePlan> elementwise_plans(Numbers, std::uint64_t seed, const OwnedStream&);
std::vector<compute::CasePlan> loss_plans(Numbers, std::uint64_t seed, const OwnedStream&);
std::vector<compute::CasePlan> limit_plans(std::uint64_t seed, const OwnedStream&);

}  // namespace cputrain::cuda
