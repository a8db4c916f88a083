#include "core/statistics/spread.h"

#include <nlohmann/json.hpp>

namespace cputrain {

nlohmann::ordered_json json_of(const Spread& s) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}};
}

}  // namespace cputrain
