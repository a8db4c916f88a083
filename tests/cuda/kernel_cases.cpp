// The cases of the kernels alone, as JSON: what `selftest --backend cuda` runs before it trains
// networks. For tests that look at single kernels.
#include <nlohmann/json.hpp>

#include "composition/services.h"
#include "core/error.h"
#include "system/print.h"

int main() {
  using namespace cputrain;
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  bool failed = false;
  try {
    composition::own_of("cuda").cases(0, 0, [&](const compute::CasePlan& plan) {
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
