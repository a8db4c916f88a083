#include "comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>

namespace cputrain {

std::optional<double> largest_of_ranks(Communicator& communicator, std::optional<double> mine) {
  std::optional<double> largest;
  for (const std::string& text : communicator.gather(mine ? fmt::format("{:.17g}", *mine) : "")) {
    if (!text.empty()) largest = std::max(largest, std::optional(std::stod(text)));
  }
  return largest;
}

}  // namespace cputrain
