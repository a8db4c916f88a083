#include <fmt/format.h>

#include <memory>

#include "backends/cuda/kernels/products/first_block.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/moved_images.h"
#include "backends/cuda/selftest/plain_convolution.h"
#include "backends/cuda/selftest/plain_pools.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;

constexpr int kColours = 3, kSide = 3;  // of images, of the convolution's window

struct FirstCase {
  int images, height, width, outputs;
  int zeros;  ///< rows and columns around the images
  int multiprocessors;
  /// Weights and gradients have more bits than TF32 has; only in exact. Else the pixels do, where
  /// numbers are floats.
  bool fine_weights;

  std::string text() const {
    return fmt::format("{} x {} x {} -> {}, {}, for {} multiprocessor{}", images, height, width,
                       outputs, zeros == 0 ? "valid" : "same", multiprocessors,
                       multiprocessors == 1 ? "" : "s");
  }
  WindowShape convolution() const {
    const int less = kSide - 1 - 2 * zeros;
    return {.images = images,
            .src = {height, width, kChannelBlock},
            .dst = {height - less, width - less, padded_channels(outputs)},
            .size = kSide,
            .top = zeros,
            .left = zeros};
  }
  WindowShape pool() const {
    const MapShape src = convolution().dst;
    return {.images = images,
            .src = src,
            .dst = {src.height / 2, src.width / 2, src.channels},
            .size = 2,
            .stride = 2};
  }
};

/// Whole numbers, so that every sum is exact and many are equal. Those of two colours are above 256
/// in part, where bf16 rounds them, or above 2048, where TF32 does. No sum reaches 2^24.
class FirstBlockTrial {
 public:
  FirstBlockTrial(Numbers format, const FirstCase& c, CaseNumbers& numbers,
                  const OwnedStream& stream)
      : format_(format),
        scale_(format == Numbers::bf16 || c.fine_weights ? 1.0f : 9.0f),
        case_(c),
        conv_(c.convolution()),
        pool_(c.pool()),
        stream_(stream) {
    const int most = c.fine_weights ? kFine : 3;
    const auto outputs = static_cast<std::size_t>(c.outputs);
    const auto windows = static_cast<std::size_t>(pool_.windows());
    bytes_ = numbers.bytes(static_cast<std::size_t>(conv_.positions()) * kColours);
    weights_ =
        with_padding(numbers.whole(outputs * kSide * kSide * kColours, -most, most), kColours);
    weights_.resize(static_cast<std::size_t>(conv_.weights()));
    bias_ = with_padding(numbers.whole(outputs, -300, 300), c.outputs);
    Floats diffs = numbers.whole(windows * outputs, -3, 3);
    for (std::size_t i = 0; c.fine_weights && i < diffs.size(); i += 49) {
      diffs[i] = static_cast<float>(numbers.between(-kFine, kFine));
    }
    diff_dst_ = with_padding(diffs, c.outputs);
  }

  RunOutputs compute(int run, bool more) const {
    const GuardedArray<std::uint8_t> bytes("bytes", stream_, bytes_, 1);
    const GuardedArray<compute::ImageMove> moves("moves", stream_,
                                                 mirrored(case_.images, case_.height, case_.width));
    const GuardedArray<PassFacts> facts("facts", stream_,
                                        {{.bytes = bytes.data(), .moves = moves.data()}});
    const FirstBlock block{
        .load = {case_.images, case_.height, case_.width, scale_, kOffset, facts.data()},
        .zeros = case_.zeros,
        .dst = pool_.dst};
    const GuardedMap weights("weights", stream_, format_, weights_);
    const GuardedArray<float> bias("bias", stream_, bias_);
    const GuardedMap diff_dst("diff_dst", stream_, format_, diff_dst_);
    const GuardedMap dst("dst", stream_, format_, Floats(diff_dst_.size(), poison_of(run)));
    const GuardedArray<WinnerWord> winners(
        "winners", stream_,
        std::vector<WinnerWord>(diff_dst_.size() / kWinnersOfWord, poison_of_bytes(run)));
    const int slices = first_block_slices(format_, block, case_.multiprocessors);
    first_block_forward(stream_.get(), format_, block, slices, weights.data(),
                        more ? bias.data() : nullptr, dst.data(), winners.data());
    RunOutputs outputs;
    check_padding("dst", dst.put_into(outputs), case_.outputs, outputs);
    outputs.add("winners", places_of(winners.read(outputs)));
    gradients(run, more, block, slices, {diff_dst.data(), winners.data()}, outputs);
    return outputs;
  }
  RunOutputs expect(bool more) const {
    const PlainMaxima maxima = expected_maxima(more);
    const Doubles diff =
        plain_max_gradient(pool_, maxima, diff_dst_,
                           Floats(static_cast<std::size_t>(pool_.images) * pool_.src.size()));
    const Floats diffs(diff.begin(), diff.end());
    RunOutputs outputs;
    outputs.add("dst", maxima.values);
    outputs.add("winners", maxima.places);
    outputs.add("diff_weights", added(reference_weights(conv_, pixels(), diffs), weights_, more));
    outputs.add("diff_bias", added(reference_bias(conv_, diffs), bias_, more));
    return outputs;
  }

 private:
  static constexpr PerColour kOffset{-300, 10, -128};
  static constexpr int kCut = -1, kFine = 2600;

  /// On the device.
  struct PooledDiff {
    const void* diff_dst;
    const WinnerWord* winners;
  };

  /// Added to numbers where there is `more`, as there is a bias then.
  void gradients(int run, bool more, const FirstBlock& block, int slices, const PooledDiff& pooled,
                 RunOutputs& outputs) const {
    const auto start = [&](const Floats& values) {
      return more ? values : Floats(values.size(), poison_of(run));
    };
    const GuardedArray<float> weights("diff_weights", stream_, start(weights_)),
        bias("diff_bias", stream_, start(bias_));
    const GuardedArray<float> sums(
        "sums", stream_,
        Floats(static_cast<std::size_t>(first_block_sums(block, slices)), poison_of(run)));
    first_block_backward_weights(stream_.get(), format_, block, slices, pooled.diff_dst,
                                 pooled.winners, sums.data(), weights.data(), bias.data(), more);
    check_padding("diff_weights", weights.put_into(outputs), kColours, outputs);
    check_padding("diff_bias", bias.put_into(outputs), case_.outputs, outputs);
    sums.read(outputs);
  }

  /// The images as numbers, as they are stored.
  Floats pixels() const {
    const auto moved = mirrored_bytes(bytes_, case_.images, case_.height, case_.width);
    Floats numbers;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      numbers.push_back(
          rounded(format_, static_cast<float>(moved[i]) * scale_ + kOffset.of[i % 3]));
    }
    return with_padding(numbers, kColours);
  }
  PlainMaxima expected_maxima(bool with_bias) const {
    const Doubles sums =
        reference_forward(conv_, pixels(), weights_, with_bias ? bias_ : Floats(bias_.size()));
    PlainMaxima maxima = plain_maxima(pool_, Floats(sums.begin(), sums.end()));
    for (std::size_t i = 0; i < maxima.values.size(); ++i) {
      double& value = maxima.values[i];
      if (!(value > 0)) maxima.places[i] = kCut;
      value = value > 0 ? static_cast<double>(rounded(format_, static_cast<float>(value))) : 0;
    }
    return maxima;
  }
  /// The place whose bit is set, for each number; or the sum of several and 4.
  static Doubles places_of(const std::vector<WinnerWord>& words) {
    Doubles places;
    for (const WinnerWord word : words) {
      for (int i = 0; i < kWinnersOfWord; ++i) {
        int bits = 0, sum = 0;
        for (int place = 0; place < 4; ++place) {
          if (!(word & winner(i, place))) continue;
          ++bits;
          sum += place;
        }
        places.push_back(bits == 0 ? kCut : bits == 1 ? sum : sum + 4);
      }
    }
    return places;
  }
  static Doubles added(Doubles sums, const Floats& before, bool add) {
    for (std::size_t i = 0; add && i < sums.size(); ++i) sums[i] += before[i];
    return sums;
  }

  Numbers format_;
  float scale_;
  FirstCase case_;
  WindowShape conv_, pool_;
  std::vector<std::uint8_t> bytes_;
  Floats weights_, bias_, diff_dst_;
  const OwnedStream& stream_;
};

struct FirstKind {
  int height, width;  ///< about so many
  int outputs, zeros, multiprocessors;
};

}  // namespace

std::vector<CasePlan> first_block_plans(Numbers format, std::uint64_t seed,
                                        const OwnedStream& stream) {
  std::vector<CasePlan> plans;
  int number = 0;
  for (const FirstKind& kind :
       {FirstKind{4, 4, 5, 0, 132}, FirstKind{9, 37, 32, 0, 1}, FirstKind{12, 40, 21, 1, 1},
        FirstKind{7, 70, 33, 1, 132}, FirstKind{17, 21, 72, 0, 1}, FirstKind{8, 9, 16, 1, 132}}) {
    CaseNumbers numbers(seed, fmt::format("first block {}", number++));
    const FirstCase c{.images = numbers.between(1, 3),
                      .height = numbers.between(kind.height, kind.height + 3),
                      .width = numbers.between(kind.width, kind.width + 3),
                      .outputs = kind.outputs,
                      .zeros = kind.zeros,
                      .multiprocessors = kind.multiprocessors,
                      .fine_weights = format == Numbers::exact && number % 2 == 0};
    const auto made = std::make_shared<FirstBlockTrial>(format, c, numbers, stream);
    for (const bool more : {false, true}) {
      plans.push_back({fmt::format("first block{}{}: {}", in_words(format),
                                   more ? ", with a bias, added" : "", c.text()),
                       0, [made, more](int run) { return made->compute(run, more); },
                       [made, more] { return made->expect(more); }});
    }
  }
  return plans;
}

}  // namespace cputrain::cuda
