#include <fmt/format.h>

#include <memory>

#include "backends/cuda/kernels/pools.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/plain_pools.h"
#include "backends/cuda/selftest/window_case.h"
#include "compute/selftest_case.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;

/// The limit of means: numbers near 1, each rounded a few times.
constexpr double kLimitOfMeans = 1e-6;

/// What the kernels read, with padding. `before` is in diff_src where it is added to.
struct PoolNumbers {
  Numbers format;
  std::vector<float> src, diff_dst, before;
};

/// A gradient is written over NaN, or added to numbers.
GuardedMap gradient(const OwnedStream& stream, const PoolNumbers& n, int run, bool add) {
  return {"diff_src", stream, n.format,
          add ? n.before : std::vector<float>(n.before.size(), poison_of(run))};
}
std::vector<float> start_of(const PoolNumbers& n, bool add) {
  return add ? n.before : std::vector<float>(n.before.size());
}

void put(const GuardedMap& array, const char* name, int channels, RunOutputs& outputs) {
  check_padding(name, array.put_into(outputs), channels, outputs);
}

class Pool {
 public:
  Pool(const WindowCase& c, PoolNumbers numbers, const OwnedStream& stream)
      : case_(c), shape_(c.window()), numbers_(std::move(numbers)), stream_(stream) {}

  RunOutputs maxima(int run, bool add) const {
    const GuardedMap src("src", stream_, numbers_.format, numbers_.src),
        diff("diff_dst", stream_, numbers_.format, numbers_.diff_dst);
    const GuardedMap dst("dst", stream_, numbers_.format, poisoned(run));
    const GuardedArray<std::uint8_t> winners(
        "winners", stream_,
        std::vector<std::uint8_t>(numbers_.diff_dst.size(), poison_of_bytes(run)));
    const GuardedMap diff_src = gradient(stream_, numbers_, run, add);
    max_pool_forward(stream_.get(), numbers_.format, shape_, src.data(), dst.data(),
                     winners.data());
    max_pool_backward(stream_.get(), numbers_.format, shape_, diff.data(), winners.data(),
                      diff_src.data(), add);
    RunOutputs outputs;
    put(dst, "dst", case_.channels, outputs);
    winners.put_into(outputs);
    put(diff_src, "diff_src", case_.channels, outputs);
    return outputs;
  }
  RunOutputs expected_maxima(bool add) const {
    const PlainMaxima maxima = plain_maxima(shape_, numbers_.src);
    RunOutputs outputs;
    outputs.add("dst", maxima.values);
    outputs.add("winners", maxima.places);
    outputs.add("diff_src",
                plain_max_gradient(shape_, maxima, numbers_.diff_dst, start_of(numbers_, add)));
    return outputs;
  }

  RunOutputs means(int run, bool add) const {
    const GuardedMap src("src", stream_, numbers_.format, numbers_.src),
        diff("diff_dst", stream_, numbers_.format, numbers_.diff_dst);
    const GuardedMap dst("dst", stream_, numbers_.format, poisoned(run));
    const GuardedMap diff_src = gradient(stream_, numbers_, run, add);
    average_pool_forward(stream_.get(), numbers_.format, shape_, src.data(), dst.data());
    average_pool_backward(stream_.get(), numbers_.format, shape_, diff.data(), diff_src.data(),
                          add);
    RunOutputs outputs;
    put(dst, "dst", case_.channels, outputs);
    put(diff_src, "diff_src", case_.channels, outputs);
    return outputs;
  }
  RunOutputs expected_means(bool add) const {
    RunOutputs outputs;
    outputs.add("dst", plain_means(shape_, numbers_.src));
    outputs.add("diff_src",
                plain_mean_gradient(shape_, numbers_.diff_dst, start_of(numbers_, add)));
    return outputs;
  }

 private:
  std::vector<float> poisoned(int run) const {
    return std::vector<float>(numbers_.diff_dst.size(), poison_of(run));
  }

  WindowCase case_;
  WindowShape shape_;
  PoolNumbers numbers_;
  const OwnedStream& stream_;
};

/// The whole map is one window.
class GlobalPool {
 public:
  GlobalPool(int images, const MapShape& map, int channels, PoolNumbers numbers,
             const OwnedStream& stream)
      : shape_{images, map, {1, 1, map.channels}},
        channels_(channels),
        numbers_(std::move(numbers)),
        stream_(stream) {}

  RunOutputs run(int run, bool add) const {
    const GuardedMap src("src", stream_, numbers_.format, numbers_.src),
        diff("diff_dst", stream_, numbers_.format, numbers_.diff_dst);
    const GuardedMap dst("dst", stream_, numbers_.format,
                         std::vector<float>(numbers_.diff_dst.size(), poison_of(run)));
    const GuardedMap diff_src = gradient(stream_, numbers_, run, add);
    global_average_pool_forward(stream_.get(), numbers_.format, shape_.images, shape_.src,
                                src.data(), dst.data());
    global_average_pool_backward(stream_.get(), numbers_.format, shape_.images, shape_.src,
                                 diff.data(), diff_src.data(), add);
    RunOutputs outputs;
    put(dst, "dst", channels_, outputs);
    put(diff_src, "diff_src", channels_, outputs);
    return outputs;
  }
  RunOutputs expected(bool add) const {
    WindowShape whole = shape_;
    whole.size = std::max(whole.src.height, whole.src.width);
    whole.stride = whole.size;
    RunOutputs outputs;
    outputs.add("dst", plain_means(whole, numbers_.src));
    outputs.add("diff_src", plain_mean_gradient(whole, numbers_.diff_dst, start_of(numbers_, add)));
    return outputs;
  }

 private:
  WindowShape shape_;
  int channels_;
  PoolNumbers numbers_;
  const OwnedStream& stream_;
};

enum class Draw { reals, whole };

/// Whole numbers: many equals, and sums that are exact.
PoolNumbers draw_numbers_of_pool(Numbers format, CaseNumbers& numbers, std::size_t positions,
                                 std::size_t windows, int channels, Draw draw) {
  const auto dense = [&](std::size_t count) {
    const std::size_t size = count * static_cast<std::size_t>(channels);
    const auto drawn = draw == Draw::whole ? numbers.whole(size, -3, 3) : numbers.reals(size);
    return with_padding(rounded(format, drawn), channels);
  };
  PoolNumbers made{.format = format, .src = {}, .diff_dst = {}, .before = {}};
  made.src = dense(positions);
  made.diff_dst = dense(windows);
  made.before = dense(positions);
  return made;
}

struct PoolKind {
  int size, stride;
  model::Padding padding;
  int most_channels;
};

void add_window_pools(std::vector<CasePlan>& plans, Numbers format, std::uint64_t seed,
                      const OwnedStream& stream) {
  using enum model::Padding;
  for (const auto& [size, stride, padding, most_channels] :
       {PoolKind{2, 2, valid, 24}, PoolKind{2, 2, same, 9}, PoolKind{3, 2, same, 24},
        PoolKind{3, 1, same, 17}, PoolKind{3, 3, valid, 9}, PoolKind{2, 3, valid, 17},
        PoolKind{1, 2, valid, 9}, PoolKind{5, 2, same, 280}, PoolKind{15, 2, same, 5},
        PoolKind{3, 2, half, 24}}) {
    for (const Draw draw : {Draw::whole, Draw::reals}) {
      const char* what = draw == Draw::whole ? "max pool" : "average pool";
      CaseNumbers numbers(seed, fmt::format("{} {} {} {}", what, size, stride, int(padding)));
      const int channels = numbers.between(1, most_channels), least = std::max(size, 5);
      const WindowCase c{numbers.between(1, 3),
                         numbers.odd_between(least, least + 6),
                         numbers.odd_between(least, least + 4) + 1,
                         channels,
                         channels,
                         size,
                         stride,
                         padding};
      const WindowShape shape = c.window();
      const auto made = std::make_shared<Pool>(
          c,
          draw_numbers_of_pool(format, numbers, static_cast<std::size_t>(shape.positions()),
                               static_cast<std::size_t>(shape.windows()), channels, draw),
          stream);
      for (const bool add : {false, true}) {
        const std::string name =
            fmt::format("{}{}{}: {}", what, in_words(format), add ? ", added" : "", text_of(c));
        if (draw == Draw::whole) {
          plans.push_back({name, 0, [made, add](int run) { return made->maxima(run, add); },
                           [made, add] { return made->expected_maxima(add); }});
        } else {
          plans.push_back({name, kLimitOfMeans + limit_of_rounding(format),
                           [made, add](int run) { return made->means(run, add); },
                           [made, add] { return made->expected_means(add); }});
        }
      }
    }
  }
}

void add_global_pools(std::vector<CasePlan>& plans, Numbers format, std::uint64_t seed,
                      const OwnedStream& stream) {
  for (const int most_channels : {7, 40, 300}) {
    CaseNumbers numbers(seed, fmt::format("global average pool {}", most_channels));
    const int images = numbers.between(1, 3), channels = numbers.between(1, most_channels);
    const MapShape map{numbers.odd_between(3, 9), numbers.odd_between(5, 40),
                       padded_channels(channels)};
    const auto positions = static_cast<std::size_t>(images * map.height * map.width);
    const auto made = std::make_shared<GlobalPool>(
        images, map, channels,
        draw_numbers_of_pool(format, numbers, positions, static_cast<std::size_t>(images), channels,
                             Draw::reals),
        stream);
    for (const bool add : {false, true}) {
      plans.push_back({fmt::format("global average pool{}{}: {} x {} x {} x {}", in_words(format),
                                   add ? ", added" : "", images, map.height, map.width, channels),
                       kLimitOfMeans + limit_of_rounding(format),
                       [made, add](int run) { return made->run(run, add); },
                       [made, add] { return made->expected(add); }});
    }
  }
}

}  // namespace

std::vector<CasePlan> pool_plans(Numbers format, std::uint64_t seed, const OwnedStream& stream) {
  std::vector<CasePlan> plans;
  add_window_pools(plans, format, seed, stream);
  add_global_pools(plans, format, seed, stream);
  return plans;
}

}  // namespace cputrain::cuda
