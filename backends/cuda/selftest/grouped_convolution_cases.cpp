#include <fmt/format.h>

#include <memory>

#include "backends/cuda/kernels/grouped_convolution.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/window_case.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;
using Reals = std::vector<float>;
using Sums = std::vector<double>;

/// Sums of so many floats, one after the other.
constexpr double kLimitOfGroups = 1e-5;
/// Sums are cut for so many, so that slices are the same on every device.
constexpr int kMultiprocessors = 20;

/// Calls visit(number of src, number of weights, number of dst) for each product, all with padding.
template <class Visit>
void each_grouped_product(const GroupedShape& s, const Visit& visit) {
  const WindowShape& w = s.window;
  for (int window = 0; window < w.windows(); ++window) {
    const int image = window / (w.dst.height * w.dst.width);
    const int p = window / w.dst.width % w.dst.height, q = window % w.dst.width;
    for (int tap = 0; tap < w.size * w.size; ++tap) {
      const int y = p * w.stride - w.top + tap / w.size, x = q * w.stride - w.left + tap % w.size;
      if (y < 0 || y >= w.src.height || x < 0 || x >= w.src.width) continue;
      const int position = (image * w.src.height + y) * w.src.width + x;
      for (int o = 0; o < s.filters; ++o) {
        const int first = o / s.filters_of_group() * s.channels_of_group();
        for (int c = 0; c < s.channels_of_group(); ++c) {
          const int row = tap * s.channels_of_group() + c;
          visit(static_cast<std::size_t>(position * w.src.channels + first + c),
                static_cast<std::size_t>(row * w.dst.channels + o),
                static_cast<std::size_t>(window * w.dst.channels + o));
        }
      }
    }
  }
}

/// A convolution in groups, its numbers, and runs of its kernels on the device.
class GroupedConvolution {
 public:
  GroupedConvolution(const WindowCase& c, int groups, Numbers format, CaseNumbers& numbers,
                     const OwnedStream& stream)
      : case_(c), format_(format), stream_(stream) {
    shape_ = {c.window(), c.channels, c.outputs, groups};
    const auto draw = [&](int count, int channels) {
      const auto size = static_cast<std::size_t>(count) * static_cast<std::size_t>(channels);
      return with_padding(rounded(format, numbers.reals(size)), channels);
    };
    src_ = draw(shape_.window.positions(), c.channels);
    before_ = draw(shape_.window.positions(), c.channels);
    diff_dst_ = draw(shape_.window.windows(), c.outputs);
    weights_ = draw(shape_.rows(), c.outputs);
    bias_ = draw(1, c.outputs);
  }

  RunOutputs forward(int run, bool with_bias) const {
    const GuardedMap src("src", stream_, format_, src_),
        weights("weights", stream_, format_, weights_);
    const GuardedArray<float> bias("bias", stream_, bias_);
    const GuardedMap dst("dst", stream_, format_, Reals(diff_dst_.size(), poison_of(run)));
    grouped_forward(stream_.get(), format_, shape_, src.data(), weights.data(),
                    with_bias ? bias.data() : nullptr, dst.data());
    RunOutputs outputs;
    check_padding("dst", dst.put_into(outputs), case_.outputs, outputs);
    return outputs;
  }
  RunOutputs expected_forward(bool with_bias) const {
    Sums dst(diff_dst_.size());
    for (std::size_t i = 0; with_bias && i < dst.size(); ++i) dst[i] = bias_[i % bias_.size()];
    each_grouped_product(shape_, [&](std::size_t from, std::size_t weight, std::size_t to) {
      dst[to] += product(src_[from], weights_[weight]);
    });
    RunOutputs outputs;
    outputs.add("dst", dst);
    return outputs;
  }

  RunOutputs data(int run, bool add) const {
    const GuardedMap diff_dst("diff_dst", stream_, format_, diff_dst_),
        weights("weights", stream_, format_, weights_);
    const GuardedMap diff_src("diff_src", stream_, format_,
                              add ? before_ : Reals(before_.size(), poison_of(run)));
    grouped_backward_data(stream_.get(), format_, shape_, diff_dst.data(), weights.data(),
                          diff_src.data(), add);
    RunOutputs outputs;
    check_padding("diff_src", diff_src.put_into(outputs), case_.channels, outputs);
    return outputs;
  }
  RunOutputs expected_data(bool add) const {
    Sums diff_src(before_.size());
    if (add) diff_src.assign(before_.begin(), before_.end());
    each_grouped_product(shape_, [&](std::size_t from, std::size_t weight, std::size_t to) {
      diff_src[from] += product(diff_dst_[to], weights_[weight]);
    });
    RunOutputs outputs;
    outputs.add("diff_src", diff_src);
    return outputs;
  }

  RunOutputs gradients(int run, bool add) const {
    const GuardedMap src("src", stream_, format_, src_),
        diff_dst("diff_dst", stream_, format_, diff_dst_);
    const auto start = [&](const Reals& values) {
      return add ? values : Reals(values.size(), poison_of(run));
    };
    const GuardedArray<float> weights("diff_weights", stream_, start(weights_)),
        bias("diff_bias", stream_, start(bias_));
    const int slices = grouped_slices(format_, shape_, kMultiprocessors);
    const GuardedArray<float> sums(
        "sums", stream_,
        Reals(static_cast<std::size_t>(grouped_sums(shape_, slices)), poison_of(run)));
    grouped_backward_weights(stream_.get(), format_, shape_, slices, src.data(), diff_dst.data(),
                             sums.data(), weights.data(), bias.data(), add);
    RunOutputs outputs;
    check_padding("diff_weights", weights.put_into(outputs), case_.outputs, outputs);
    check_padding("diff_bias", bias.put_into(outputs), case_.outputs, outputs);
    sums.read(outputs);
    return outputs;
  }
  RunOutputs expected_gradients(bool add) const {
    Sums weights(weights_.size()), bias(bias_.size());
    if (add) {
      weights.assign(weights_.begin(), weights_.end());
      bias.assign(bias_.begin(), bias_.end());
    }
    each_grouped_product(shape_, [&](std::size_t from, std::size_t weight, std::size_t to) {
      weights[weight] += product(diff_dst_[to], src_[from]);
    });
    for (std::size_t i = 0; i < diff_dst_.size(); ++i) bias[i % bias.size()] += diff_dst_[i];
    RunOutputs outputs;
    outputs.add("diff_weights", weights);
    outputs.add("diff_bias", bias);
    return outputs;
  }

 private:
  static double product(float a, float b) {
    return static_cast<double>(a) * static_cast<double>(b);
  }

  WindowCase case_;
  Numbers format_;
  GroupedShape shape_;
  Reals src_, before_, diff_dst_, weights_, bias_;
  const OwnedStream& stream_;
};

struct GroupKind {
  int groups, channels, filters;  ///< a group's
  int size, stride;
  model::Padding padding;
  int least = 5;  ///< a side's pixels
};

}  // namespace

std::vector<CasePlan> grouped_convolution_plans(Numbers format, std::uint64_t seed,
                                                const OwnedStream& stream) {
  using enum model::Padding;
  std::vector<CasePlan> plans;
  for (const GroupKind& kind : {GroupKind{32, 1, 1, 3, 1, half}, GroupKind{72, 1, 1, 3, 2, half},
                                GroupKind{24, 1, 1, 5, 2, same}, GroupKind{13, 1, 1, 3, 1, valid},
                                GroupKind{16, 1, 1, 3, 1, same, 40}, GroupKind{9, 1, 2, 3, 2, half},
                                GroupKind{2, 16, 8, 3, 1, same}, GroupKind{3, 5, 3, 3, 2, half},
                                GroupKind{4, 2, 3, 1, 2, valid}}) {
    CaseNumbers numbers(seed, fmt::format("groups {} {} {} {} {} {}", kind.groups, kind.channels,
                                          kind.filters, kind.size, kind.stride, kind.least));
    const WindowCase c{numbers.between(1, 3),
                       numbers.odd_between(kind.least, kind.least + 6),
                       numbers.odd_between(kind.least, kind.least + 4) + 1,
                       kind.groups * kind.channels,
                       kind.groups * kind.filters,
                       kind.size,
                       kind.stride,
                       kind.padding};
    const auto made = std::make_shared<GroupedConvolution>(c, kind.groups, format, numbers, stream);
    const std::string name =
        fmt::format("{} in {} groups{}", text_of(c), kind.groups, in_words(format));
    const double limit = kLimitOfGroups + limit_of_rounding(format);
    for (const bool more : {false, true}) {
      plans.push_back({fmt::format("convolution{}: {}", more ? " with a bias" : "", name), limit,
                       [made, more](int run) { return made->forward(run, more); },
                       [made, more] { return made->expected_forward(more); }});
      plans.push_back({fmt::format("gradient of src{}: {}", more ? ", added" : "", name), limit,
                       [made, more](int run) { return made->data(run, more); },
                       [made, more] { return made->expected_data(more); }});
      plans.push_back({fmt::format("gradients of weights{}: {}", more ? ", added" : "", name),
                       kLimitOfGroups, [made, more](int run) { return made->gradients(run, more); },
                       [made, more] { return made->expected_gradients(more); }});
    }
  }
  return plans;
}

}  // namespace cputrain::cuda
