#include "loop/timeline.h"

#include <chrono>
#include <utility>

namespace cputrain::loop {

double Timeline::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Timeline::begin_step(std::uint64_t step, const char* name) {
  step_ = step;
  name_ = name;
  begin_ = now();
}

void Timeline::next(const char* name) {
  if (!steps_.contains(step_)) return;
  constexpr double kNoTime = 1e-6;
  const char* const ended = std::exchange(name_, name);
  const double end = now(), seconds = end - begin_;
  if (seconds < kNoTime) return;
  const double begin = std::exchange(begin_, end);
  if (spans_.size() < most_) {
    spans_.push_back({ended, step_, begin, seconds});
  } else {
    ++lost_;
  }
}

}  // namespace cputrain::loop
