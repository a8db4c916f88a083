#include "loop/observer.h"

namespace cputrain::loop {
namespace {

/// What the timeline calls it. Updates come within an exchange, slice by slice.
const char* span_of(comm::Phase phase) {
  if (phase == comm::Phase::input) return "wait for data";
  if (phase == comm::Phase::exchange) return "exchange and update";
  return comm::name_of(phase).data();
}

}  // namespace

void Observer::begin_step(std::uint64_t step) {
  step_ = step;
  seen_ = 0;
  parts_.timeline.begin_step(step, "penalty");
}

void Observer::at(comm::Phase phase, double* loss_scale) {
  if (phase != comm::Phase::update) part(span_of(phase));
  parts_.communicator.pulse().at(phase, step_);
  if (parts_.timeline.wanted()) parts_.backend.name_work(comm::name_of(phase).data());
  const unsigned bit = 1u << static_cast<unsigned>(phase);
  if (!parts_.fault_point || (seen_ & bit) != 0) return;
  seen_ |= bit;
  const compute::Arenas arenas = parts_.exchange.arenas();
  parts_.fault_point({phase, parts_.communicator.rank(), step_, &parts_.memory(),
                      arenas.weights.slice(0, arenas.gradients.size), loss_scale});
}

}  // namespace cputrain::loop
