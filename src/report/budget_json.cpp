#include "report/budget_json.h"

#include <nlohmann/json.hpp>

namespace cputrain {

nlohmann::ordered_json json_of(const Budget& b) {
  return {{"input_wait", b.input_wait},
          {"forward", b.forward},
          {"backward", b.backward},
          {"allreduce_exposed", b.allreduce_exposed},
          {"straggler_wait", b.straggler_wait},
          {"optimizer", b.optimizer},
          {"other", b.other}};
}

}  // namespace cputrain
