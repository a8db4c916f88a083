// The cases of the kernels alone, as JSON: what `selftest --backend cuda` runs before it trains
// networks. For tests that look at single kernels. With patterns: those whose names have one of
// them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "composition/services.h"
#include "core/error.h"
#include "system/print.h"

int main(int count, char** arguments) {
  using namespace cputrain;
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  const std::vector<std::regex> patterns(arguments + 1, arguments + count);
  bool failed = false;
  try {
    composition::own_of("cuda").cases(0, 0, [&](const compute::CasePlan& plan) {
      const auto fits = [&](const std::regex& pattern) {
        return std::regex_search(plan.name, pattern);
      };
      if (!patterns.empty() && std::ranges::none_of(patterns, fits)) return;
      const compute::SelftestCase c = compute::run_case(plan);
      cases.push_back(
          {{"name", c.name}, {"passed", c.passed()}, {"repeats", c.repeats}, {"wrong", c.wrong}});
      failed = failed || !c.passed();
    });
  } catch (const Error& error) {
    system::print("{}\n", error.what());
    return static_cast<int>(error.code());
  }
  system::print("{}\n", cases.dump());
  return static_cast<int>(failed ? ExitCode::failed : ExitCode::ok);
}
