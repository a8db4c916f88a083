// comm/allreduce/sum_arrays.h: the sum takes its time and touches no array.
#include "backends/sim/core.h"
#include "comm/allreduce/sum_arrays.h"
#include "core/casts.h"

namespace cputrain::comm {

void add_to(const Array& dst, const Array&) {
  constexpr double kPasses = 3;  // two are read, one is written
  sim::move_memory(kPasses * to_double(dst.bytes().size()));
}

}  // namespace cputrain::comm
