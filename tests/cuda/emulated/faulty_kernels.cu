#include <algorithm>
#include <map>

#include "backends/cuda/device/tensor_core.h"
#include "emulated/test_kernels.h"

/// Kernels that are wrong in one way each. FAULT marks the line that a report must name.
namespace cputrain::emulated {
namespace {

using cuda::dynamic_shared;
using cuda::shared;

using Arguments = FaultyArguments;

__global__ void reads_behind(Arguments a) {
  const float next = a.x[threadIdx.x + 1];  // FAULT
  a.y[threadIdx.x] = next;
}

__global__ void writes_before(Arguments a) {
  a.y[static_cast<int>(threadIdx.x) - 1] = 1;  // FAULT
}

__global__ void reads_unwritten(Arguments a) {
  const float nothing = a.y[128 + threadIdx.x];  // FAULT
  a.y[threadIdx.x] = nothing;
}

__global__ void reads_unwritten_shared(Arguments a) {
  auto& s = shared<Row>();
  if (threadIdx.x != 7) s.v[threadIdx.x] = a.x[threadIdx.x];
  __syncthreads();
  a.y[threadIdx.x] = s.v[threadIdx.x];  // FAULT
}

__global__ void no_syncwarp(Arguments a) {
  auto& s = shared<Row>();
  s.v[threadIdx.x] = a.x[threadIdx.x];
  if (threadIdx.x % 2 == 0) return;
  a.y[threadIdx.x] = s.v[threadIdx.x - 1];  // FAULT
}

__global__ void syncwarp_between_warps(Arguments a) {
  auto& s = shared<Row>();
  s.v[threadIdx.x] = a.x[threadIdx.x];
  __syncwarp();
  if (threadIdx.x == 0) a.y[0] = s.v[63];  // FAULT
}

__global__ void overwrites_what_is_read(Arguments a) {
  auto& s = shared<Row>();
  float sum = 0;
  for (int round = 0; round < 3; ++round) {
    s.v[threadIdx.x] = a.x[threadIdx.x] + static_cast<float>(round);  // FAULT
    __syncthreads();
    sum += s.v[63 - threadIdx.x];  // FAULT: no barrier before the next round
  }
  a.y[threadIdx.x] = sum;
}

__global__ void two_writers_of_shared(Arguments a) {
  auto& s = shared<Row>();
  s.v[threadIdx.x / 2] = static_cast<float>(threadIdx.x);  // FAULT
  __syncthreads();
  a.y[threadIdx.x] = s.v[threadIdx.x / 2];
}

__global__ void two_writers_of_a_byte(Arguments a) {
  a.bytes[threadIdx.x / 2] = static_cast<std::uint8_t>(threadIdx.x);  // FAULT
}

__global__ void blocks_write_the_same(Arguments a) {
  a.y[threadIdx.x] = static_cast<float>(blockIdx.x);  // FAULT
}

__global__ void blocks_read_each_other(Arguments a) {
  if (blockIdx.x == 0) a.y[threadIdx.x] = 1;
  if (blockIdx.x == 1) a.y[64 + threadIdx.x] = a.y[threadIdx.x];  // FAULT
}

__global__ void neighbour_in_global(Arguments a) {
  a.y[threadIdx.x] = 1;
  a.y[64 + threadIdx.x] = a.y[threadIdx.x & ~1u];  // FAULT
}

__global__ void atomic_and_plain(Arguments a) {
  auto* counts = reinterpret_cast<int*>(a.x);
  if (threadIdx.x == 0) {
    counts[0] = 0;
  } else {
    atomicAdd(counts, 1);  // FAULT
  }
}

__global__ void reads_host(Arguments a) {
  const float from_host = a.host[threadIdx.x];  // FAULT
  a.y[threadIdx.x] = from_host;
}

__global__ void writes_host(Arguments a) {
  a.host[threadIdx.x] = 1;  // FAULT
}

__global__ void misaligned(Arguments a) {
  const float4 four = *reinterpret_cast<const float4*>(a.x + 1);  // FAULT
  *reinterpret_cast<float4*>(a.y) = four;
}

__global__ void index_of_local_array(Arguments a, unsigned last) {
  float sums[4] = {1, 2, 3, 4};
  for (unsigned i = 0; i <= last; ++i) sums[i] += a.x[i];  // FAULT
  a.y[threadIdx.x] = sums[threadIdx.x % 4];
}

__global__ void index_of_member(Arguments a, unsigned row) {
  auto& s = shared<Rows>();
  s.v[0][threadIdx.x] = s.v[1][threadIdx.x] = 1;
  __syncthreads();
  a.y[threadIdx.x] = s.v[0][threadIdx.x + row];  // FAULT
}

__global__ void shifts_too_far(Arguments a, unsigned by) {
  a.y[threadIdx.x] = static_cast<float>(1u << by);  // FAULT
}

__global__ void null_pointer(Arguments a, const float* nothing) {
  const float none = nothing[0];  // FAULT
  a.y[threadIdx.x] = none;
}

__global__ void behind_shared_variable(Arguments a) {
  auto& s = shared<Row>();
  float* row = s.v;
  row[threadIdx.x + 1] = 1;  // FAULT
  __syncthreads();
  a.y[threadIdx.x] = row[threadIdx.x];
}

__global__ void behind_dynamic_shared(Arguments a) {
  float* row = &dynamic_shared<float>();
  row[threadIdx.x] = 1;  // FAULT
  a.y[threadIdx.x] = row[threadIdx.x];
}

__global__ void no_wait_for_copy(Arguments a) {
  auto& s = shared<Chunks>();
  if (threadIdx.x < 16) cuda::copy_to_shared(s.v[threadIdx.x], a.x + 4 * threadIdx.x, true);
  cuda::commit_copies();
  __syncthreads();
  a.y[threadIdx.x] = s.v[threadIdx.x / 4][threadIdx.x % 4];  // FAULT
  cuda::wait_for_copies<0>();
}

__global__ void waits_for_one_group_too_few(Arguments a) {
  auto& s = shared<Chunks>();
  if (threadIdx.x < 16) cuda::copy_to_shared(s.v[threadIdx.x], a.x + 4 * threadIdx.x, true);
  cuda::commit_copies();
  cuda::wait_for_copies<1>();
  __syncthreads();
  a.y[threadIdx.x] = s.v[threadIdx.x / 4][threadIdx.x % 4];  // FAULT
  cuda::wait_for_copies<0>();
}

__global__ void no_barrier_behind_wait(Arguments a) {
  auto& s = shared<Chunks>();
  if (threadIdx.x < 16) cuda::copy_to_shared(s.v[threadIdx.x], a.x + 4 * threadIdx.x, true);
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  if (threadIdx.x == 32) a.y[0] = s.v[0][0];  // FAULT
}

__global__ void copy_that_nobody_waits_for(Arguments a) {
  auto& s = shared<Chunks>();
  cuda::copy_to_shared(s.v[threadIdx.x], a.x, true);  // FAULT
  cuda::commit_copies();
}

__global__ void copies_behind(Arguments a) {
  auto& s = shared<Chunks>();
  cuda::copy_to_shared(s.v[threadIdx.x], a.x + 4 * threadIdx.x, true);  // FAULT
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
}

__global__ void misaligned_copy(Arguments a) {
  auto& s = shared<Chunks>();
  cuda::copy_to_shared(s.v[threadIdx.x], a.x + 1, true);  // FAULT
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
}

__global__ void barrier_in_branch(Arguments a) {
  if (threadIdx.x < 32) {
    __syncthreads();  // FAULT
    a.y[threadIdx.x] = 1;
  } else {
    __syncthreads();
  }
}

__global__ void returns_before_barrier(Arguments a) {
  if (threadIdx.x >= 40) return;
  __syncthreads();  // FAULT
  a.y[threadIdx.x] = 1;
}

__global__ void lanes_leave_before_shuffle(Arguments a) {
  if (threadIdx.x % 32 >= 20) return;
  a.y[threadIdx.x] = __shfl_down_sync(~0u, a.x[threadIdx.x], 1);  // FAULT
}

__global__ void lanes_at_two_shuffles(Arguments a) {
  float f = a.x[threadIdx.x];
  if (threadIdx.x % 2) {
    f += __shfl_xor_sync(~0u, f, 2);  // FAULT
  } else {
    f -= __shfl_xor_sync(~0u, f, 2);  // FAULT
  }
  a.y[threadIdx.x] = f;
}

__global__ void shuffle_from_outside(Arguments a) {
  if (threadIdx.x >= 16) return;
  a.y[threadIdx.x] = __shfl_sync(0xffffu, a.x[threadIdx.x], 20);  // FAULT
}

__global__ void lane_not_in_mask(Arguments a) {
  a.y[threadIdx.x] = static_cast<float>(__ballot_sync(0xffffu, 1));  // FAULT
}

__global__ void matrices_of_global(Arguments a) {
  unsigned r[4];
  cuda::load_matrices(r, a.x);  // FAULT
  a.y[threadIdx.x] = __uint_as_float(r[0]);
}

__global__ void misaligned_matrices(Arguments a) {
  auto& s = shared<Chunks>();
  for (int i = 0; i < 4; ++i) s.v[threadIdx.x][i] = 1;
  __syncthreads();
  unsigned r[4];
  cuda::load_matrices(r, &s.v[threadIdx.x % 32][1]);  // FAULT
  a.y[threadIdx.x] = __uint_as_float(r[0]);
}

__global__ void local_variable_of_another(Arguments a) {
  auto& s = shared<const float*>();
  const float mine = a.x[threadIdx.x];
  if (threadIdx.x == 0) s = &mine;
  __syncthreads();
  a.y[threadIdx.x] = *s;  // FAULT
  __syncthreads();
}

__global__ void divides_by_zero(Arguments a, int divisor) {
  a.y[threadIdx.x] = static_cast<float>(100 / divisor);  // FAULT
}

__global__ void too_many_local_variables(Arguments a, int last) {  // FAULT
  volatile float many[40000];
  for (int i = 0; i < last; ++i) many[i] = a.x[0];  // FAULT
  a.y[threadIdx.x] = many[last / 2];
}

struct Case {
  unsigned blocks, threads;
  void (*launch)(cuda::Stream, const char* name, const Case&, const Arguments&);
};

template <auto kKernel, int... kMore>
Case one(unsigned blocks, unsigned threads) {
  return {blocks, threads,
          [](cuda::Stream stream, const char* name, const Case& c, const Arguments& a) {
            constexpr std::size_t kSharedBytes = 32 * sizeof(float);
            cuda::launch(stream, name, kKernel, dim3(c.blocks), dim3(c.threads), kSharedBytes, a,
                         kMore...);
          }};
}

#define CPUTRAIN_FAULTY(kernel, ...) \
  { #kernel, one < kernel __VA_OPT__(, ) __VA_ARGS__>(1, 64) }

void null_case(cuda::Stream stream, const char* name, const Case&, const Arguments& a) {
  const float* nothing = nullptr;
  cuda::launch(stream, name, null_pointer, dim3(1), dim3(64), 0, a, nothing);
}

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all{
      CPUTRAIN_FAULTY(reads_behind),
      CPUTRAIN_FAULTY(writes_before),
      CPUTRAIN_FAULTY(reads_unwritten),
      CPUTRAIN_FAULTY(reads_unwritten_shared),
      CPUTRAIN_FAULTY(no_syncwarp),
      CPUTRAIN_FAULTY(syncwarp_between_warps),
      CPUTRAIN_FAULTY(overwrites_what_is_read),
      CPUTRAIN_FAULTY(two_writers_of_shared),
      CPUTRAIN_FAULTY(two_writers_of_a_byte),
      {"blocks_write_the_same", one<blocks_write_the_same>(2, 32)},
      {"blocks_read_each_other", one<blocks_read_each_other>(2, 32)},
      CPUTRAIN_FAULTY(neighbour_in_global),
      CPUTRAIN_FAULTY(atomic_and_plain),
      CPUTRAIN_FAULTY(reads_host),
      CPUTRAIN_FAULTY(writes_host),
      CPUTRAIN_FAULTY(misaligned),
      CPUTRAIN_FAULTY(index_of_local_array, 4),
      CPUTRAIN_FAULTY(index_of_member, 1),
      CPUTRAIN_FAULTY(shifts_too_far, 32),
      {"null_pointer", {1, 64, null_case}},
      CPUTRAIN_FAULTY(behind_shared_variable),
      CPUTRAIN_FAULTY(behind_dynamic_shared),
      CPUTRAIN_FAULTY(no_wait_for_copy),
      CPUTRAIN_FAULTY(waits_for_one_group_too_few),
      CPUTRAIN_FAULTY(no_barrier_behind_wait),
      CPUTRAIN_FAULTY(copy_that_nobody_waits_for),
      CPUTRAIN_FAULTY(copies_behind),
      CPUTRAIN_FAULTY(misaligned_copy),
      CPUTRAIN_FAULTY(barrier_in_branch),
      CPUTRAIN_FAULTY(returns_before_barrier),
      CPUTRAIN_FAULTY(lanes_leave_before_shuffle),
      CPUTRAIN_FAULTY(lanes_at_two_shuffles),
      {"shuffle_from_outside", one<shuffle_from_outside>(1, 32)},
      {"lane_not_in_mask", one<lane_not_in_mask>(1, 32)},
      CPUTRAIN_FAULTY(matrices_of_global),
      CPUTRAIN_FAULTY(misaligned_matrices),
      CPUTRAIN_FAULTY(local_variable_of_another),
      CPUTRAIN_FAULTY(divides_by_zero, 0),
      CPUTRAIN_FAULTY(too_many_local_variables, 40000)};
  return all;
}

}  // namespace

std::vector<std::string> faulty_kernels() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : cases()) names.push_back(name);
  return names;
}

void launch_faulty(const std::string& kernel, cuda::Stream stream, const FaultyArguments& a) {
  const auto& [name, found] = *cases().find(kernel);
  found.launch(stream, name.c_str(), found, a);
}

}  // namespace cputrain::emulated
