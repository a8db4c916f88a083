#include "compute/selftest/selftest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "compute/selftest/layer_plans.h"
#include "core/error.h"

namespace cputrain::selftest {
namespace {

/// What rounding to bf16's 8 bits moves a number by: 2^-8 of it at most, 2^-9 on average. In a
/// small tensor the mean is lower now and then, by chance.
constexpr double kRounding = 0x1p-9;
/// Where a kernel stays in float, roundings are missing that would cancel others. Where a float sum
/// falls on the other side of a tie, other numbers are rounded.
constexpr double kOtherRoundings = 3;

/// With names of their own. Where activations are rounded, some fall on the other side of zero, or
/// win in another window: a part of them as large as the roundoff. These have wholly other
/// gradients, whose part of the norm is the root of that.
std::vector<Way> ways_in(Precision precision, const Own& own) {
  std::vector<Way> ways = own.ways;
  const auto rounded = own.rounded.find(precision);
  const bool rounds = rounded != own.rounded.end();
  if (precision == Precision::bf16 || precision == Precision::f64) ways.resize(1);
  if (precision == Precision::f64) ways.front().limit = 1e-12;
  for (Way& way : ways) {
    const std::string name = rounds ? rounded->second.name : std::string(word_of(precision));
    way.name = fmt::format("{}{}{}", name, way.name.empty() ? "" : ", ", way.name);
    if (rounds) way.limit = std::sqrt(rounded->second.roundoff);
  }
  return ways;
}

struct OpenWay {
  Way way;
  Precision precision;
  std::unique_ptr<compute::Backend> backend;
};

std::string name_in(const LayerCase& c, const OpenWay& open) {
  return fmt::format("{} ({})", c.name, open.way.name);
}

/// A case that an error ended before it was made.
compute::SelftestCase failed_case(const std::string& name, const Error& error) {
  return compute::run_case(
      {.name = name, .compute = [&](int) -> compute::RunOutputs { throw error; }, .expect = {}});
}

/// Those that compute the first network. Ways whose kernels are those of an earlier one are no
/// others.
std::vector<OpenWay> open_ways(const Request& request, const LayerCase& first,
                               const Results& results) {
  std::vector<OpenWay> ways;
  std::set<std::pair<std::string, DType>> seen;
  const auto open = [&](Precision precision, const Way& way) {
    std::unique_ptr<compute::Backend> backend;
    std::string refusal;
    try {
      backend = request.make(precision, way.options);
      if (!seen.insert({backend->facts().kernels, backend->dtype()}).second) return;
      refusal = refusal_of(first, *backend);
    } catch (const Error& error) {
      if (error.code() == ExitCode::usage) throw;
      const std::string name = fmt::format("first network ({})", way.name);
      results.begins(name);
      results.done(failed_case(name, error));
    }
    if (!refusal.empty()) {
      if (request.all_must_be) fail(ExitCode::usage, refusal);
      results.left_out(way.name, refusal);
    } else if (backend) {
      ways.push_back({way, precision, std::move(backend)});
    }
  };
  for (const Precision precision : request.precisions) {
    for (const Way& way : ways_in(precision, request.own)) open(precision, way);
  }
  return ways;
}

compute::RunOutputs without_predictions(compute::RunOutputs outputs) {
  std::erase_if(outputs.list, [](const auto& output) { return output.name == kPredictions; });
  return outputs;
}

/// What rounded factors alone may make of the case, beside the error of sums. How far they move it
/// depends on the network: where terms cancel, it is many times the roundings.
double allowance_of_rounding(const compute::RunOutputs& rounded, const compute::RunOutputs& exact) {
  double moved = 0;
  for (std::size_t i = 0; i < exact.list.size(); ++i) {
    moved =
        std::max(moved, compute::relative_distance(rounded.list[i].values, exact.list[i].values));
  }
  return moved > 0 ? kOtherRoundings * std::max(moved, kRounding) : 0;
}

/// Predictions are not numbers that rounding moves a little.
compute::CasePlan with_other_predictions(const compute::CasePlan& plan) {
  return {.name = plan.name,
          .limit = plan.limit,
          .compute = [run = plan.compute](int number) { return without_predictions(run(number)); },
          .expect = [expect = plan.expect] { return without_predictions(expect()); }};
}

/// The plan, for a way that rounds what convolutions multiply.
compute::CasePlan with_rounded_factors(const compute::CasePlan& plan, const LayerCase& c,
                                       const Request& request) {
  const compute::RunOutputs exact = without_predictions(plan.expect()),
                            rounded = without_predictions(
                                expected_of(c, request.seed, *request.rounding_reference));
  compute::CasePlan allowed = with_other_predictions(plan);
  allowed.limit += allowance_of_rounding(rounded, exact);
  return allowed;
}

/// The layer's, for a way.
compute::CasePlan plan_in(const LayerCase& c, const OpenWay& open,
                          const std::function<compute::RunOutputs()>& expected,
                          const Request& request) {
  compute::CasePlan plan =
      plan_of(c, request.seed, open.way.limit, *open.backend, *request.reference);
  plan.expect = expected;
  plan.name = name_in(c, open);
  // What is rounded turns predictions, and moves numbers by more than sums do.
  if (request.own.rounded.contains(open.precision)) return with_other_predictions(plan);
  return open.precision == Precision::bf16 ? with_rounded_factors(plan, c, request) : plan;
}

void run_layer(const LayerCase& c, const Request& request, const std::vector<OpenWay>& ways,
               const Results& results) {
  std::optional<compute::RunOutputs> made;  // the same for all ways
  const auto expected = [&] {
    if (!made) made = expected_of(c, request.seed, *request.reference);
    return *made;
  };
  for (const OpenWay& open : ways) {
    if (!open.way.concerns(c)) continue;
    results.begins(name_in(c, open));
    std::string refusal;
    compute::SelftestCase result;
    try {
      refusal = refusal_of(c, *open.backend);
      if (refusal.empty()) result = compute::run_case(plan_in(c, open, expected, request));
    } catch (const Error& error) {
      result = failed_case(name_in(c, open), error);
    }
    if (refusal.empty()) {
      results.done(result);
    } else {
      results.left_out(c.name, refusal);
    }
  }
}

void run_plan(const compute::CasePlan& plan, const Results& results) {
  results.begins(plan.name);
  results.done(compute::run_case(plan));
}

/// Cases of kernels come from the backend; where it can make no more of them, that is one.
void run_own_cases(const Request& request, const Results& results) {
  try {
    request.own.cases(request.device, request.seed,
                      [&](const compute::CasePlan& plan) { run_plan(plan, results); });
  } catch (const Error& error) {
    const std::string name = "further cases of kernels";
    results.begins(name);
    results.done(failed_case(name, error));
  }
}

}  // namespace

void run(const Request& request, const Results& results) {
  const std::vector<LayerCase> layers = layer_cases(request.seed);
  const std::vector<OpenWay> ways = open_ways(request, layers.front(), results);
  if (request.own.cases) run_own_cases(request, results);
  for (const LayerCase& c : layers) run_layer(c, request, ways, results);
  if (ways.empty()) return;
  compute::Backend& first = *ways.front().backend;
  for (const compute::CasePlan& plan : array_plans(request.seed, first, *request.reference)) {
    run_plan(plan, results);
  }
}

}  // namespace cputrain::selftest
