#include "backends/cpu/convolution/pooled_winograd.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/convolution/convolution_operations.h"
#include "backends/cpu/convolution/winograd_operation.h"

namespace cputrain::cpu {

bool PooledWinograd::possible(const ConvolutionPlace& place, int images) {
  return place.pool && place.pool->halves() &&
         winograd_pays(problem_of(place, images), Direction::forward);
}

PooledWinograd::PooledWinograd(const Planning& planning, const ConvolutionPlace& place)
    : place_(place) {
  assert(!place.block.image && "images are bytes, and three colours fill no block");
  std::size_t scratch = 0;
  for (const int images : planning.sizes) {
    winograd::Problem problem = winograd_problem(problem_of(place, images)).value();
    problem.pooled = place.dst.layout;
    passes_.emplace_back(problem, winograd::Pass::Way::forward, planning.threads);
    scratch = std::max(scratch, passes_.back().scratch_bytes());
  }
  scratch_ = planning.memory.add(scratch, planning.forward_time(place.op));
}

void PooledWinograd::bind(const Bindings& bindings) {
  scratch_data_ = bindings.at<std::byte>(scratch_);
  src_ = bindings.at(place_.src.value);
  dst_ = bindings.at(place_.dst.value);
  weights_ = bindings.weights(place_.first_parameter);
  if (place_.bias) bias_ = bindings.weights(place_.first_parameter + 1);
  if (place_.dst.wants_diff) winners_ = bindings.at<std::uint8_t>(place_.winners);
}

void PooledWinograd::forward(const Execution& execution, ConvolutionTimes& times) const {
  const TimeSpan span(times.convolution.forward);
  passes_[execution.size].run(src_, weights_, bias_, place_.block.pooled_relu, dst_, scratch_data_,
                              winners_);
}

}  // namespace cputrain::cpu
