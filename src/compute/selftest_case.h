#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

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

}  // namespace cputrain::compute
