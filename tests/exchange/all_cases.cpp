#include "tests/exchange/cases.h"

namespace cputrain::exchange {

std::vector<comm::CommCase> all_cases() {
  std::vector<comm::CommCase> cases = comm::collective_cases();
  for (const auto& more :
       {comm::allreduce_cases(), compression_cases(), exchange_cases(), kept_parts_cases(),
        memory_cases(), ordered_exchange_cases(), power_sgd_cases(), sharded_exchange_cases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

}  // namespace cputrain::exchange
