#include "backends/cuda/kernels/updates.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/warp_sums.h"
#include "optim/update_elements.h"

namespace cputrain::cuda {
namespace {

/// What a thread takes at a time: four numbers where all arrays begin on 16 bytes, else one.
template <int kWidth>
using Floats = Pack<ExactNumbers, kWidth>;

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

template <class Element, int kWidth, bool kUpdates, std::size_t... kState>
CPUTRAIN_DEVICE void work_on(const Element& element, const SliceArrays& a,
                             const CopiedWeights& copied, std::int64_t i,
                             std::index_sequence<kState...>) {
  using Few = Floats<kWidth>;
  Few weights = Few::load(a.weights + i), gradients = Few::load(a.gradients + i);
  Few state[] = {Few::load(a.state[kState] + i)..., Few{}};  // there may be none
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    element(weights.of[k], gradients.of[k], state[kState].of[k]...);
  }
  if constexpr (kUpdates) {
    weights.store(a.weights + i);
    store_copy(copied, a.weights + i, weights);
  } else {
    gradients.store(a.gradients + i);
  }
  (state[kState].store(a.state[kState] + i), ...);
}

/// Changes the weights or, where not kUpdates, the gradients, from `first` on what a thread takes.
template <class Element, int kWidth, bool kUpdates>
CPUTRAIN_DEVICE void work_from(const Element& element, const SliceArrays& a,
                               const CopiedWeights& copied, std::int64_t first) {
  constexpr auto kStates = std::make_index_sequence<Element::kStates>();
  if (first + kWidth <= a.size) {
    work_on<Element, kWidth, kUpdates>(element, a, copied, first, kStates);
  } else {
    for (std::int64_t i = first; i < a.size; ++i) {
      work_on<Element, 1, kUpdates>(element, a, copied, i, kStates);
    }
  }
}

template <class Element, int kWidth>
__global__ void __launch_bounds__(kPackThreads) change_kernel(Element element, SliceArrays a) {
  work_from<Element, kWidth, false>(element, a, {}, first_of_thread<kWidth>(block_number()));
}

template <class Rule, int kWidth>
__global__ void __launch_bounds__(kPackThreads) update_kernel(UpdateCall call) {
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

template <class Facts>
__global__ void write_facts_kernel(Facts facts, Facts* dst) {
  *dst = facts;
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
__global__ void __launch_bounds__(kPackThreads)
    store_as_kernel(std::int64_t size, const typename From::Stored* src, typename To::Stored* dst) {
  const std::int64_t i = first_of_thread<1>(block_number());
  if (i < size) dst[i] = rounded<To>(number_of(src[i]));
}

template <int kWidth>
__global__ void __launch_bounds__(kPackThreads)
    sum_arrays_kernel(std::int64_t size, Summands summands, float* dst) {
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

/// A block for each block of the norm. Squares of floats are exact in double; threads' sums are
/// added in an order that depends on nothing.
__global__ void __launch_bounds__(kPackThreads)
    block_norms_kernel(const float* __restrict__ values, std::size_t size, std::size_t position,
                       double* __restrict__ norms) {
  auto& sums = shared<double[kPackThreads / kWarp]>();
  const Range range = optim::norm_range(position, size, blockIdx.x);
  const int thread = thread_number();
  double sum = 0;
  for (std::size_t i = range.begin + thread; i < range.end; i += kPackThreads) {
    const double value = values[i];
    sum += value * value;
  }
  sum = warp_sum(sum);
  if (thread % kWarp == 0) sums[thread / kWarp] = sum;
  __syncthreads();
  if (thread > 0) return;
  double all = 0;
#pragma unroll
  for (int warp = 0; warp < kPackThreads / kWarp; ++warp) all += sums[warp];
  norms[blockIdx.x] = all;
}

bool begins_on_16_bytes(const float* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

SliceArrays arrays_of(const optim::UpdateSlice& slice) {
  const auto floats = [](const Array& array) { return array.as<float>().data(); };
  SliceArrays arrays{floats(slice.weights), floats(slice.gradients), {}, {}};
  std::ranges::transform(slice.state, arrays.state, floats);
  arrays.size = static_cast<std::int64_t>(slice.weights.size);
  return arrays;
}

bool is_aligned(const SliceArrays& a) {
  return begins_on_16_bytes(a.weights) && begins_on_16_bytes(a.gradients) &&
         std::ranges::all_of(a.state, begins_on_16_bytes);
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
    table.segment_of_block.resize(blocks + pieces(segment.arrays.size, kPackThreads * table.width),
                                  i);
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
           grid_of(call.blocks), dim3(kPackThreads), 0, call);
  });
}

template <class Facts>
void write_facts(Stream stream, const Facts& facts, Facts* dst) {
  launch(stream, "write_facts", write_facts_kernel<Facts>, dim3(1), dim3(1), 0, facts, dst);
}
template void write_facts(Stream, const PassFacts&, PassFacts*);
template void write_facts(Stream, const UpdateFacts&, UpdateFacts*);

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
          const bool aligned = is_aligned(arrays);
          launch(stream, "change_gradients",
                 aligned ? change_kernel<Element, 4> : change_kernel<Element, 1>,
                 grid_of(pieces(arrays.size, kPackThreads * (aligned ? 4 : 1))), dim3(kPackThreads),
                 0, element, arrays);
        });
      },
      operation);
}

void sum_arrays(Stream stream, const Summands& summands, std::int64_t size, float* dst) {
  if (summands.count == 0) return;
  const bool aligned = begins_on_16_bytes(dst) &&
                       std::all_of(summands.src, summands.src + summands.count, begins_on_16_bytes);
  launch_row(stream, "sum_arrays", aligned ? sum_arrays_kernel<4> : sum_arrays_kernel<1>,
             aligned ? 4 : 1, size, summands, dst);
}

void narrow_gradients(Stream stream, const float* src, std::int64_t size, Bf16* dst) {
  launch_row(stream, "narrow_gradients", store_as_kernel<ExactNumbers, Bf16Numbers>, 1, size, src,
             dst);
}

void widen_gradients(Stream stream, const Bf16* src, std::int64_t size, float* dst) {
  launch_row(stream, "widen_gradients", store_as_kernel<Bf16Numbers, ExactNumbers>, 1, size, src,
             dst);
}

void block_norms(Stream stream, const float* values, std::size_t size, std::size_t position,
                 double* sums) {
  const std::size_t blocks = optim::norm_blocks(position, size);
  if (blocks == 0) return;
  launch(stream, "block_norms", block_norms_kernel, grid_of(blocks), dim3(kPackThreads), 0, values,
         size, position, sums);
}

}  // namespace cputrain::cuda
