#include <fmt/format.h>

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;
using Dense = std::vector<float>;

/// Channels of the parts, and what lies in them, in the whole's gradient and in the parts', where
/// that is added to.
struct Parts {
  int positions, whole;
  std::vector<int> channels;
  std::vector<Dense> src, before;
  Dense diff_whole;
};

Parts draw_parts(CaseNumbers& numbers, Numbers format, const std::vector<int>& channels) {
  Parts made{.positions = numbers.between(1, 70),
             .whole = 0,
             .channels = channels,
             .src = {},
             .before = {},
             .diff_whole = {}};
  const auto draw = [&](int of_each) {
    return rounded(format, numbers.reals(static_cast<std::size_t>(made.positions) *
                                         static_cast<std::size_t>(of_each)));
  };
  for (const int own : channels) {
    made.whole += own;
    made.src.push_back(draw(own));
    made.before.push_back(draw(own));
  }
  made.diff_whole = draw(made.whole);
  return made;
}

/// Calls f(part, channel of it, channel of the whole).
template <class F>
void each_channel(const Parts& p, const F& f) {
  int first = 0;
  for (std::size_t i = 0; i < p.channels.size(); ++i) {
    for (int c = 0; c < p.channels[i]; ++c) f(i, c, first + c);
    first += p.channels[i];
  }
}

std::size_t at(int position, int channels, int channel) {
  return static_cast<std::size_t>(position * channels + channel);
}

CasePlan concat_plan(Numbers format, std::uint64_t seed, const std::vector<int>& channels, bool add,
                     const OwnedStream& stream) {
  std::string name = "concat of";
  for (const int own : channels) name += fmt::format(" {}", own);
  CaseNumbers numbers(seed, name);
  const Parts p = draw_parts(numbers, format, channels);
  const auto compute = [=, &stream](int run) {
    const auto poison = [&](int of_each) {
      return Dense(static_cast<std::size_t>(p.positions * padded_channels(of_each)),
                   poison_of(run));
    };
    const GuardedMap whole("whole", stream, format, poison(p.whole));
    const GuardedMap diff("diff_whole", stream, format, with_padding(p.diff_whole, p.whole));
    RunOutputs outputs, gradients;
    int first = 0;
    for (std::size_t i = 0; i < p.channels.size(); ++i) {
      const int own = p.channels[i];
      const ConcatPart part{p.positions, own, first, p.whole};
      const GuardedMap src("src", stream, format, with_padding(p.src[i], own));
      const std::string of_part = fmt::format("diff of part {}", i);
      const GuardedMap diff_part(of_part, stream, format,
                                 add ? with_padding(p.before[i], own) : poison(own));
      concat_forward(stream.get(), format, part, src.data(), whole.data());
      concat_backward(stream.get(), format, part, diff.data(), diff_part.data(), add);
      check_padding(of_part, diff_part.put_into(outputs), own, outputs);
      first += own;
    }
    check_padding("whole", whole.put_into(outputs), p.whole, outputs);
    return outputs;
  };
  const auto expect = [=] {
    std::vector<Dense> diffs;
    for (std::size_t i = 0; i < p.channels.size(); ++i) {
      diffs.push_back(add ? p.before[i] : Dense(p.src[i].size()));
    }
    Dense whole(p.diff_whole.size());
    for (int position = 0; position < p.positions; ++position) {
      each_channel(p, [&](std::size_t i, int own, int of_whole) {
        const std::size_t from = at(position, p.channels[i], own);
        whole[at(position, p.whole, of_whole)] = p.src[i][from];
        diffs[i][from] += p.diff_whole[at(position, p.whole, of_whole)];
      });
    }
    RunOutputs outputs;
    for (std::size_t i = 0; i < diffs.size(); ++i) {
      outputs.add(fmt::format("diff of part {}", i), with_padding(diffs[i], p.channels[i]));
    }
    outputs.add("whole", with_padding(whole, p.whole));
    return outputs;
  };
  return {fmt::format("{}{}{}, {} positions", name, in_words(format), add ? ", added" : "",
                      p.positions),
          1e-7 + limit_of_rounding(format), compute, expect};
}

}  // namespace

std::vector<CasePlan> concat_plans(Numbers format, std::uint64_t seed, const OwnedStream& stream) {
  std::vector<CasePlan> plans;
  for (const std::vector<int>& channels :
       {std::vector{16, 8}, {8, 5}, {5, 8, 3}, {4, 12, 260}, {1, 1, 1}, {21, 7}}) {
    for (const bool add : {false, true}) {
      plans.push_back(concat_plan(format, seed, channels, add, stream));
    }
  }
  return plans;
}

}  // namespace cputrain::cuda
