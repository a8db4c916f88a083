#include "backends/cuda/selftest/kernel_cases.h"

namespace cputrain::cuda {

void run_device_cases(int device, std::uint64_t seed, const compute::SelftestSink& run) {
  use_device(device);
  const OwnedStream stream;
  const auto run_all = [&](const std::vector<compute::CasePlan>& plans) {
    for (const compute::CasePlan& plan : plans) run(plan);
  };
  for (const Numbers numbers : {Numbers::exact, Numbers::tf32, Numbers::bf16}) {
    for (const auto plans :
         {convolution_plans, first_block_plans, grouped_convolution_plans, pool_plans, concat_plans,
          batch_norm_plans, elementwise_plans, loss_plans}) {
      run_all(plans(numbers, seed, stream));
    }
  }
  run_all(limit_plans(seed, stream));
}

}  // namespace cputrain::cuda
