#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "compute/executor/frozen_prefix.h"
#include "compute/executor/op.h"
#include "system/pages.h"

namespace cputrain::compute {

/// What a backend puts below the executor: its operators, and the machine that they run on. What
/// is here by default is right where operators compute in their calls, on the host.
class Target {
 public:
  virtual ~Target() = default;

  /// The last is a LossOp where the graph ends in a loss. `graph` has pools before their ReLUs; the
  /// operators may refer to its nodes. Error(usage) where the backend lacks a layer, naming it.
  virtual OpList make_ops(const model::Graph& graph, const Planning&) = 0;
  /// Where the operators that were made stop being the same for an image in every pass; nothing
  /// where none are, or where what they make could not be kept. Of the last such place.
  virtual std::optional<FrozenEnd> frozen_end() const { return {}; }
  /// Where arenas of parameters lie.
  virtual Memory& memory() { return host_memory(); }
  /// The arenas that the program computes with, which may be freed before it or after it.
  virtual void use(const Arenas&) {}
  /// Memory for activations and all that operators planned. Its contents are undefined.
  virtual std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) = 0;
  /// Bytes of that which it takes beside what operators planned.
  virtual std::size_t own_bytes(const ParameterLayout&) const { return 0; }
  /// Calls work() as operators are to be called: with their threads, on their device.
  virtual void enter(const std::function<void()>& work) = 0;
  /// As Program::time_layers().
  virtual void time_layers([[maybe_unused]] bool on) {}
  /// Whether forward of a training pass is enqueued with its backward, as one piece of work.
  virtual bool joins_directions() const { return false; }
  /// Runs the operators of a pass: ops() calls them; then the update. What they enqueue may depend
  /// on the execution's directions, size, phase, `probabilities`, `accumulate` and `sums` alone, so
  /// that a device can repeat it without calling them; all else they read on the device.
  virtual void run(const Execution& execution, const std::function<void()>& ops) {
    ops();
    if (execution.update) execution.update->apply();
  }
  /// The forward pass of these images begins: gives operators what they read of them. It may have
  /// none, on a rank without any.
  virtual void stage(const MicroBatch& batch, Execution& execution) {
    execution.labels = batch.labels.data();
    execution.samples = batch.samples.data();
    execution.mixed = batch.mixed.empty() ? nullptr : batch.mixed.data();
  }
  /// The gradients that this rank makes.
  virtual std::vector<Range> own_gradients(const ParameterLayout& layout) const {
    return used_gradients(layout, 0, 1);
  }
  /// Zeros in a part of an arena, before what operators do next.
  virtual void clear(const Array& values) = 0;
  /// Puts event `i`, of as many as there are operators, behind what operators have enqueued so far.
  /// False where they are done when they return: then there are no events.
  virtual bool mark([[maybe_unused]] std::size_t i) { return false; }
  virtual Event* event([[maybe_unused]] std::size_t i) { return nullptr; }
  /// A call of the program returns: uses of the arenas from now on come behind what it enqueued.
  virtual void end_call() {}
  /// Until all that operators have enqueued is done.
  virtual void wait() {}
};

}  // namespace cputrain::compute
