#include "backends/cuda/selftest/kernel_cases.h"

namespace cputrain::cuda {

void run_device_cases(int device, std::uint64_t seed, const compute::SelftestSink& run) {
  use_device(device);
  const OwnedStream stream;
  for (const auto plans : {convolution_plans, pool_plans, batch_norm_plans, elementwise_plans,
                           loss_plans, limit_plans}) {
    for (const compute::CasePlan& plan : plans(seed, stream)) run(plan);
  }
}

}  // namespace cputrain::cuda
