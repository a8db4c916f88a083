#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/layer_norm.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/plain_batch_norm.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;
using FloatArray = GuardedArray<float>;

constexpr double kEpsilonOfCases = 1e-3;
/// How sums are cut does not depend on the device.
constexpr int kMultiprocessorsOfCases = 8;

/// Makes the arrays of a run. Results hold poison, and so do maps without numbers.
struct ArrayMaker {
  Numbers format;
  int positions, channels, run;
  const OwnedStream& stream;

  FloatArray of_channels(const char* name, const std::vector<float>& values) const {
    return FloatArray(name, stream, with_padding(values, channels));
  }
  FloatArray results(const char* name, std::size_t rows = 1) const {
    return FloatArray(name, stream, std::vector<float>(rows * lanes(), poison_of(run)));
  }
  GuardedMap map(const char* name, const std::vector<float>& numbers = {}) const {
    const std::vector<float> poison(static_cast<std::size_t>(positions) * lanes(), poison_of(run));
    return GuardedMap(name, stream, format,
                      numbers.empty() ? poison : with_padding(numbers, channels));
  }

 private:
  std::size_t lanes() const { return static_cast<std::size_t>(padded_channels(channels)); }
};

struct BatchNormArrays {
  FloatArray gamma, beta, mean, variance, diff_gamma, diff_beta, factors;
  GuardedMap src, other, dst, diff_dst, diff_src;

  BatchNormArrays(const ArrayMaker& make, const BatchNormNumbers& n)
      : gamma(make.of_channels("gamma", n.gamma)),
        beta(make.of_channels("beta", n.beta)),
        mean(make.of_channels("moving mean", std::vector<float>(n.gamma.size()))),
        variance(make.of_channels("moving", std::vector<float>(n.gamma.size()))),
        diff_gamma(make.results("diff_gamma")),
        diff_beta(make.results("diff_beta")),
        factors(make.results("factors", ChannelFactors::kRows)),
        src(make.map("src", n.src)),
        other(make.map("other", n.other)),
        dst(make.map("dst")),
        diff_dst(make.map("diff_dst", n.diff_dst)),
        diff_src(make.map("diff_src", n.before)) {}

  void put_into(RunOutputs& outputs, int channels) const {
    for (const GuardedMap* array : {&dst, &diff_src}) {
      check_padding("a map", array->put_into(outputs), channels, outputs);
    }
    for (const FloatArray* array : {&diff_gamma, &diff_beta, &mean, &variance}) {
      check_padding("a result", array->put_into(outputs), channels, outputs);
    }
    factors.read(outputs);
  }
};

/// One layer with what follows it, forward and backward.
class BatchNormCase {
 public:
  BatchNormCase(Numbers format, CaseNumbers& numbers, int positions, int channels, bool relu,
                bool other, bool add)
      : format_(format), positions_(positions), channels_(channels), relu_(relu) {
    const auto map = [&](float low, float high) {
      return rounded(format,
                     numbers.reals(static_cast<std::size_t>(positions * channels), low, high));
    };
    const auto lanes = static_cast<std::size_t>(channels);
    numbers_ = {.gamma = numbers.reals(lanes, 0.5f, 1.5f),
                .beta = numbers.reals(lanes),
                .src = map(1, 3),
                .diff_dst = map(-1, 1)};
    if (other) numbers_.other = map(-1, 1);
    if (add) numbers_.before = map(-1, 1);
  }

  RunOutputs run(int run, const OwnedStream& owned) const {
    const BatchNormArrays arrays({format_, positions_, channels_, run, owned}, numbers_);
    const GuardedArray<MovedStatistic> moved("moved", owned,
                                             std::vector<MovedStatistic>(numbers_.gamma.size()));
    ChannelSums sums =
        plan_channel_sums(format_, positions_, padded_channels(channels_), kMultiprocessorsOfCases);
    const FloatArray values("sums", owned, std::vector<float>(sums.count(), poison_of(run)));
    sums.values = values.data();
    forward(owned.get(), arrays, sums, moved.data());
    backward(owned.get(), arrays, sums);
    RunOutputs outputs;
    arrays.put_into(outputs, channels_);
    values.read(outputs);
    moved.read(outputs);
    return outputs;
  }

  RunOutputs expected() const {
    const PlainBatchNorm plain = plain_batch_norm(numbers_, kEpsilonOfCases, relu_);
    std::vector<double> mean, variance;
    const double unbiased = positions_ > 1 ? positions_ / (positions_ - 1.0) : 1;
    for (const double m : plain.mean) mean.push_back(m / 2);
    for (const double v : plain.variance) variance.push_back(v * unbiased / 2);
    RunOutputs outputs;
    outputs.add("dst", with_padding(plain.dst, channels_));
    outputs.add("diff_src", with_padding(plain.diff_src, channels_));
    outputs.add("diff_gamma", with_padding(plain.diff_gamma, channels_));
    outputs.add("diff_beta", with_padding(plain.diff_beta, channels_));
    outputs.add("moving mean", with_padding(mean, channels_));
    outputs.add("moving", with_padding(variance, channels_));
    return outputs;
  }

 private:
  bool adds() const { return !numbers_.other.empty(); }
  BatchNormPass pass(const BatchNormArrays& a, bool relu) const {
    return {positions_, {a.factors.data(), padded_channels(channels_)}, relu};
  }

  void forward(Stream stream, const BatchNormArrays& a, const ChannelSums& sums,
               MovedStatistic* moved) const {
    const BatchNormLayer layer{channels_,     kEpsilonOfCases,  0.5, a.gamma.data(), a.beta.data(),
                               a.mean.data(), a.variance.data()};
    measure_channels(stream, format_, sums, a.src.data());
    finish_statistics(stream, sums, layer, pass(a, relu_).factors, moved);
    publish_statistics(stream, channels_, moved);
    normalize(stream, format_, pass(a, relu_), a.src.data(), adds() ? a.other.data() : nullptr,
              a.dst.data());
  }

  /// Behind an addition the slopes' sums have cut the gradient already.
  void backward(Stream stream, const BatchNormArrays& a, const ChannelSums& sums) const {
    sum_slopes(stream, format_,
               {sums, pass(a, relu_), a.src.data(), adds() ? a.dst.data() : nullptr},
               a.diff_dst.data());
    finish_slopes(stream, sums, pass(a, relu_).factors, {a.diff_gamma.data(), a.diff_beta.data()});
    normalize_backward(stream, format_, pass(a, relu_ && !adds()), a.src.data(), a.diff_dst.data(),
                       a.diff_src.data(), !numbers_.before.empty());
  }

  Numbers format_;
  int positions_, channels_;
  bool relu_;
  BatchNormNumbers numbers_;
};

/// Layer normalization: each position by its own channels.
PlainBatchNorm plain_layer_norm(const BatchNormNumbers& n, double epsilon) {
  const std::size_t channels = n.gamma.size();
  const auto all = static_cast<double>(channels);
  PlainBatchNorm made;
  made.diff_gamma.resize(channels);
  made.diff_beta.resize(channels);
  for (std::size_t first = 0; first < n.src.size(); first += channels) {
    const auto src = [&](std::size_t c) { return static_cast<double>(n.src[first + c]); };
    const auto diff = [&](std::size_t c) { return static_cast<double>(n.diff_dst[first + c]); };
    const auto gamma = [&](std::size_t c) { return static_cast<double>(n.gamma[c]); };
    double mean = 0, variance = 0, sum = 0, product = 0;
    for (std::size_t c = 0; c < channels; ++c) mean += src(c) / all;
    for (std::size_t c = 0; c < channels; ++c) variance += std::pow(src(c) - mean, 2) / all;
    const double inverse = 1 / std::sqrt(variance + epsilon);
    const auto normal = [&](std::size_t c) { return (src(c) - mean) * inverse; };
    for (std::size_t c = 0; c < channels; ++c) {
      made.dst.push_back(normal(c) * gamma(c) + static_cast<double>(n.beta[c]));
      made.diff_beta[c] += diff(c);
      made.diff_gamma[c] += diff(c) * normal(c);
      sum += diff(c) * gamma(c) / all;
      product += diff(c) * gamma(c) * normal(c) / all;
    }
    for (std::size_t c = 0; c < channels; ++c) {
      const double before = n.before.empty() ? 0 : static_cast<double>(n.before[first + c]);
      made.diff_src.push_back(before + inverse * (diff(c) * gamma(c) - sum - normal(c) * product));
    }
  }
  return made;
}

/// Without gamma and beta, whose gradients are then made all the same, or with both.
class LayerNormCase {
 public:
  LayerNormCase(Numbers format, CaseNumbers& numbers, int positions, int channels, bool bare)
      : format_(format), positions_(positions), channels_(channels), bare_(bare) {
    const auto map = [&](float low, float high) {
      return rounded(format,
                     numbers.reals(static_cast<std::size_t>(positions * channels), low, high));
    };
    numbers_.src = map(1, 3);
    numbers_.diff_dst = map(-1, 1);
    const auto lanes = static_cast<std::size_t>(channels);
    numbers_.gamma = bare ? std::vector<float>(lanes, 1) : numbers.reals(lanes, 0.5f, 1.5f);
    numbers_.beta = bare ? std::vector<float>(lanes) : numbers.reals(lanes);
    if (bare) numbers_.before = map(-1, 1);
  }

  RunOutputs run(int run, const OwnedStream& owned) const {
    const Stream stream = owned.get();
    const BatchNormArrays a({format_, positions_, channels_, run, owned}, numbers_);
    const std::vector<float> poison(2 * static_cast<std::size_t>(positions_), poison_of(run));
    const FloatArray statistics("statistics", owned, poison);
    ChannelSums sums =
        plan_channel_sums(format_, positions_, padded_channels(channels_), kMultiprocessorsOfCases);
    const FloatArray values("sums", owned, std::vector<float>(sums.count(), poison_of(run)));
    sums.values = values.data();
    const LayerNormPass pass{.positions = positions_,
                             .channels = channels_,
                             .epsilon = static_cast<float>(kEpsilonOfCases),
                             .gamma = bare_ ? nullptr : a.gamma.data(),
                             .beta = bare_ ? nullptr : a.beta.data(),
                             .mean = statistics.data(),
                             .inverse = statistics.data() + positions_};
    normalize_positions(stream, format_, pass, a.src.data(), a.dst.data());
    sum_position_slopes(stream, format_, sums, pass, a.src.data(), a.diff_dst.data());
    finish_slopes(stream, sums, {}, {a.diff_gamma.data(), a.diff_beta.data()});
    normalize_positions_backward(stream, format_, pass, a.src.data(), a.diff_dst.data(),
                                 a.diff_src.data(), bare_);
    RunOutputs outputs;
    a.put_into(outputs, channels_);
    values.read(outputs);
    statistics.read(outputs);
    return outputs;
  }

  RunOutputs expected() const {
    const PlainBatchNorm plain = plain_layer_norm(numbers_, kEpsilonOfCases);
    const std::vector<float> zeros(static_cast<std::size_t>(channels_));
    RunOutputs outputs;
    outputs.add("dst", with_padding(plain.dst, channels_));
    outputs.add("diff_src", with_padding(plain.diff_src, channels_));
    outputs.add("diff_gamma", with_padding(plain.diff_gamma, channels_));
    outputs.add("diff_beta", with_padding(plain.diff_beta, channels_));
    for (const char* moving : {"moving mean", "moving"}) {
      outputs.add(moving, with_padding(zeros, channels_));
    }
    return outputs;
  }

 private:
  Numbers format_;
  int positions_, channels_;
  bool bare_;
  BatchNormNumbers numbers_;
};

CasePlan sum_plan(Numbers format, std::uint64_t seed, int maps, const OwnedStream& stream) {
  CaseNumbers numbers(seed, fmt::format("sum of {} maps", maps));
  const auto size = static_cast<std::size_t>(numbers.between(1, 400)) * kChannelBlock;
  std::vector<std::vector<float>> values;
  for (int m = 0; m < maps; ++m) values.push_back(numbers.whole(size, -9, 9));
  const auto compute = [=, &stream](int run) {
    std::vector<GuardedMap> arrays;
    MapList list{};
    for (const auto& map : values) {
      arrays.emplace_back("map", stream, format, map);
      list.of[list.count++] = arrays.back().data();
    }
    const GuardedMap dst("sum", stream, format, std::vector<float>(size, poison_of(run)));
    add_maps(stream.get(), format, size, list, dst.data());
    RunOutputs outputs;
    dst.put_into(outputs);
    return outputs;
  };
  const auto expect = [=] {
    std::vector<double> sum(size);
    for (const auto& map : values) {
      for (std::size_t i = 0; i < size; ++i) sum[i] += static_cast<double>(map[i]);
    }
    RunOutputs outputs;
    outputs.add("sum", sum);
    return outputs;
  };
  return {fmt::format("sum of {} maps of {} numbers{}", maps, size, in_words(format)), 0, compute,
          expect};
}

}  // namespace

std::vector<CasePlan> batch_norm_plans(Numbers format, std::uint64_t seed,
                                       const OwnedStream& stream) {
  std::vector<CasePlan> plans;
  const double limit = 1e-5 + limit_of_rounding(format);
  for (const auto& [most_positions, most_channels] :
       {std::pair{40, 40}, {2000, 7}, {9, 600}, {700, 70}}) {
    for (const bool relu : {false, true}) {
      for (const bool other : {false, true}) {
        CaseNumbers numbers(seed, fmt::format("batch norm {} {} {} {}", most_positions,
                                              most_channels, relu, other));
        const int positions = numbers.between(most_positions / 2, most_positions);
        const int channels = numbers.between(most_channels / 2, most_channels);
        const bool add = relu == other;
        const auto made =
            std::make_shared<BatchNormCase>(format, numbers, positions, channels, relu, other, add);
        plans.push_back({fmt::format("batch norm{}{}{}: {} positions of {} channels{}",
                                     other ? " with addition" : "", relu ? " with ReLU" : "",
                                     add ? ", added" : "", positions, channels, in_words(format)),
                         limit, [made, &stream](int run) { return made->run(run, stream); },
                         [made] { return made->expected(); }});
      }
    }
  }
  for (const auto& [most_positions, most_channels] :
       {std::pair{40, 40}, {2000, 7}, {9, 600}, {300, 1}, {5, 5000}}) {
    for (const bool bare : {false, true}) {
      CaseNumbers numbers(seed,
                          fmt::format("layer norm {} {} {}", most_positions, most_channels, bare));
      const int positions = numbers.between((most_positions + 1) / 2, most_positions);
      const int channels = numbers.between((most_channels + 1) / 2, most_channels);
      const auto made = std::make_shared<LayerNormCase>(format, numbers, positions, channels, bare);
      plans.push_back({fmt::format("layer norm{}: {} positions of {} channels{}",
                                   bare ? " without gamma and beta, added" : "", positions,
                                   channels, in_words(format)),
                       limit, [made, &stream](int run) { return made->run(run, stream); },
                       [made] { return made->expected(); }});
    }
  }
  for (const int maps : {1, 2, 3, kMostMaps}) plans.push_back(sum_plan(format, seed, maps, stream));
  return plans;
}

}  // namespace cputrain::cuda
