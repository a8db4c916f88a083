#include "backends/cuda/kernels/pass_facts.h"

#include "backends/cuda/device/language.h"

namespace cputrain::cuda {
namespace {

template <class Facts>
__global__ void write_facts_kernel(Facts facts, Facts* dst) {
  *dst = facts;
}

template <class Facts>
void write(Stream stream, const Facts& facts, Facts* dst) {
  launch(stream, "write_facts", write_facts_kernel<Facts>, dim3(1), dim3(1), 0, facts, dst);
}

}  // namespace

void write_facts(Stream stream, const PassFacts& facts, PassFacts* dst) {
  write(stream, facts, dst);
}

void write_facts(Stream stream, const UpdateFacts& facts, UpdateFacts* dst) {
  write(stream, facts, dst);
}

}  // namespace cputrain::cuda
