#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/moved_images.h"
#include "backends/cuda/selftest/plain_dropout.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;

/// Bytes begin `shift` behind a boundary. Two `pixels` in a position, with zeros `left` of a row,
/// are pairs.
CasePlan load_plan(Numbers format, std::uint64_t seed, std::size_t shift, int pixels, int left,
                   const OwnedStream& stream) {
  const std::string name =
      pixels == 1 ? fmt::format("bytes to numbers, {} bytes behind a boundary", shift)
                  : fmt::format("bytes to pairs of numbers, {} zeros before a row", left);
  CaseNumbers numbers(seed, name);
  const int images = numbers.between(1, 3), height = numbers.odd_between(3, 9);
  const int width = numbers.odd_between(3, 11);
  const auto bytes = numbers.bytes(static_cast<std::size_t>(images * height * width * 3));
  const PerColour scale{2.0f / 255, 1.0f / 64, 0.01f}, offset{-1, 0, 0.25f};
  const ImageLoad load{images, height, width, scale, offset, nullptr, pixels, left};
  const auto row = static_cast<std::size_t>(load.columns()) * kChannelBlock;
  const std::size_t count = static_cast<std::size_t>(images * height) * row;
  const auto compute = [=, &stream](int run) {
    const GuardedArray<std::uint8_t> src("bytes", stream, bytes, shift);
    const GuardedMap dst("map", stream, format, std::vector<float>(count, poison_of(run)));
    const GuardedArray<compute::ImageMove> moves("moves", stream, mirrored(images, height, width));
    const GuardedArray<PassFacts> facts("facts", stream,
                                        {{.bytes = src.data(), .moves = moves.data()}});
    ImageLoad own = load;
    own.facts = facts.data();
    load_images(stream.get(), format, own, dst.data());
    RunOutputs outputs;
    const auto map = dst.put_into(outputs);
    if (pixels == 1) check_padding("map", map, 3, outputs);
    return outputs;
  };
  const auto expect = [=] {
    std::vector<double> map(count);
    const auto moved = mirrored_bytes(bytes, images, height, width);
    const auto wide = static_cast<std::size_t>(width), before = static_cast<std::size_t>(left);
    const auto pitch = static_cast<std::size_t>(kChannelBlock / pixels);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const std::size_t y = i / 3 / wide, x = i / 3 % wide;
      map[y * row + (x + before) * pitch + i % 3] =
          static_cast<double>(moved[i]) * static_cast<double>(scale.of[i % 3]) +
          static_cast<double>(offset.of[i % 3]);
    }
    RunOutputs outputs;
    outputs.add("map", map);
    return outputs;
  };
  return {fmt::format("{}{}: {} x {} x {}", name, in_words(format), images, height, width),
          1e-6 + limit_of_rounding(format), compute, expect};
}

/// A rectifier, its factor below 0, and where it stops.
struct RectifierCase {
  Pointwise layer;
  float slope;
  float most;
};

CasePlan rectifier_plan(Numbers format, std::uint64_t seed, const RectifierCase& c, int chunks,
                        const OwnedStream& stream) {
  const std::string_view word = std::visit([](const auto& l) { return l.kWord; }, c.layer);
  CaseNumbers numbers(seed, fmt::format("{} {}", word, chunks));
  const auto size = static_cast<std::size_t>(numbers.between(1, chunks)) * kChannelBlock;
  const auto map = numbers.whole(size, -3, 9), diff = rounded(format, numbers.reals(size));
  const auto compute = [=, &stream](int) {
    const GuardedMap m("map", stream, format, map), d("diff", stream, format, diff);
    activate(stream.get(), format, c.layer, size, m.data(), m.data());
    activate_backward(stream.get(), format, c.layer, size, m.data(), d.data(), d.data(), false);
    RunOutputs outputs;
    m.put_into(outputs);
    d.put_into(outputs);
    return outputs;
  };
  const auto expect = [=] {
    std::vector<double> m, d;
    for (std::size_t i = 0; i < size; ++i) {
      m.push_back(map[i] > 0 ? std::min(map[i], c.most) : c.slope * map[i]);
      d.push_back(map[i] > 0 ? (map[i] < c.most ? diff[i] : 0) : c.slope * diff[i]);
    }
    RunOutputs outputs;
    outputs.add("map", m);
    outputs.add("diff", d);
    return outputs;
  };
  return {fmt::format("{} of {} numbers{}", word, size, in_words(format)), 0, compute, expect};
}

CasePlan silu_plan(Numbers format, std::uint64_t seed, bool add, const OwnedStream& stream) {
  CaseNumbers numbers(seed, fmt::format("silu {}", add));
  const auto size = static_cast<std::size_t>(numbers.between(1, 90)) * kChannelBlock;
  const auto draw = [&] { return rounded(format, numbers.reals(size, -4, 4)); };
  const auto src = draw(), diff_dst = draw(), before = draw();
  const auto compute = [=, &stream](int run) {
    const GuardedMap s("src", stream, format, src), d("diff_dst", stream, format, diff_dst);
    const std::vector<float> poison(size, poison_of(run));
    const GuardedMap dst("dst", stream, format, poison);
    const GuardedMap diff_src("diff_src", stream, format, add ? before : poison);
    activate(stream.get(), format, model::Silu{}, size, s.data(), dst.data());
    activate_backward(stream.get(), format, model::Silu{}, size, s.data(), d.data(),
                      diff_src.data(), add);
    RunOutputs outputs;
    dst.put_into(outputs);
    diff_src.put_into(outputs);
    return outputs;
  };
  const auto expect = [=] {
    std::vector<double> values, slopes;
    for (std::size_t i = 0; i < size; ++i) {
      const double x = src[i], sigmoid = 1 / (1 + std::exp(-x));
      values.push_back(x * sigmoid);
      slopes.push_back((add ? static_cast<double>(before[i]) : 0) +
                       static_cast<double>(diff_dst[i]) * sigmoid * (1 + x * (1 - sigmoid)));
    }
    RunOutputs outputs;
    outputs.add("dst", values);
    outputs.add("diff_src", slopes);
    return outputs;
  };
  return {fmt::format("silu of {} numbers{}{}", size, in_words(format), add ? ", added" : ""),
          1e-6 + limit_of_rounding(format), compute, expect};
}

/// What products read of weights.
CasePlan rounding_plan(Numbers format, std::uint64_t seed, const OwnedStream& stream) {
  CaseNumbers numbers(seed, "rounded numbers");
  const auto size = static_cast<std::size_t>(numbers.between(1, 90)) * kChannelBlock;
  const auto floats = numbers.reals(size);
  const auto compute = [=, &stream](int run) {
    const GuardedArray<float> src("src", stream, floats);
    const GuardedMap dst("dst", stream, format, std::vector<float>(size, poison_of(run)));
    round_numbers(stream.get(), format, size, src.data(), dst.data());
    RunOutputs outputs;
    dst.put_into(outputs);
    return outputs;
  };
  const auto expect = [=] {
    RunOutputs outputs;
    outputs.add("dst", rounded(format, floats));
    return outputs;
  };
  return {fmt::format("{} rounded numbers{}", size, in_words(format)), 0, compute, expect};
}

std::vector<double> dropped(const DropoutCall& call, const PassFacts& facts,
                            const std::vector<std::uint32_t>& samples,
                            const std::vector<float>& dense) {
  const std::vector<bool> kept = kept_by_mask(call, facts, samples);
  std::vector<double> values;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    const double scaled = static_cast<double>(dense[i]) / (1 - static_cast<double>(call.rate));
    values.push_back(kept[i] ? scaled : 0);
  }
  return values;
}

CasePlan dropout_plan(Numbers format, std::uint64_t seed, int most_channels,
                      const OwnedStream& stream) {
  CaseNumbers numbers(seed, fmt::format("dropout {}", most_channels));
  const std::vector<std::uint32_t> samples{7, 0, 0xfffffff0u};
  DropoutCall call;
  call.rate = 0.3f;
  call.layer = 5;
  call.images = static_cast<int>(samples.size());
  call.positions = numbers.between(1, 35);
  call.channels = numbers.between(1, most_channels);
  const PassFacts facts{.seed = 0x123456789abcdefu ^ seed, .step = 0x700000003u};
  const auto dense = rounded(
      format,
      numbers.reals(samples.size() * static_cast<std::size_t>(call.positions * call.channels)));
  const auto compute = [=, &stream](int) {
    const GuardedArray<std::uint32_t> ids("samples", stream, samples);
    const GuardedMap map("map", stream, format, with_padding(dense, call.channels));
    PassFacts here = facts;
    here.samples = ids.data();
    const GuardedArray<PassFacts> on_device("facts", stream, {here});
    dropout(stream.get(), format, call, on_device.data(), map.data());
    RunOutputs outputs;
    check_padding("map", map.put_into(outputs), call.channels, outputs);
    return outputs;
  };
  const auto expect = [=] {
    RunOutputs outputs;
    outputs.add("map", with_padding(dropped(call, facts, samples, dense), call.channels));
    return outputs;
  };
  return {fmt::format("dropout{}: {} positions of {} channels", in_words(format), call.positions,
                      call.channels),
          1e-6 + limit_of_rounding(format), compute, expect};
}

}  // namespace

std::vector<CasePlan> elementwise_plans(Numbers format, std::uint64_t seed,
                                        const OwnedStream& stream) {
  std::vector<CasePlan> plans;
  for (const std::size_t shift : {0, 1, 2, 3})
    plans.push_back(load_plan(format, seed, shift, 1, 0, stream));
  for (const int left : {0, 1}) plans.push_back(load_plan(format, seed, 1, 2, left, stream));
  for (const auto& c : {RectifierCase{model::Relu{}, 0, HUGE_VALF},
                        {model::Relu6{}, 0, 6},
                        {model::LeakyRelu{0.125f}, 0.125f, HUGE_VALF}}) {
    for (const int chunks : {2, 40, 700}) {
      plans.push_back(rectifier_plan(format, seed, c, chunks, stream));
    }
  }
  for (const bool add : {false, true}) plans.push_back(silu_plan(format, seed, add, stream));
  for (const int most : {3, 21, 270}) plans.push_back(dropout_plan(format, seed, most, stream));
  if (format != Numbers::exact) plans.push_back(rounding_plan(format, seed, stream));
  return plans;
}

}  // namespace cputrain::cuda
