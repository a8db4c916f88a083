#include "backends/cuda/kernels/losses.h"

#include <cmath>

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/warp_sums.h"

namespace cputrain::cuda {
namespace {

inline constexpr int kThreads = 128, kRows = kThreads / kWarp;
inline constexpr int kFive = 5;

/// What the loss of an image is made of: own * loss(label) + others * loss(other).
struct Target {
  std::int32_t label, other;
  double own, others;

  CPUTRAIN_DEVICE double total() const { return own + others; }
  CPUTRAIN_DEVICE double of(std::int32_t c) const {
    return (c == label ? own : 0) + (c == other ? others : 0);
  }
};

CPUTRAIN_DEVICE Target target_of(const PassFacts& facts, int image) {
  const std::int32_t label = facts.labels[image];
  if (!facts.mixed) return {label, label, 1, 0};
  const compute::MixedLabel mixed = facts.mixed[image];
  return {label, mixed.other, mixed.own, mixed.others};
}

/// The largest logit, and sums over the row.
struct RowSums {
  double top, exponentials, logits;
};

/// Leaves exp(logit - top) in `slopes`, where the same lanes find their own again.
template <class Stored>
CPUTRAIN_DEVICE RowSums sum_row(int classes, int lane, const Stored* logits, double* slopes) {
  float largest = -INFINITY;
  for (int c = lane; c < classes; c += kWarp) {
    const float logit = number_of(logits[c]);
    largest = logit > largest ? logit : largest;
  }
  const double top = warp_largest(largest);
  double exponentials = 0, sum = 0;
#pragma unroll 2
  for (int c = lane; c < classes; c += kWarp) {
    const double logit = number_of(logits[c]);
    const double exponential = exp(logit - top);
    slopes[c] = exponential;
    exponentials += exponential;
    sum += logit;
  }
  return {top, warp_sum(exponentials), warp_sum(sum)};
}

/// A warp for each image.
template <class Stored>
__global__ void __launch_bounds__(kThreads)
    softmax_forward_kernel(LossCall call, const Stored* __restrict__ logits,
                           float* __restrict__ probabilities, double* __restrict__ slopes,
                           ImageLoss* __restrict__ losses) {
  const int lane = thread_number() % kWarp;
  const int image = block_number() * kRows + thread_number() / kWarp;
  if (image >= call.images) return;
  const Stored* z = logits + offset_of_row(image, call.row);
  float* of_image = probabilities + offset_of_row(image, call.classes);
  double* slope = slopes + offset_of_row(image, call.classes);
  const RowSums sums = sum_row(call.classes, lane, z, slope);
  const Target target = target_of(*call.facts, image);
  const std::int32_t label = target.label;
  const double total = target.total(), everywhere = total * call.smoothing / call.classes;
  // One logit that is NaN makes all probabilities so, and none of them wins.
  Winner winner{-1, call.classes};
  // By the words of the loop below, so that it is the label's own to the last bit.
  const double of_label = exp(number_of(z[label]) - sums.top);
  const float truth = static_cast<float>(of_label / sums.exponentials);
  int before = 0;
#pragma unroll 1
  for (int c = lane; c < call.classes; c += kWarp) {
    const double exact = slope[c] / sums.exponentials;
    const float probability = static_cast<float>(exact);
    of_image[c] = probability;
    slope[c] = total * exact - ((1 - call.smoothing) * target.of(c) + everywhere);
    winner.meet(probability, c);
    before += probability > truth || (probability == truth && c < label) ? 1 : 0;
  }
  winner = warp_winner(winner);
  before = warp_sum(before);
  if (lane > 0) return;
  const double mean = sums.logits / call.classes;
  double labels = target.own * number_of(z[label]);
  if (target.others != 0) labels += target.others * number_of(z[target.other]);
  const double loss = total * (log(sums.exponentials) + sums.top) - (1 - call.smoothing) * labels -
                      total * call.smoothing * mean;
  losses[image] = {loss, winner.place == label, winner.place < call.classes && before < kFive};
}

template <class Stored>
__global__ void __launch_bounds__(kThreads)
    sigmoid_forward_kernel(LossCall call, const Stored* __restrict__ logits,
                           float* __restrict__ probabilities, double* __restrict__ slopes,
                           ImageLoss* __restrict__ losses) {
  const int image = block_number() * kThreads + thread_number();
  if (image >= call.images) return;
  const double z = number_of(logits[offset_of_row(image, call.row)]);
  const Target t = target_of(*call.facts, image);
  const double target = t.of(1) * (1 - call.smoothing) + t.total() * call.smoothing / 2;
  const double tail = exp(-fabs(z));
  const double exact = z >= 0 ? 1 / (1 + tail) : tail / (1 + tail);
  // Keeps NaN, as the host's std::max(z, 0.0).
  const double loss = t.total() * ((z < 0 ? 0 : z) + log1p(tail)) - z * target;
  const float probability = static_cast<float>(exact);
  probabilities[image] = probability;
  slopes[image] = t.total() * exact - target;
  const bool number = probability == probability;
  losses[image] = {loss, number && (probability > 0.5f ? 1 : 0) == t.label, 0};
}

/// Losses of a few images, read by all threads at once and then added up by one.
__global__ void __launch_bounds__(kThreads)
    add_losses_kernel(int images, const ImageLoss* __restrict__ losses,
                      LossSums* __restrict__ sums) {
  auto& read = shared<ImageLoss[kThreads]>();
  const int thread = thread_number();
  double loss = 0;
  int correct = 0, among_five = 0;
  for (int first = 0; first < images; first += kThreads) {
    const int count = images - first < kThreads ? images - first : kThreads;
    if (thread < count) read[thread] = losses[first + thread];
    __syncthreads();
    for (int i = 0; thread == 0 && i < count; ++i) {
      loss += read[i].loss;
      correct += read[i].correct;
      among_five += read[i].among_five;
    }
    __syncthreads();
  }
  if (thread > 0) return;
  sums->loss += loss;
  sums->correct += correct;
  sums->among_five += among_five;
  sums->images += images;
}

template <class N>
__global__ void __launch_bounds__(kPackThreads)
    cross_entropy_backward_kernel(LossCall call, const double* __restrict__ slopes,
                                  typename N::Stored* __restrict__ diff_logits) {
  const auto place = PackPlace::of_thread<N>();
  if (!place.inside(call.images, call.row)) return;
  const double* row = slopes + offset_of_row(place.position, call.classes);
  const double scale = call.facts->loss_scale;
  Pack<N> diff = Pack<N>::all(0);
#pragma unroll
  for (int i = 0; i < Pack<N>::kCount; ++i) {
    const int c = place.channel + i;
    if (c < call.classes) diff.of[i] = static_cast<float>(scale * row[c]);
  }
  diff.store(diff_logits + place.offset(call.row));
}

}  // namespace

void cross_entropy_forward(Stream stream, Numbers numbers, const LossCall& call, const void* logits,
                           float* probabilities, double* slopes, ImageLoss* losses) {
  if (call.images == 0) return;
  with_numbers(numbers, [&]<class N>(N) {
    using Stored = typename N::Stored;
    const bool sigmoid = call.classes == 1;
    launch(stream, sigmoid ? "sigmoid_forward" : "softmax_forward",
           sigmoid ? sigmoid_forward_kernel<Stored> : softmax_forward_kernel<Stored>,
           grid_of(pieces(call.images, sigmoid ? kThreads : kRows)), dim3(kThreads), 0, call,
           logits, probabilities, slopes, losses);
  });
}

void add_losses(Stream stream, int images, const ImageLoss* losses, LossSums* sums) {
  if (images == 0) return;
  launch(stream, "add_losses", add_losses_kernel, dim3(1), dim3(kThreads), 0, images, losses, sums);
}

void cross_entropy_backward(Stream stream, Numbers numbers, const LossCall& call,
                            const double* slopes, void* diff_logits) {
  with_numbers(numbers, [&]<class N>(N) {
    launch_packs<N>(stream, "cross_entropy_backward", cross_entropy_backward_kernel<N>, call.images,
                    call.row, call, slopes, diff_logits);
  });
}

}  // namespace cputrain::cuda
