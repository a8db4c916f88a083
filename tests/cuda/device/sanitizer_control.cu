// A program with a known mistake in a kernel, so that what a tool of compute-sanitizer says of
// other kernels counts:
//   sanitizer_control out-of-bounds | race | uninitialised | divergent-barrier
// Ends with 0 where the kernel was started, 77 without a GPU, 2 for other words. The mistake itself
// may end the kernel.
#include <cuda_runtime.h>

#include <cstdio>
#include <string_view>

namespace {

constexpr int kThreads = 64;
constexpr int kNumbers = 1024;  // in the device's memory

__global__ void control_out_of_bounds(int* numbers) { numbers[kNumbers + threadIdx.x] = 1; }

__global__ void control_race(int* numbers) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  // The other warp's number, without a barrier.
  numbers[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

__global__ void control_uninitialised(int* numbers) {
  numbers[threadIdx.x] = numbers[kThreads + threadIdx.x] + 1;
}

__global__ void control_divergent_barrier(int* numbers) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = 1;
  // Half of the second warp stays away.
  if (threadIdx.x < kThreads - 16) {
    shared[threadIdx.x] += numbers[threadIdx.x];
    __syncthreads();
  }
  numbers[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

struct Control {
  std::string_view word;
  void (*kernel)(int*);
  bool initialised;
};

constexpr Control kControls[] = {{"out-of-bounds", control_out_of_bounds, true},
                                 {"race", control_race, true},
                                 {"uninitialised", control_uninitialised, false},
                                 {"divergent-barrier", control_divergent_barrier, true}};

bool fails(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return false;
  std::printf("sanitizer_control: %s fails: %s\n", what, cudaGetErrorString(status));
  return true;
}

int make(const Control& control) {
  int* numbers = nullptr;
  if (fails(cudaMalloc(&numbers, kNumbers * sizeof(int)), "cudaMalloc")) return 1;
  if (control.initialised && fails(cudaMemset(numbers, 0, kNumbers * sizeof(int)), "cudaMemset")) {
    return 1;
  }
  control.kernel<<<1, kThreads>>>(numbers);
  if (fails(cudaGetLastError(), "the start of the kernel")) return 1;
  if (!fails(cudaDeviceSynchronize(), "the kernel")) cudaFree(numbers);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  for (const Control& control : kControls) {
    if (argc != 2 || control.word != argv[1]) continue;
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
      std::printf("skipped: no GPU: %s\n", cudaGetErrorString(status));
      return kSkipped;
    }
    return make(control);
  }
  std::fputs(
      "sanitizer_control: name one mistake: out-of-bounds, race, uninitialised, "
      "divergent-barrier\n",
      stderr);
  return 2;
}
