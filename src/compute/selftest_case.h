#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/random/random.h"

/// What `selftest` and the kernels' own cases in a plugin have in common: a case is a computation
/// that runs twice and whose outputs are compared with plain loops in double.
namespace cputrain::compute {

/// |actual - expected| / |expected|, Euclidean; 0 where they are equal, infinite where their
/// lengths differ or all that is expected is 0.
double relative_distance(std::span<const double> actual, std::span<const double> expected);

/// Numbers that a case computed. What does not fit a name goes to RunOutputs::wrong.
struct CaseOutput {
  std::string name;
  std::vector<double> values;
};

struct RunOutputs {
  std::vector<CaseOutput> list;
  std::string wrong{};  ///< beside the numbers: "wrote behind the end of dst"; empty: nothing

  void add(std::string name, const auto& values) {
    list.push_back({std::move(name), {values.begin(), values.end()}});
  }
  /// The first thing that is wrong counts.
  void note(const std::string& text) {
    if (wrong.empty()) wrong = text;
  }
};

struct CasePlan {
  std::string name;
  double limit = 0;
  /// Runs 0 and 1. Each should find other numbers where its outputs will lie, so that what is never
  /// written differs between them and from what is expected.
  std::function<RunOutputs(int run)> compute;
  std::function<RunOutputs()> expect;  ///< the same outputs, in double
};

/// What became of a case.
struct SelftestCase {
  std::string name;
  /// relative_distance() of the worst output. Not finite where a number is missing or is NaN.
  double error = 0;
  double limit = 0;
  bool repeats = true;     ///< the second run gave the same bits
  std::uint64_t hash = 0;  ///< a hash of the first run's outputs
  std::string wrong{};     ///< in words; empty for a case that passed

  bool passed() const { return wrong.empty(); }
};

/// Takes cases as they are made and runs each at once, so that it can print before which one comes.
using SelftestSink = std::function<void(const CasePlan&)>;

/// Runs a case. An Error fails the case, with its text.
SelftestCase run_case(const CasePlan&);

/// Random sizes and numbers of one case of a selftest: a function of seed and name, so that they do
/// not change where other cases come or go.
class CaseNumbers {
 public:
  CaseNumbers(std::uint64_t seed, std::string_view name)
      : stream_(seed, Purpose::noise, static_cast<std::uint32_t>(Fnv1a().add(name).value())) {}

  int between(int low, int high) {
    return low + static_cast<int>(below(word(), static_cast<std::uint32_t>(high - low + 1)));
  }
  int odd_between(int low, int high) { return between(low / 2, (high - 1) / 2) * 2 + 1; }
  float real(float low = -1, float high = 1) { return low + (high - low) * unit_float(word()); }

  std::vector<float> reals(std::size_t count, float low = -1, float high = 1) {
    std::vector<float> values(count);
    for (float& value : values) value = real(low, high);
    return values;
  }
  /// So few that equals are common.
  std::vector<float> whole(std::size_t count, int low, int high) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(between(low, high));
    return values;
  }
  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> values(count);
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(word());
    return values;
  }

 private:
  std::uint32_t word() {
    const std::uint32_t number = count_++;
    if (number % 4 == 0) words_ = stream_.at(number / 4);
    return words_[number % 4];
  }

  RandomStream stream_;
  std::uint32_t count_ = 0;
  std::array<std::uint32_t, 4> words_{};
};

}  // namespace cputrain::compute
