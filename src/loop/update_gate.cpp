#include "loop/update_gate.h"

#include <cmath>

#include "exchange/compression/gradient_sum.h"

namespace cputrain::loop {
namespace {

/// Training passes have moved batch norm's statistics on the side: they are let go of.
void drop_statistics(const RankProgram& parts) {
  const Array weights = parts.exchange.arenas().weights;
  compute::Memory& memory = parts.memory();
  std::vector<std::vector<double>> kept;
  const auto& parameters = parts.program.layout().parameters;
  const auto of = [&](const compute::Parameter& p) {
    return weights.slice(p.range.begin, p.range.end);
  };
  for (const compute::Parameter& p : parameters) {
    if (p.averaged) kept.push_back(compute::read_numbers(memory, of(p)));
  }
  parts.program.publish_statistics();
  std::size_t next = 0;
  for (const compute::Parameter& p : parameters) {
    if (p.averaged) compute::write_numbers(memory, kept[next++], of(p));
  }
}

}  // namespace

UpdateGate::UpdateGate(Parts& parts, const StepToDo& todo)
    : parts_(parts), todo_(todo), rate_before_(parts.optimizer.last_rate()) {
  parts.optimizer.begin_step(todo.updates, todo.learning_rate);
  if (todo.on_nan == NanPolicy::abort || todo.left_out) return;
  measures_.push_back([this] { return look(); });
  for (const exchange::Measure& measure : parts.optimizer.measures()) {
    measures_.push_back([this, &measure] { return open() ? measure() : std::span(&nothing_, 1); });
  }
}

std::span<const exchange::Measure> UpdateGate::measures() const {
  if (todo_.left_out) return {};
  return measures_.empty() ? parts_.optimizer.measures() : measures_;
}

/// NaN and infinities go through a sum of squares.
std::span<double> UpdateGate::look() {
  const Array gradients = parts_.exchange.arenas().gradients;
  bad_ = 0;
  for (const Range& own : parts_.exchange.owned()) {
    const double squares = parts_.backend.sum_of_squares(gradients.slice(own.begin, own.end));
    if (!std::isfinite(squares)) ++bad_;
  }
  return {&bad_, 1};
}

void UpdateGate::undo() {
  drop_statistics(parts_);
  parts_.optimizer.set_last_rate(rate_before_);
  if (exchange::KeptParts* const kept = parts_.exchange.kept_parts()) kept->forget_nonfinite();
}

bool all_numbers(compute::Memory& memory, const Array& array, comm::Communicator& communicator) {
  double bad = 0;
  compute::read_in_pieces(memory, array, [&](const Array& piece) {
    const bool numbers = piece.dtype == DType::f32
                             ? compute::all_numbers(std::span<const float>(piece.as<float>()))
                             : compute::all_numbers(std::span<const double>(piece.as<double>()));
    if (!numbers) bad = 1;
  });
  communicator.sum(Array::of<double>({&bad, 1}));
  return bad == 0;
}

}  // namespace cputrain::loop
