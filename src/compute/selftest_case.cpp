#include "compute/selftest_case.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace cputrain::compute {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// "dst[17] is 0.5 instead of 0.25": the element that is furthest off, NaN before all others.
std::string worst_element(const CaseOutput& actual, const CaseOutput& expected) {
  if (actual.values.size() != expected.values.size()) {
    return fmt::format("{} has {} numbers instead of {}", actual.name, actual.values.size(),
                       expected.values.size());
  }
  std::size_t worst = 0;
  double furthest = -1;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double off = std::abs(actual.values[i] - expected.values[i]);
    if (off <= furthest) continue;
    furthest = off;
    worst = i;
    if (std::isnan(off)) break;
  }
  return fmt::format("{}[{}] is {:.9g} instead of {:.9g}", actual.name, worst, actual.values[worst],
                     expected.values[worst]);
}

bool same_bits(const RunOutputs& a, const RunOutputs& b) {
  if (a.list.size() != b.list.size()) return false;
  for (std::size_t i = 0; i < a.list.size(); ++i) {
    const auto &x = a.list[i].values, &y = b.list[i].values;
    const std::size_t bytes = x.size() * sizeof(double);
    if (x.size() != y.size() || (bytes && std::memcmp(x.data(), y.data(), bytes) != 0)) {
      return false;
    }
  }
  return true;
}

std::uint64_t hash_of_outputs(const RunOutputs& outputs) {
  Fnv1a hash;
  for (const CaseOutput& output : outputs.list) hash.add(std::as_bytes(std::span(output.values)));
  return hash.value();
}

void compare(const RunOutputs& actual, const RunOutputs& expected, SelftestCase& result) {
  if (actual.list.size() != expected.list.size()) {
    result.error = kInfinity;
    result.wrong =
        fmt::format("{} outputs instead of {}", actual.list.size(), expected.list.size());
    return;
  }
  for (std::size_t i = 0; i < expected.list.size(); ++i) {
    const double error = relative_distance(actual.list[i].values, expected.list[i].values);
    if (error <= result.error) continue;  // NaN is worse than all others
    result.error = error;
    if (!(error <= result.limit)) result.wrong = worst_element(actual.list[i], expected.list[i]);
    if (std::isnan(error)) return;
  }
}

}  // namespace

double relative_distance(std::span<const double> actual, std::span<const double> expected) {
  if (actual.size() != expected.size()) return kInfinity;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  if (difference == 0) return 0;
  return size == 0 ? kInfinity : std::sqrt(difference / size);
}

SelftestCase run_case(const CasePlan& plan) {
  SelftestCase result{.name = plan.name, .limit = plan.limit};
  try {
    const RunOutputs first = plan.compute(0), second = plan.compute(1);
    result.hash = hash_of_outputs(first);
    result.repeats = same_bits(first, second);
    compare(first, plan.expect(), result);
    for (const std::string& wrong : {first.wrong, second.wrong}) {
      if (result.wrong.empty()) result.wrong = wrong;
    }
    if (result.wrong.empty() && !result.repeats) result.wrong = "a second run gave other bits";
  } catch (const Error& error) {
    result.error = kInfinity;
    result.wrong = error.what();
  }
  return result;
}

}  // namespace cputrain::compute
