// How many blocks with 72 KB of shared memory a multiprocessor really holds at once, as the driver
// sets its carve-out and as a kernel may wish it: E6.
#include <algorithm>

#include "cuda/probes/groups.h"
#include "cuda/probes/probe.h"

namespace cputrain::cuda::probes {
namespace {

constexpr int kThreads = 128, kShared = 72 << 10, kBlocksEach = 6, kMostMultiprocessors = 1024;

struct Count {
  unsigned now, most;
};

/// Two instances, since a kernel keeps its attributes.
template <bool kAllShared>
__global__ void __launch_bounds__(kThreads) residents_kernel(Count* counts) {
  extern __shared__ char unused[];
  if (threadIdx.x != 0) return;
  unused[0] = 0;
  unsigned here;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
  Count& count = counts[here % kMostMultiprocessors];
  atomicMax(&count.most, atomicAdd(&count.now, 1) + 1);
  spin(300'000);
  atomicSub(&count.now, 1);
}

struct Residents {
  unsigned least = 0, most = 0;
  int promised = 0;  ///< by the occupancy call
};

template <bool kAllShared>
Residents residents() {
  const auto kernel = residents_kernel<kAllShared>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "the attribute for 72 KB of shared memory");
  if (kAllShared) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100),
          "the attribute for the carve-out");
  }
  Residents found;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&found.promised, kernel, kThreads, kShared),
        "the occupancy call");
  const TestStream stream;
  const TestArray<Count> counts(kMostMultiprocessors);
  kernel<<<kBlocksEach * multiprocessors(), kThreads, kShared, stream>>>(counts.data());
  stream.wait("blocks of 72 KB");
  for (const Count& count : counts.read()) {
    if (count.most == 0) continue;  // no multiprocessor has this number
    found.least = found.least == 0 ? count.most : std::min(found.least, count.most);
    found.most = std::max(found.most, count.most);
  }
  return found;
}

void say_residents(const char* name, const Residents& r) {
  say({.name = name,
       .question = "E6",
       .value = r.least,
       .unit = "blocks",
       .verdict = verdict_of(r.least >= 2),
       .text =
           words("multiprocessors held %u to %u blocks at once; the occupancy call says %d, the "
                 "plans of products 2",
                 r.least, r.most, r.promised)});
}

}  // namespace

void ask_residents() {
  say_residents("residents-72-kb", residents<false>());
  say_residents("residents-72-kb-carve-out-100", residents<true>());
}

}  // namespace cputrain::cuda::probes
