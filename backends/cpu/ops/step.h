#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/dnnl_primitives.h"
#include "backends/cpu/parameter_formats.h"
#include "compute/backend.h"
#include "compute/graph_walk.h"
#include "compute/memory_plan.h"
#include "model/graph.h"
#include "system/clock.h"

/// A program of this backend is a list of steps, each one node of the graph or a few that run as
/// one. A step is made in two phases: its constructor creates primitives and tells the memory plan
/// what it needs and when; bind() then learns the addresses, which never change afterwards.
namespace cputrain::comm {
class Communicator;
}

namespace cputrain::cpu {

/// One activation between steps, and its gradient.
struct Map {
  SampleLayout layout;
  compute::MemoryPlan::Block value{}, diff{};
  bool wants_diff = false;  ///< something that learns lies before it
};

using Source = compute::Source<Map>;

/// What a step's constructor reads and fills.
struct Planning {
  const DnnlContext& dnnl;
  compute::MemoryPlan& memory;
  std::span<const int> sizes;  ///< numbers of images, descending, all different
  int usual;                   ///< images of a training pass, the same on all ranks
  compute::Phase phase;
  int threads;
  compute::KernelChoice kernels;
  comm::Communicator* synchronise;  ///< of batch normalization's statistics, or null
  bool leaves_factors;              ///< as in CompileOptions
  comm::Communicator* node;         ///< whose node's ranks compute sharded layers together, or null
  /// At least as many as the schedule will have (a node may need a copy of what it reads): forward
  /// of step i is at time i, backward the other way behind them.
  int most_steps;

  int largest() const { return sizes.front(); }
  bool training() const { return phase == compute::Phase::train; }
  int forward_time(int step) const { return step; }
  int backward_time(int step) const { return 2 * most_steps - 1 - step; }
  Map add_map(const SampleLayout& layout, bool wants_diff) const {
    const std::size_t bytes = layout.size() * static_cast<std::size_t>(largest()) * sizeof(float);
    return {layout, memory.add(bytes), memory.add(bytes), training() && wants_diff};
  }
  /// Notes when a step reads its source and writes its destination, and their gradients.
  void use_forward(int step, const Source& src, const Map& dst) const {
    memory.use(src.map.value, forward_time(step));
    memory.use(dst.value, forward_time(step));
  }
  void use_backward(int step, const Source& src, const Map& dst) const {
    if (dst.wants_diff) memory.use(dst.diff, backward_time(step));
    if (src.map.wants_diff) memory.use(src.map.diff, backward_time(step));
  }
};

/// Where everything lies once memory has been planned.
struct Bindings {
  const DnnlContext& dnnl;
  const compute::MemoryPlan& memory;
  std::byte* arena;
  const compute::ParameterLayout& layout;
  compute::Arenas parameters;

  template <class T = float>
  T* at(compute::MemoryPlan::Block block) const {
    return reinterpret_cast<T*>(arena + memory.offset(block));
  }
  float* weights(std::size_t parameter) const {
    return parameters.weights.as<float>().data() + layout.parameters[parameter].range.begin;
  }
  float* gradients(std::size_t parameter) const {
    return parameters.gradients.as<float>().data() + layout.parameters[parameter].range.begin;
  }
};

/// One call of the program.
struct Execution {
  std::size_t size;  ///< index in Planning::sizes
  int images;        ///< that many; never 0
  const compute::MicroBatch* batch = nullptr;
  compute::Pass pass;
  compute::Tally* tally = nullptr;  ///< forward: the loss adds to it
  double loss_scale = 1;            ///< backward
  compute::Accumulate accumulate = compute::Accumulate::overwrite;
  bool most_images = false;  ///< as many as any training pass has had so far
};

class Step {
 public:
  virtual ~Step() = default;
  /// One for each of the nodes' parameters, in model order.
  virtual std::vector<std::unique_ptr<ParameterFormat>> formats() const = 0;
  virtual void bind(const Bindings&) = 0;
  virtual void forward(const Execution&) = 0;
  virtual void backward(const Execution&) = 0;
  /// Takes part in what all ranks do together although this one has no images.
  virtual void forward_of_nothing(const Execution&) {}
  virtual void backward_of_nothing(compute::Accumulate) {}
  /// Writes statistics that training passes moved on the side to the weights arena.
  virtual void publish_statistics() {}
  /// A word for the methods in use, and the same for others, where the step has several; see
  /// Program. Of what another rank found, which methods_of() reads, it uses what it has itself.
  virtual std::string methods() const { return {}; }
  virtual void use_methods(std::string_view) {}
  virtual bool trying() const { return false; }
  virtual void try_again() {}
  /// Seconds that this rank has waited for others of its node, and memory that it shares with them.
  virtual double waited() const { return 0; }
  virtual std::size_t shared_bytes() const { return 0; }
  virtual void append_times(std::vector<compute::LayerTime>&) const = 0;
};

/// Adds the time it lived to a total.
class TimeSpan {
 public:
  explicit TimeSpan(double& total) : total_(total) {}
  ~TimeSpan() { total_ += watch_.seconds(); }
  TimeSpan(const TimeSpan&) = delete;
  TimeSpan& operator=(const TimeSpan&) = delete;

 private:
  double& total_;
  system::Stopwatch watch_;
};

}  // namespace cputrain::cpu
