#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "backends/cuda/kernels/products/convolution.h"
#include "backends/cuda/selftest/convolution_numbers.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;

constexpr double kLimit = 1e-5;

/// The part of a sum that its error may be: tensor cores cut sums off once per instruction, which
/// exact makes up for.
double limit_of_sums(Numbers numbers, int depth) {
  return numbers == Numbers::exact ? kLimit : 1e-6 + depth / 8 * std::ldexp(1, -23);
}

/// A convolution, its numbers, and runs of its kernels on the device.
class Convolution {
 public:
  Convolution(const WindowCase& c, Numbers format, int multiprocessors, CaseNumbers& numbers,
              const OwnedStream& stream)
      : case_(c),
        format_(format),
        shape_(c.window()),
        plan_(plan_convolution(shape_, format, multiprocessors)),
        numbers_(convolution_numbers(
            c, [&](std::size_t count) { return rounded(format, numbers.reals(count)); })),
        norm_{rounded(format, with_padding_of(numbers)), rounded(format, with_padding_of(numbers)),
              factors_of(numbers)},
        stream_(stream) {}

  const WindowShape& shape() const { return shape_; }
  const ConvolutionPlan& plan() const { return plan_; }

  /// `sum`: it adds another map, and makes moments where it can.
  RunOutputs forward(int run, bool with_bias, bool sum = false) const {
    const Workspace workspace(*this, run);
    const GuardedMap src = map("src", numbers_.src), weights = map("weights", numbers_.weights);
    const Array bias = given("bias", numbers_.bias);
    const GuardedMap other = map("other", numbers_.diff_dst);
    const GuardedMap dst = map("dst", Floats(dst_numbers(), poison_of(run)));
    ChannelSums moments = sum ? moments_of(shape_, plan_) : ChannelSums{};
    const Array parts = poisoned("moments", moments.count(), run);
    if (moments.parts > 0) moments.values = parts.data();
    convolution_forward(stream_.get(), workspace.call, src.data(), weights.data(),
                        with_bias ? bias.data() : nullptr, sum ? other.data() : nullptr, dst.data(),
                        moments);
    RunOutputs outputs;
    check_padding("dst", dst.put_into(outputs), case_.outputs, outputs);
    workspace.array.read(outputs);
    const Floats made = parts.read(outputs);
    check_padding("moments", made, case_.outputs, outputs);
    put_sums("means", "squares", made, moments, outputs);
    return outputs;
  }
  RunOutputs expected_forward(bool with_bias, bool sum = false) const {
    const Floats none(numbers_.bias.size());
    const Doubles dst = added(
        reference_forward(shape_, numbers_.src, numbers_.weights, with_bias ? numbers_.bias : none),
        sum ? &numbers_.diff_dst : nullptr);
    RunOutputs outputs;
    outputs.add("dst", dst);
    const ChannelSums moments = sum ? moments_of(shape_, plan_) : ChannelSums{};
    put_sums("means", "squares", plain_moments(as_stored(dst), moments), moments, outputs);
    return outputs;
  }

  /// `add`: it adds to what is there, and makes slopes where it can.
  RunOutputs data(int run, bool add) const {
    const Workspace workspace(*this, run);
    const GuardedMap diff_dst = map("diff_dst", numbers_.diff_dst);
    const GuardedMap weights = map("weights", numbers_.weights);
    const GuardedMap diff_src =
        map("diff_src", add ? numbers_.src : Floats(numbers_.src.size(), poison_of(run)));
    const Array factors = given("factors", norm_.factors);
    const GuardedMap src = map("src of the norm", norm_.src), output = map("output", norm_.output);
    ChannelSums sums = add ? slopes_of(shape_, plan_) : ChannelSums{};
    const Array parts = poisoned("slopes", sums.count(), run);
    if (sums.parts > 0) sums.values = parts.data();
    convolution_backward_data(stream_.get(), workspace.call, diff_dst.data(), weights.data(),
                              diff_src.data(), add,
                              {sums,
                               {shape_.positions(), {factors.data(), shape_.src.channels}, relu()},
                               src.data(),
                               masks() ? output.data() : nullptr});
    RunOutputs outputs;
    check_padding("diff_src", diff_src.put_into(outputs), case_.channels, outputs);
    workspace.array.read(outputs);
    const Floats made = parts.read(outputs);
    check_padding("slopes", made, case_.channels, outputs);
    put_sums("sums", "products", made, sums, outputs);
    return outputs;
  }
  RunOutputs expected_data(bool add) const {
    Doubles diff = added(reference_data(shape_, numbers_.diff_dst, numbers_.weights),
                         add ? &numbers_.src : nullptr);
    const ChannelSums sums = add ? slopes_of(shape_, plan_) : ChannelSums{};
    RunOutputs outputs;
    if (sums.parts > 0 && masks()) cut(diff, [&](std::size_t i) { return norm_.output[i]; });
    outputs.add("diff_src", diff);
    diff = as_stored(diff);
    if (relu() && !masks()) cut(diff, [&](std::size_t i) { return normalized(i); });
    Doubles slopes(sums.count());
    for (std::size_t i = 0; i < (slopes.empty() ? 0 : diff.size()); ++i) {
      const auto lanes = static_cast<std::size_t>(sums.channels), channel = i % lanes;
      const std::size_t part = i / lanes / static_cast<std::size_t>(sums.of_part);
      slopes[2 * part * lanes + channel] += diff[i];
      slopes[(2 * part + 1) * lanes + channel] +=
          diff[i] * (norm_.src[i] - factor(ChannelFactors::mean, channel));
    }
    put_sums("sums", "products", slopes, sums, outputs);
    return outputs;
  }

  RunOutputs gradients(int run, bool add) const {
    const Workspace workspace(*this, run);
    const GuardedMap src = map("src", numbers_.src), diff_dst = map("diff_dst", numbers_.diff_dst);
    const Array weights = before("diff_weights", numbers_.weights, run, add);
    const Array bias = before("diff_bias", numbers_.bias, run, add);
    convolution_backward_weights(stream_.get(), workspace.call, src.data(), diff_dst.data(),
                                 weights.data(), bias.data(), add);
    RunOutputs outputs;
    const Floats found = weights.put_into(outputs);
    check_padding("diff_weights", found, case_.channels, outputs);
    check_rows_of_padding(found, outputs);
    check_padding("diff_bias", bias.put_into(outputs), case_.outputs, outputs);
    workspace.array.read(outputs);
    return outputs;
  }
  RunOutputs expected_gradients(bool add) const {
    RunOutputs outputs;
    outputs.add("diff_weights", added(reference_weights(shape_, numbers_.src, numbers_.diff_dst),
                                      add ? &numbers_.weights : nullptr));
    outputs.add("diff_bias",
                added(reference_bias(shape_, numbers_.diff_dst), add ? &numbers_.bias : nullptr));
    return outputs;
  }

 private:
  using Array = GuardedArray<float>;

  struct Workspace {
    Workspace(const Convolution& of, int run)
        : array(of.poisoned("the workspace", of.plan_.workspace_bytes(of.shape_) / sizeof(float),
                            run)),
          call{of.format_, of.shape_, of.plan_, array.data()} {}
    Array array;
    ConvolutionCall call;
  };

  /// What sums are made of.
  Doubles as_stored(Doubles values) const {
    for (double& value : values) value = rounded(format_, static_cast<float>(value));
    return values;
  }

  /// The batch norm before the convolution: what it read and wrote, and its factors.
  struct Norm {
    Floats src, output, factors;
  };
  Floats with_padding_of(CaseNumbers& numbers) const {
    const auto positions = static_cast<std::size_t>(shape_.positions());
    return with_padding(numbers.reals(positions * static_cast<std::size_t>(case_.channels)),
                        case_.channels);
  }
  Floats factors_of(CaseNumbers& numbers) const {
    const auto channels = static_cast<std::size_t>(case_.channels);
    return with_padding(numbers.reals(ChannelFactors::kRows * channels), case_.channels);
  }
  /// A third each has no ReLU, one of itself, and one behind an addition.
  bool relu() const { return case_.channels % 3 > 0; }
  bool masks() const { return case_.channels % 3 > 1; }
  double factor(int row, std::size_t channel) const {
    return norm_.factors[static_cast<std::size_t>(row * shape_.src.channels) + channel];
  }
  double normalized(std::size_t i) const {
    const std::size_t channel = i % static_cast<std::size_t>(shape_.src.channels);
    return (norm_.src[i] - factor(ChannelFactors::mean, channel)) *
               factor(ChannelFactors::scale, channel) +
           factor(ChannelFactors::shift, channel);
  }
  template <class Alive>
  static void cut(Doubles& diff, const Alive& alive) {
    for (std::size_t i = 0; i < diff.size(); ++i) diff[i] = alive(i) > 0 ? diff[i] : 0;
  }

  /// The two numbers of each channel in all parts, where there are any.
  template <class Values>
  static void put_sums(const char* first, const char* second, const Values& values,
                       const ChannelSums& sums, RunOutputs& outputs) {
    const auto channels = static_cast<std::size_t>(sums.channels);
    Values firsts, seconds;
    for (std::size_t i = 0; i < values.size(); ++i) {
      (i / channels % 2 == 0 ? firsts : seconds).push_back(values[i]);
    }
    if (firsts.empty()) return;
    outputs.add(first, firsts);
    outputs.add(second, seconds);
  }
  static Doubles plain_moments(const Doubles& map, const ChannelSums& sums) {
    const auto channels = static_cast<std::size_t>(sums.channels);
    Doubles made(sums.count());
    for (std::size_t i = 0; i < made.size(); ++i) {
      const std::size_t part = i / channels / 2, channel = i % channels;
      const auto count = static_cast<std::size_t>(sums.positions_of(static_cast<int>(part)));
      const std::size_t first = part * static_cast<std::size_t>(sums.of_part);
      const auto at = [&](std::size_t k) { return map[(first + k) * channels + channel]; };
      double mean = 0, squares = 0;
      for (std::size_t k = 0; k < count; ++k)
        mean += at(k) / sums.positions_of(static_cast<int>(part));
      for (std::size_t k = 0; k < count; ++k) squares += (at(k) - mean) * (at(k) - mean);
      made[i] = i / channels % 2 == 0 ? mean : squares;
    }
    return made;
  }

  GuardedMap map(const char* name, const Floats& values) const {
    return {name, stream_, format_, values};
  }
  Array given(const char* name, const Floats& values) const { return {name, stream_, values}; }
  Array poisoned(const char* name, std::size_t size, int run) const {
    return {name, stream_, Floats(size, poison_of(run))};
  }
  /// An output: what is to be added to, or poison.
  Array before(const char* name, const Floats& values, int run, bool add) const {
    return add ? given(name, values) : poisoned(name, values.size(), run);
  }
  std::size_t dst_numbers() const {
    return static_cast<std::size_t>(shape_.images) * shape_.dst.size();
  }
  static Doubles added(Doubles sums, const Floats* before) {
    for (std::size_t i = 0; before && i < sums.size(); ++i) sums[i] += (*before)[i];
    return sums;
  }
  void check_rows_of_padding(const Floats& weights, RunOutputs& outputs) const {
    const auto taps = static_cast<std::size_t>(shape_.taps());
    for (std::size_t i = static_cast<std::size_t>(case_.outputs) * taps; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      return outputs.note(fmt::format("row of padding of diff_weights is not zero, at {}", i));
    }
  }

  WindowCase case_;
  Numbers format_;
  WindowShape shape_;
  ConvolutionPlan plan_;
  ConvolutionNumbers numbers_;
  Norm norm_;
  const OwnedStream& stream_;
};

/// Sizes from which a seed chooses.
struct Range {
  int low, high;
};

/// A kind of convolution, on a device of so many multiprocessors: 1 has few, large pieces of work,
/// 132 (an H100's) tiles and slices as many as there may be. Ranges are such that every size of
/// tile occurs in every direction.
struct Kind {
  int size, stride;
  model::Padding padding;
  int multiprocessors;
  Range images, height, width, channels, outputs;
};

using enum model::Padding;
constexpr Range kOne{1, 1};
const Kind kKinds[] = {
    {3, 1, same, 1, {1, 2}, {5, 7}, {5, 7}, {1, 7}, {1, 7}},
    {3, 1, same, 132, {2, 3}, {9, 13}, {9, 13}, {17, 31}, {33, 47}},
    {3, 1, same, 1, {2, 2}, {7, 8}, {7, 8}, {33, 47}, {65, 79}},
    {3, 2, same, 132, {3, 3}, {9, 13}, {9, 13}, {17, 31}, {33, 47}},
    {3, 2, valid, 1, {3, 3}, {15, 17}, {13, 17}, {65, 71}, {33, 40}},
    {3, 3, valid, 1, {1, 2}, {15, 17}, {14, 17}, {1, 15}, {33, 47}},
    {2, 1, same, 132, {2, 3}, {9, 13}, {9, 13}, {9, 17}, {1, 9}},
    {2, 2, valid, 1, {1, 2}, {11, 13}, {11, 13}, {17, 25}, {65, 72}},
    {2, 3, valid, 132, {2, 2}, {11, 14}, {11, 14}, {9, 17}, {33, 41}},
    {4, 1, same, 132, {1, 2}, {7, 11}, {7, 11}, {5, 13}, {17, 35}},
    {5, 1, valid, 132, {1, 1}, {27, 29}, {27, 29}, {3, 7}, {17, 25}},
    {5, 3, same, 132, {1, 2}, {13, 17}, {13, 17}, {9, 17}, {17, 25}},
    {6, 2, same, 1, {1, 2}, {9, 13}, {9, 13}, {3, 9}, {9, 25}},
    {7, 1, same, 132, {1, 1}, {3, 5}, {3, 5}, {5, 9}, {5, 9}},
    {7, 2, same, 132, {1, 2}, {21, 31}, {21, 31}, {3, 3}, {25, 33}},
    {1, 1, same, 132, {3, 3}, {7, 9}, {7, 9}, {65, 73}, {129, 137}},
    {1, 1, same, 1, {4, 5}, {5, 5}, {5, 5}, {65, 80}, {65, 80}},
    {1, 2, valid, 1, {3, 3}, {11, 13}, {11, 13}, {17, 25}, {33, 41}},
    {3, 1, same, 132, {1, 1}, {5, 6}, {4, 5}, {129, 137}, {129, 137}},
    {3, 1, same, 132, {1, 1}, {6, 7}, {7, 8}, {57, 64}, {57, 64}},
    {3, 1, same, 132, {1, 1}, {24, 26}, {24, 26}, {5, 8}, {33, 47}},
    {2, 1, same, 1, {1, 1}, {24, 26}, {24, 26}, {9, 16}, {72, 80}},
    {1, 1, same, 132, {2, 2}, {17, 19}, {17, 19}, {17, 31}, {33, 47}},
    {1, 1, valid, 132, {1, 3}, kOne, kOne, {993, 1007}, {65, 75}},
    {1, 1, valid, 132, {1, 3}, kOne, kOne, {600, 620}, {17, 25}},
    {1, 1, valid, 1, {65, 100}, kOne, kOne, {513, 540}, {33, 63}},
    {1, 1, valid, 132, {33, 64}, kOne, kOne, {513, 527}, {33, 47}},
    {1, 1, valid, 1, {65, 100}, kOne, kOne, {257, 263}, {65, 72}},
    {1, 1, valid, 132, {40, 50}, kOne, kOne, {1, 5}, {65, 75}},
    {1, 1, valid, 1, {1, 5}, kOne, kOne, {129, 300}, {1, 1}},
    {1, 1, valid, 1, {1, 1}, {49, 50}, {49, 50}, {1, 8}, {1, 8}},
    {1, 1, same, 1, {3, 3}, {7, 7}, {6, 6}, {121, 128}, {121, 128}},
    {1, 1, valid, 2, {121, 128}, kOne, kOne, {993, 1007}, {121, 128}},
    {4, 1, same, 1, kOne, {21, 22}, {22, 23}, {33, 47}, {33, 47}},
};

/// For other ways to store numbers some kinds are enough, with the last three, which have the
/// largest tiles.
bool takes_part(Numbers format, std::size_t kind) {
  if (format == Numbers::exact || kind + 3 >= std::size(kKinds)) return true;
  return kind % 3 == (format == Numbers::bf16 ? 0 : 1);
}

/// "convolution forward, 128x32 tiles, 3 slices"
std::string name_of(const char* direction, const GemmPlan& plan) {
  return fmt::format("convolution {}, {}x{} tiles, {} slice{}", direction, plan.tile.rows,
                     plan.tile.columns, plan.slices, plan.slices == 1 ? "" : "s");
}

void add_plans(std::vector<CasePlan>& plans, const WindowCase& c, Numbers format,
               int multiprocessors, CaseNumbers& numbers, const OwnedStream& stream) {
  const auto made = std::make_shared<Convolution>(c, format, multiprocessors, numbers, stream);
  const ConvolutionPlan& plan = made->plan();
  const WindowShape& shape = made->shape();
  const auto name = [&](const char* direction, const GemmPlan& part, const char* more = "") {
    return fmt::format("{}{}{}: {}", name_of(direction, part), in_words(format), more, text_of(c));
  };
  const double rounding = limit_of_rounding(format);
  const bool slopes = slopes_of(shape, plan).parts > 0;
  const int depth_of_data = shape.size * shape.size * shape.dst.channels;
  for (const bool add : {false, true}) {
    const char* more = add ? ", added" : "";
    const char* beside =
        plan.forward.slices == 1 ? ", with addition and moments" : ", with addition";
    plans.push_back({name("forward", plan.forward, add ? beside : ""),
                     limit_of_sums(format, shape.taps()) + rounding,
                     [made, add](int run) { return made->forward(run, true, add); },
                     [made, add] { return made->expected_forward(true, add); }});
    if (shape.pixels == 1) {  // nobody asks for an image's gradient
      plans.push_back({name("data", plan.data, add && slopes ? ", added, with slopes" : more),
                       limit_of_sums(format, depth_of_data) + rounding,
                       [made, add](int run) { return made->data(run, add); },
                       [made, add] { return made->expected_data(add); }});
    }
    plans.push_back({name("weights", plan.weights, more), limit_of_sums(format, shape.windows()),
                     [made, add](int run) { return made->gradients(run, add); },
                     [made, add] { return made->expected_gradients(add); }});
  }
}

}  // namespace

std::vector<CasePlan> convolution_plans(Numbers format, std::uint64_t seed,
                                        const OwnedStream& stream) {
  std::vector<CasePlan> plans;
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    if (!takes_part(format, i)) continue;
    const Kind& kind = kKinds[i];
    CaseNumbers numbers(seed, fmt::format("convolution {}", i));
    const auto draw = [&](const Range& range) { return numbers.between(range.low, range.high); };
    const WindowCase c{draw(kind.images),  draw(kind.height), draw(kind.width), draw(kind.channels),
                       draw(kind.outputs), kind.size,         kind.stride,      kind.padding};
    add_plans(plans, c, format, kind.multiprocessors, numbers, stream);
  }
  for (const int size : {1, 3, 7}) {
    CaseNumbers numbers(seed, fmt::format("convolution {0} x {0} of pairs", size));
    const WindowCase c{
        2, numbers.between(9, 13), numbers.between(5, 7), 8, numbers.between(9, 33), size, 2, same,
        2};
    add_plans(plans, c, format, 132, numbers, stream);
  }
  CaseNumbers numbers(seed, "convolution without a bias");
  const WindowCase c{2, 5, 7, 20, numbers.between(9, 23), 3, 1, same};
  const auto made = std::make_shared<Convolution>(c, format, 132, numbers, stream);
  const double limit = limit_of_sums(format, made->shape().taps()) + limit_of_rounding(format);
  plans.push_back(
      {fmt::format("convolution forward without a bias{}: {}", in_words(format), text_of(c)), limit,
       [made](int run) { return made->forward(run, false); },
       [made] { return made->expected_forward(false); }});
  return plans;
}

}  // namespace cputrain::cuda
