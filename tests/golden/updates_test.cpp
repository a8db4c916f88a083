// Whole updates, from reduced gradients to new weights, against make_updates.py, which has the
// formulas of the papers and of tf.keras in plain Python.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "exchange/exchanges.h"
#include "loop/optimizer.h"
#include "tests/support/sliced_exchange.h"
#include "tests/support/test_data.h"

namespace cputrain::golden::updates_test {
namespace {

using Json = nlohmann::json;

const Json& golden() {
  static const Json file = Json::parse(testing::test_data("golden/updates.json"));
  return file;
}

/// As in make_updates.py.
double number(std::size_t i, std::size_t salt) {
  return static_cast<double>((i * 7919 + salt * 104729) % 2000) / 1000 - 1;
}

/// The last tensor first, each on a 64-byte boundary; a frozen one behind them all.
compute::ParameterLayout layout_of(DType dtype, const Json& golden_case) {
  compute::ParameterLayout layout;
  layout.dtype = dtype;
  const auto place = [&](std::size_t count) {
    const std::size_t begin = layout.arena_size, step = 64 / size_of(dtype);
    layout.arena_size = (begin + count + step - 1) / step * step;
    return Range{begin, begin + count};
  };
  const Json& tensors = golden()["tensors"];
  for (std::size_t k = tensors.size(); k-- > 0;) {
    const std::size_t count = tensors[k]["count"];
    layout.parameters.insert(layout.parameters.begin(), {tensors[k]["name"],
                                                         {static_cast<int>(count)},
                                                         count,
                                                         place(count),
                                                         tensors[k]["kernel"].get<bool>(),
                                                         true,
                                                         false,
                                                         tensors[k]["l2"].get<float>(),
                                                         1});
    compute::Parameter& made = layout.parameters.front();
    if (made.name.starts_with("b/")) made.rate = golden_case.value("factor", 1.0);
  }
  layout.gradient_size = layout.arena_size;
  layout.parameters.push_back({"frozen/kernel", {11}, 11, place(11), true, false, false, 0.5f, 1});
  return layout;
}

loop::OptimizerOptions options_of(const Json& golden_case) {
  const auto optional = [&](const char* key) {
    return golden_case.contains(key) ? std::optional(golden_case[key].get<double>()) : std::nullopt;
  };
  loop::OptimizerOptions options{optim::rule_named(golden_case["rule"].get<std::string>()).value(),
                                 golden_case.value("decay", 0.0), optional("clip_value"),
                                 optional("clip_norm"), golden_case.value("correct", false)};
  optim::for_figures(options.rule, [&](const char* name, auto& figure) {
    if (golden_case.contains(name)) golden_case[name].get_to(figure);
  });
  return options;
}

/// The tensor of which this word of a case speaks, by its place in the layout.
std::optional<std::size_t> tensor_of(const Json& golden_case, const char* word) {
  for (std::size_t k = 0; k < golden()["tensors"].size(); ++k) {
    if (golden_case.contains(word) && golden_case[word] == golden()["tensors"][k]["name"]) return k;
  }
  return {};
}

template <class T>
void fill_gradients(const compute::ParameterLayout& layout, const compute::Arenas& arenas,
                    const Json& golden_case, std::size_t step, double part) {
  const auto weights = arenas.weights.as<T>(), gradients = arenas.gradients.as<T>();
  const auto still = tensor_of(golden_case, "still");
  for (std::size_t k = 0; k < layout.parameters.size(); ++k) {
    const compute::Parameter& parameter = layout.parameters[k];
    if (!parameter.learnt) continue;
    for (std::size_t i = 0; i < parameter.count; ++i) {
      const T w = weights[parameter.range.begin + i];
      const double g = number(i, 10 + 5 * step + k) + 0.25 * static_cast<double>(w);
      gradients[parameter.range.begin + i] = k == still ? T{0} : static_cast<T>(part * g);
    }
  }
}

/// Largest difference from the golden weights after all steps; `part` is this rank's share of the
/// gradient.
template <class T>
double worst_error(compute::Backend& backend, exchange::GradientExchange& exchange,
                   const compute::ParameterLayout& layout, const Json& golden_case, double part) {
  const auto weights = exchange.arenas().weights.as<T>();
  const auto zero = tensor_of(golden_case, "zero");
  for (std::size_t k = 0; k < layout.parameters.size(); ++k) {
    const Range range = layout.parameters[k].range;
    for (std::size_t i = 0; i < range.size(); ++i) {
      weights[range.begin + i] = k == zero ? T{0} : static_cast<T>(number(i, k));
    }
  }
  loop::Optimizer optimizer(options_of(golden_case), backend, exchange, layout);
  const std::vector<double> rates = golden_case["rates"];
  for (std::size_t step = 0; step < rates.size(); ++step) {
    exchange.begin(0, true);
    fill_gradients<T>(layout, exchange.arenas(), golden_case, step, part);
    exchange.ready(layout.gradient_size);
    optimizer.begin_step(step, rates[step]);
    exchange.finish(optimizer.measures(), [&](Range range) { optimizer.update(range); });
  }
  double worst = 0;
  for (std::size_t k = 0; k < layout.parameters.size(); ++k) {
    const compute::Parameter& parameter = layout.parameters[k];
    for (std::size_t i = 0; i < parameter.count; ++i) {
      const double expected = parameter.learnt
                                  ? golden_case["weights"][parameter.name][i].get<double>()
                                  : static_cast<double>(static_cast<T>(number(i, k)));
      const double error = static_cast<double>(weights[parameter.range.begin + i]) - expected;
      worst = std::isfinite(error) ? std::max(worst, std::abs(error)) : INFINITY;
    }
  }
  return worst;
}

class WholeUpdate : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Json& golden_case() const { return golden()["cases"][GetParam()]; }
};

TEST_P(WholeUpdate, IsThatOfThePapers) {
  const auto backend = reference::make_reference_backend(DType::f64);
  const compute::ParameterLayout layout = layout_of(DType::f64, golden_case());
  const auto alone = comm::make_solo();
  for (const std::size_t bucket : {0, 1 << 20}) {
    const auto exchange = exchange::make_exchange({*alone, layout, bucket}, {}).exchange;
    EXPECT_LE(worst_error<double>(*backend, *exchange, layout, golden_case(), 1), 1e-13);
  }
}

TEST_P(WholeUpdate, IsTheSameInFloat) {
  const compute::ParameterLayout layout = layout_of(DType::f32, golden_case());
  const auto alone = comm::make_solo();
  std::vector<std::unique_ptr<compute::Backend>> backends;
  backends.push_back(reference::make_reference_backend(DType::f32));
  if (cpu::cpu_backend_available())
    backends.push_back(cpu::make_cpu_backend(2, {.winograd = true}));
  for (const auto& backend : backends) {
    const auto exchange = exchange::make_exchange({*alone, layout}, {}).exchange;
    EXPECT_LE(worst_error<float>(*backend, *exchange, layout, golden_case(), 1), 2e-5)
        << backend->facts().description;
  }
}

// Norms of tensors that are cut between owners, or lie with others altogether.
TEST_P(WholeUpdate, IsTheSameWhereRanksOwnSlices) {
  const compute::ParameterLayout layout = layout_of(DType::f64, golden_case());
  for (const int ranks : {2, 3, 7}) {
    threads::run_ranks(ranks, [&](comm::Communicator& communicator) {
      const auto backend = reference::make_reference_backend(DType::f64);
      testing::SlicedExchange exchange(communicator, layout);
      const double part = 1.0 / communicator.size();
      EXPECT_LE(worst_error<double>(*backend, exchange, layout, golden_case(), part), 1e-12);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, WholeUpdate,
                         ::testing::Range<std::size_t>(0, golden()["cases"].size()),
                         [](const auto& test) {
                           return golden()["cases"][test.param]["name"].template get<std::string>();
                         });

}  // namespace
}  // namespace cputrain::golden::updates_test
