#include "comm/exchange.h"

#include <algorithm>

namespace cputrain {

std::vector<std::size_t> bucket_ends(const ExchangePlan& plan) {
  const ParameterLayout& layout = plan.layout;
  std::vector<Range> ranges;
  for (const Parameter& parameter : layout.parameters) {
    if (parameter.learnt) ranges.push_back(parameter.range);
  }
  std::ranges::sort(ranges, {}, &Range::begin);

  // A bucket ends where its last parameter ends; padding up to the next one travels with the next
  // bucket, so that a bucket never waits for a parameter that it does not hold.
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  for (const Range& range : ranges) {
    if (range.end > begin && (range.end - begin) * size_of(layout.dtype) >= plan.bucket_bytes) {
      ends.push_back(range.end);
      begin = range.end;
    }
  }
  if (begin < layout.gradient_size) ends.push_back(layout.gradient_size);
  return ends;
}

}  // namespace cputrain
