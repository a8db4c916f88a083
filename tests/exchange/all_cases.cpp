#include "tests/exchange/cases.h"

namespace cputrain {

std::vector<CommCase> all_cases() {
  std::vector<CommCase> cases = collective_cases();
  for (const auto& more : {allreduce_cases(), compression_cases(), exchange_cases(), memory_cases(),
                           ordered_exchange_cases(), sharded_exchange_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

}  // namespace cputrain
