#include <chrono>
#include <functional>
#include <thread>

#include "core/error.h"
#include "training/training.h"
#include "weights/load.h"

// From the thread that answers signals, while others make steps.
namespace cputrain::training {
namespace {

/// Tries again while other ranks are in the middle of a step. False where they stay there.
bool in_time(const std::function<bool()>& copied) {
  constexpr int kTries = 500;  // some ms each; mpirun leaves a second or two
  for (int i = 0; i < kTries; ++i) {
    if (copied()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  return false;
}

}  // namespace

// While the mutex is held this rank changes no weights, but others of its node may, where they
// share one copy: a copy of it is of a completed step if its version was the same before and after.
void Training::save_at_once(const std::filesystem::path& file) const {
  const exchange::GradientExchange& exchange = *compiled_.exchange;
  compute::Memory& memory = session_.backend->memory();
  const compute::OwnedArray copy(memory, weights().size, weights().dtype);
  const auto copied = [&] {
    const std::lock_guard lock(parts_->weights_mutex);
    if (parts_->aside) {
      memory.copy(parts_->aside->array().data, copy.array().data, copy.bytes());
      return true;
    }
    const std::uint64_t before = exchange.weights_version();
    if (before % 2 != 0) return false;
    memory.copy(weights().data, copy.array().data, copy.bytes());
    return exchange.weights_version() == before;
  };
  if (!in_time(copied)) {
    fail(ExitCode::output,
         "terminated in the middle of a step that other ranks did not complete (the weights are of "
         "no step and were not saved); start again");
  }
  // A busy disk may take longer than mpirun waits.
  weights::save_weights(file, *description_, *compiled_.program, copy.array(),
                        system::Durability::process);
}

// Averages lie with the ranks that own them, and change with the mutex held. There is no second
// try: while they are evaluated they have changed places with the weights, for long.
bool Training::save_averages_at_once(const std::filesystem::path& file) const {
  std::size_t own = 0;
  for (const Range& range : compiled_.exchange->owned()) own += range.size();
  if (own < compiled_.program->layout().gradient_size) return false;
  compute::Memory& memory = session_.backend->memory();
  const compute::OwnedArray copy(memory, weights().size, weights().dtype);
  {
    const std::lock_guard lock(parts_->weights_mutex);
    if (parts_->aside) return false;
    memory.copy(weights().data, copy.array().data, copy.bytes());
    for (const compute::ArenaPart& part : parts_->optimizer.all_averages()) {
      const Array to = copy.array().slice(part.range.begin, part.range.end);
      memory.copy(part.values.data, to.data, to.bytes().size());
    }
  }
  weights::save_weights(file, *description_, *compiled_.program, copy.array(),
                        system::Durability::process);
  return true;
}

}  // namespace cputrain::training
