#include "backends/cuda/kernels/updates.h"

#include <variant>

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/shapes.h"
#include "backends/cuda/kernels/warp_sums.h"
#include "optim/update_elements.h"

namespace cputrain::cuda {
namespace {

inline constexpr int kThreads = 256;

/// What a thread takes at a time: four numbers where all arrays begin on 16 bytes, else one.
template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float of[kWidth];
};

template <int kWidth>
CPUTRAIN_DEVICE Pack<kWidth> load(const float* p) {
  return *reinterpret_cast<const Pack<kWidth>*>(p);
}
template <int kWidth>
CPUTRAIN_DEVICE void store(float* p, const Pack<kWidth>& pack) {
  *reinterpret_cast<Pack<kWidth>*>(p) = pack;
}

template <int kWidth>
CPUTRAIN_DEVICE std::size_t first_of_thread() {
  return (static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
}

/// Equally long arrays of a slice. No two overlap.
struct SliceArrays {
  float *weights, *gradients, *state0, *state1, *state2;
  std::size_t size;
};

template <class Element>
CPUTRAIN_DEVICE void apply(const Element& element, float& weight, float& gradient, float& state0,
                           float& state1, float& state2) {
  if constexpr (Element::kStates == 0) {
    element(weight, gradient);
  } else if constexpr (Element::kStates == 1) {
    element(weight, gradient, state0);
  } else if constexpr (Element::kStates == 2) {
    element(weight, gradient, state0, state1);
  } else {
    element(weight, gradient, state0, state1, state2);
  }
}

template <class Element, int kWidth, bool kUpdates>
CPUTRAIN_DEVICE void work_on(const Element& element, float keep, const SliceArrays& a,
                             std::size_t i) {
  Pack<kWidth> weights = load<kWidth>(a.weights + i), gradients = load<kWidth>(a.gradients + i);
  Pack<kWidth> state0{}, state1{}, state2{};
  if constexpr (Element::kStates > 0) state0 = load<kWidth>(a.state0 + i);
  if constexpr (Element::kStates > 1) state1 = load<kWidth>(a.state1 + i);
  if constexpr (Element::kStates > 2) state2 = load<kWidth>(a.state2 + i);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    if constexpr (kUpdates) weights.of[k] *= keep;
    apply(element, weights.of[k], gradients.of[k], state0.of[k], state1.of[k], state2.of[k]);
  }
  store(kUpdates ? a.weights + i : a.gradients + i, kUpdates ? weights : gradients);
  if constexpr (Element::kStates > 0) store(a.state0 + i, state0);
  if constexpr (Element::kStates > 1) store(a.state1 + i, state1);
  if constexpr (Element::kStates > 2) store(a.state2 + i, state2);
}

/// Changes the weights, multiplied by `keep` before, or, where not kUpdates, the gradients.
template <class Element, int kWidth, bool kUpdates>
__global__ void __launch_bounds__(kThreads)
    element_kernel(Element element, float keep, SliceArrays a) {
  const std::size_t first = first_of_thread<kWidth>();
  if (first + kWidth <= a.size) {
    work_on<Element, kWidth, kUpdates>(element, keep, a, first);
  } else {
    for (std::size_t i = first; i < a.size; ++i) {
      work_on<Element, 1, kUpdates>(element, keep, a, i);
    }
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    sum_arrays_kernel(Summands summands, std::size_t size, float* dst) {
  const std::size_t first = first_of_thread<kWidth>();
  if (first >= size) return;
  const std::size_t left = size - first;
  Pack<kWidth> sum{};
#pragma unroll
  for (int s = 0; s < kMostSummands; ++s) {
    if (s >= summands.count) break;
    Pack<kWidth> next{};
    if (left >= kWidth) {
      next = load<kWidth>(summands.src[s] + first);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if (static_cast<std::size_t>(k) < left) next.of[k] = summands.src[s][first + k];
      }
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum.of[k] = s == 0 ? next.of[k] : sum.of[k] + next.of[k];
  }
  if (left >= kWidth) {
    store(dst + first, sum);
  } else {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (static_cast<std::size_t>(k) < left) dst[first + k] = sum.of[k];
    }
  }
}

struct WarpSums {
  double of[kThreads / kWarp];
};

/// A block for each block of the norm. Squares of floats are exact in double; threads' sums are
/// added in an order that depends on nothing.
__global__ void __launch_bounds__(kThreads)
    block_norms_kernel(const float* __restrict__ values, std::size_t size, std::size_t position,
                       double* __restrict__ norms) {
  auto& sums = shared<WarpSums>();
  const optim::NormRange range = optim::norm_range(position, size, blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (std::size_t i = range.begin + threadIdx.x; i < range.end; i += kThreads) {
    const double value = static_cast<double>(values[i]);
    sum += value * value;
  }
  sum = warp_sum(sum);
  if (thread % kWarp == 0) sums.of[thread / kWarp] = sum;
  __syncthreads();
  if (thread > 0) return;
  double all = 0;
#pragma unroll
  for (int warp = 0; warp < kThreads / kWarp; ++warp) all += sums.of[warp];
  norms[blockIdx.x] = all;
}

bool begins_on_16_bytes(const float* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

template <int kWidth>
dim3 grid_for(std::size_t size) {
  return dim3(static_cast<unsigned>(pieces(size, static_cast<std::size_t>(kThreads) * kWidth)));
}

SliceArrays arrays_of(const optim::UpdateSlice& slice) {
  const auto floats = [](const Array& array) { return array.as<float>().data(); };
  return {floats(slice.weights),  floats(slice.gradients), floats(slice.state[0]),
          floats(slice.state[1]), floats(slice.state[2]),  slice.weights.size};
}

template <bool kUpdates, class Element>
void start(Stream stream, const char* name, const Element& element, float keep,
           const SliceArrays& a) {
  bool aligned = begins_on_16_bytes(a.weights) && begins_on_16_bytes(a.gradients);
  const float* const states[] = {a.state0, a.state1, a.state2};
  for (int i = 0; i < Element::kStates; ++i) aligned = aligned && begins_on_16_bytes(states[i]);
  if (aligned) {
    launch(stream, name, element_kernel<Element, 4, kUpdates>, grid_for<4>(a.size), dim3(kThreads),
           0, element, keep, a);
  } else {
    launch(stream, name, element_kernel<Element, 1, kUpdates>, grid_for<1>(a.size), dim3(kThreads),
           0, element, keep, a);
  }
}

}  // namespace

void update(Stream stream, const optim::UpdateRule& rule, const optim::UpdateSlice& slice) {
  const SliceArrays arrays = arrays_of(slice);
  if (arrays.size == 0) return;
  const double rate = slice.learning_rate;
  const float keep =
      slice.weight_decay > 0 ? optim::kept_by_decay<float>(rate, slice.weight_decay) : 1;
  const auto begin = [&](const auto& element) {
    start<true>(stream, "update", element, keep, arrays);
  };
  std::visit(
      [&](const auto& r) { optim::with_update(r, static_cast<float>(rate), slice.step, begin); },
      rule);
}

void change_gradients(Stream stream, const optim::GradientOperation& operation,
                      const optim::UpdateSlice& slice) {
  const SliceArrays arrays = arrays_of(slice);
  if (arrays.size == 0) return;
  const auto begin = [&](const auto& element) {
    start<false>(stream, "change_gradients", element, 1, arrays);
  };
  std::visit([&](const auto& o) { optim::with_change<float>(o, slice.step, begin); }, operation);
}

void sum_arrays(Stream stream, const Summands& summands, std::size_t size, float* dst) {
  if (size == 0 || summands.count == 0) return;
  bool aligned = begins_on_16_bytes(dst);
  for (int s = 0; s < summands.count; ++s) {
    aligned = aligned && begins_on_16_bytes(summands.src[s]);
  }
  if (aligned) {
    launch(stream, "sum_arrays", sum_arrays_kernel<4>, grid_for<4>(size), dim3(kThreads), 0,
           summands, size, dst);
  } else {
    launch(stream, "sum_arrays", sum_arrays_kernel<1>, grid_for<1>(size), dim3(kThreads), 0,
           summands, size, dst);
  }
}

void block_norms(Stream stream, const float* values, std::size_t size, std::size_t position,
                 double* sums) {
  const std::size_t blocks = optim::norm_blocks(position, size);
  if (blocks == 0) return;
  launch(stream, "block_norms", block_norms_kernel, dim3(static_cast<unsigned>(blocks)),
         dim3(kThreads), 0, values, size, position, sums);
}

}  // namespace cputrain::cuda
