#include "backends/cuda/kernels/updates.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <variant>

#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/warp_sums.h"
#include "optim/update_elements.h"

namespace cputrain::cuda {
namespace {

inline constexpr int kThreads = 256;

/// What a thread takes at a time: four numbers where all arrays begin on 16 bytes, else one.
template <int kWidth>
using Floats = Pack<ExactNumbers, kWidth>;

template <int kWidth>
CPUTRAIN_DEVICE std::int64_t first_of_thread(std::int64_t block) {
  return (block * kThreads + thread_number()) * kWidth;
}

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

/// All that an update does to an element.
template <class Rule>
struct UpdateElement {
  static constexpr int kStates = Rule::kStates;
  Rule rule;
  float added_weights, limit, keep;

  template <class... State>
  CPUTRAIN_DEVICE void operator()(float& weight, float& gradient, State&... state) const {
    if (added_weights != 0) optim::AddWeightsElement<float>{added_weights}(weight, gradient);
    optim::ClipElement<float>{limit}(weight, gradient);
    weight *= keep;
    rule(weight, gradient, state...);
  }
};

template <class N, int kWidth>
CPUTRAIN_DEVICE void store_as(void* copy, std::int64_t first, const Floats<kWidth>& weights) {
  weights.template as<N>().store(static_cast<typename N::Stored*>(copy) + first);
}

/// `place`: of the first of the weights.
template <int kWidth>
CPUTRAIN_DEVICE void store_copy(const CopiedWeights& copied, const float* place,
                                const Floats<kWidth>& weights) {
  const std::int64_t first = place - copied.weights;
  if (copied.numbers == Numbers::tf32) store_as<Tf32Numbers>(copied.copy, first, weights);
  if (copied.numbers == Numbers::bf16) store_as<Bf16Numbers>(copied.copy, first, weights);
}

template <class Element, int kWidth, bool kUpdates>
CPUTRAIN_DEVICE void work_on(const Element& element, const SliceArrays& a,
                             const CopiedWeights& copied, std::int64_t i) {
  using Few = Floats<kWidth>;
  Few weights = Few::load(a.weights + i), gradients = Few::load(a.gradients + i);
  Few state0{}, state1{}, state2{};
  if constexpr (Element::kStates > 0) state0 = Few::load(a.state0 + i);
  if constexpr (Element::kStates > 1) state1 = Few::load(a.state1 + i);
  if constexpr (Element::kStates > 2) state2 = Few::load(a.state2 + i);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    apply(element, weights.of[k], gradients.of[k], state0.of[k], state1.of[k], state2.of[k]);
  }
  if constexpr (kUpdates) {
    weights.store(a.weights + i);
    store_copy(copied, a.weights + i, weights);
  } else {
    gradients.store(a.gradients + i);
  }
  if constexpr (Element::kStates > 0) state0.store(a.state0 + i);
  if constexpr (Element::kStates > 1) state1.store(a.state1 + i);
  if constexpr (Element::kStates > 2) state2.store(a.state2 + i);
}

/// Changes the weights or, where not kUpdates, the gradients, from `first` on what a thread takes.
template <class Element, int kWidth, bool kUpdates>
CPUTRAIN_DEVICE void work_from(const Element& element, const SliceArrays& a,
                               const CopiedWeights& copied, std::int64_t first) {
  if (first + kWidth <= a.size) {
    work_on<Element, kWidth, kUpdates>(element, a, copied, first);
  } else {
    for (std::int64_t i = first; i < a.size; ++i) {
      work_on<Element, 1, kUpdates>(element, a, copied, i);
    }
  }
}

template <class Element, int kWidth>
__global__ void __launch_bounds__(kThreads) change_kernel(Element element, SliceArrays a) {
  work_from<Element, kWidth, false>(element, a, {}, first_of_thread<kWidth>(block_number()));
}

template <class Rule, int kWidth>
__global__ void __launch_bounds__(kThreads) update_kernel(UpdateCall call) {
  const std::uint32_t number = call.segment_of_block[blockIdx.x];
  const UpdateSegment segment = call.segments[number];
  const UpdateFacts* const facts = call.facts + (call.by_segment ? number : 0);
  const UpdateElement<Rule> element{*reinterpret_cast<const Rule*>(facts->figures),
                                    segment.added_weights, call.limit,
                                    segment.decays ? facts->keep : 1};
  work_from<UpdateElement<Rule>, kWidth, true>(
      element, segment.arrays, call.copied,
      first_of_thread<kWidth>(blockIdx.x - segment.first_block));
}

constexpr int kFactsOfLaunch = 128;
struct SegmentFacts {
  UpdateFacts of[kFactsOfLaunch];
};

__global__ void write_segment_facts_kernel(SegmentFacts facts, int count, UpdateFacts* dst) {
  const int i = thread_number();
  if (i < count) dst[i] = facts.of[i];
}

template <class From, class To>
__global__ void __launch_bounds__(kThreads)
    store_as_kernel(const typename From::Stored* src, std::int64_t size, typename To::Stored* dst) {
  const std::int64_t i = first_of_thread<1>(block_number());
  if (i < size) dst[i] = rounded<To>(number_of(src[i]));
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    sum_arrays_kernel(Summands summands, std::int64_t size, float* dst) {
  const std::int64_t first = first_of_thread<kWidth>(block_number());
  if (first >= size) return;
  const std::int64_t left = size - first;
  Floats<kWidth> sum{};
#pragma unroll
  for (int s = 0; s < kMostSummands; ++s) {
    if (s >= summands.count) break;
    Floats<kWidth> next{};
    if (left >= kWidth) {
      next = Floats<kWidth>::load(summands.src[s] + first);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if (k < left) next.of[k] = summands.src[s][first + k];
      }
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum.of[k] = s == 0 ? next.of[k] : sum.of[k] + next.of[k];
  }
  if (left >= kWidth) {
    sum.store(dst + first);
  } else {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      if (k < left) dst[first + k] = sum.of[k];
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
  const Range range = optim::norm_range(position, size, blockIdx.x);
  const int thread = thread_number();
  double sum = 0;
  for (std::size_t i = range.begin + thread; i < range.end; i += kThreads) {
    const double value = values[i];
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
dim3 grid_for(std::int64_t size) {
  return grid_of(pieces(size, kThreads * kWidth));
}

SliceArrays arrays_of(const optim::UpdateSlice& slice) {
  const auto floats = [](const Array& array) { return array.as<float>().data(); };
  return {floats(slice.weights),  floats(slice.gradients),
          floats(slice.state[0]), floats(slice.state[1]),
          floats(slice.state[2]), static_cast<std::int64_t>(slice.weights.size)};
}

bool is_aligned(const SliceArrays& a) {
  return std::ranges::all_of(
      std::array<const float*, 5>{a.weights, a.gradients, a.state0, a.state1, a.state2},
      begins_on_16_bytes);
}

/// f(element): the rule's at this step.
template <class F>
void with_element(const optim::UpdateStep& step, const F& f) {
  std::visit(
      [&](const auto& rule) {
        optim::with_update(rule, static_cast<float>(step.learning_rate), step.step, f);
      },
      step.rule);
}

}  // namespace

UpdateTable make_table(const optim::UpdatePlan& plan) {
  UpdateTable table;
  for (const optim::UpdateSlice& slice : plan.slices) {
    const SliceArrays arrays = arrays_of(slice);
    if (!is_aligned(arrays)) table.width = 1;
    table.segments.push_back({arrays, static_cast<float>(slice.added_weights), slice.decays, 0});
  }
  for (std::uint32_t i = 0; i < table.segments.size(); ++i) {
    UpdateSegment& segment = table.segments[i];
    const std::size_t blocks = table.segment_of_block.size();
    segment.first_block = static_cast<std::uint32_t>(blocks);
    table.segment_of_block.resize(blocks + pieces(segment.arrays.size, kThreads * table.width), i);
  }
  return table;
}

UpdateFacts update_facts(const optim::UpdateStep& step, double weight_decay) {
  UpdateFacts facts{.keep = optim::kept_by_decay<float>(step.learning_rate, weight_decay)};
  with_element(step, [&]<class Rule>(const Rule& rule) {
    static_assert(sizeof(Rule) <= sizeof(facts.figures));
    std::memcpy(facts.figures, &rule, sizeof(Rule));
  });
  return facts;
}

void update(Stream stream, const optim::UpdateRule& rule, const UpdateCall& call) {
  if (call.blocks == 0) return;
  with_element({rule}, [&]<class Rule>(const Rule&) {
    launch(stream, "update", call.width == 4 ? update_kernel<Rule, 4> : update_kernel<Rule, 1>,
           grid_of(call.blocks), dim3(kThreads), 0, call);
  });
}

void write_segment_facts(Stream stream, const optim::UpdateStep& step, double weight_decay,
                         UpdateFacts* dst) {
  for (std::size_t begin = 0; begin < step.trust.size(); begin += kFactsOfLaunch) {
    const auto trust = step.trust.subspan(begin).first(
        std::min<std::size_t>(kFactsOfLaunch, step.trust.size() - begin));
    SegmentFacts facts{};
    std::ranges::transform(trust, facts.of, [&](double factor) {
      optim::UpdateStep of_segment = step;
      of_segment.learning_rate *= factor;
      return update_facts(of_segment, weight_decay);
    });
    launch(stream, "write_segment_facts", write_segment_facts_kernel, dim3(1), dim3(kFactsOfLaunch),
           0, facts, trust.size(), dst + begin);
  }
}

void change_gradients(Stream stream, const optim::GradientOperation& operation,
                      const optim::UpdateSlice& slice) {
  const SliceArrays arrays = arrays_of(slice);
  if (arrays.size == 0) return;
  std::visit(
      [&](const auto& change) {
        optim::with_change<float>(change, [&]<class Element>(const Element& element) {
          if (is_aligned(arrays)) {
            launch(stream, "change_gradients", change_kernel<Element, 4>, grid_for<4>(arrays.size),
                   dim3(kThreads), 0, element, arrays);
          } else {
            launch(stream, "change_gradients", change_kernel<Element, 1>, grid_for<1>(arrays.size),
                   dim3(kThreads), 0, element, arrays);
          }
        });
      },
      operation);
}

void sum_arrays(Stream stream, const Summands& summands, std::int64_t size, float* dst) {
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

void narrow_gradients(Stream stream, const float* src, std::int64_t size, Bf16* dst) {
  if (size == 0) return;
  launch(stream, "narrow_gradients", store_as_kernel<ExactNumbers, Bf16Numbers>, grid_for<1>(size),
         dim3(kThreads), 0, src, size, dst);
}

void widen_gradients(Stream stream, const Bf16* src, std::int64_t size, float* dst) {
  if (size == 0) return;
  launch(stream, "widen_gradients", store_as_kernel<Bf16Numbers, ExactNumbers>, grid_for<1>(size),
         dim3(kThreads), 0, src, size, dst);
}

void block_norms(Stream stream, const float* values, std::size_t size, std::size_t position,
                 double* sums) {
  const std::size_t blocks = optim::norm_blocks(position, size);
  if (blocks == 0) return;
  launch(stream, "block_norms", block_norms_kernel, grid_of(blocks), dim3(kThreads), 0, values,
         size, position, sums);
}

}  // namespace cputrain::cuda
