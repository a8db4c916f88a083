#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/shapes.h"
#include "backends/cuda/parameter_format.h"
#include "compute/graph_walk.h"
#include "compute/memory_plan.h"
#include "compute/program.h"

/// A program of this backend is a list of ops, each one node of the graph. An op is made in two
/// phases: its constructor tells the memory plan what it needs and when; bind() then learns the
/// addresses, which never change afterwards. Passes only put kernels into a stream.
namespace cputrain::cuda {

/// One activation between ops, and its gradient.
struct Map {
  Shape shape;      ///< canonical
  MapShape stored;  ///< with padded channels
  compute::MemoryPlan::Block value{}, diff{};
  bool wants_diff = false;  ///< something that learns lies before it

  std::size_t count(int images) const { return stored.size() * static_cast<std::size_t>(images); }
};

using Source = compute::Source<Map>;

inline MapShape stored_shape(const Shape& shape) {
  return {shape.height, shape.width, padded_channels(shape.channels)};
}

/// The windows of a layer that slides one over a map, but for the images.
inline WindowShape sliding_window(model::Padding padding, int size, int stride, const Map& src,
                                  const Map& dst) {
  return {.src = src.stored,
          .dst = dst.stored,
          .size = size,
          .stride = stride,
          .top = model::pad_amount(padding, src.shape.height, size, stride).before,
          .left = model::pad_amount(padding, src.shape.width, size, stride).before};
}

/// What an op's constructor reads and fills.
struct Planning {
  compute::MemoryPlan& memory;
  std::span<const int> sizes;  ///< numbers of images that a call may have
  bool training;
  int multiprocessors;
  /// At least as many as there will be ops: forward of op i is at time i, backward the other way
  /// behind them.
  int most_ops;

  int largest() const { return std::ranges::max(sizes); }
  int forward_time(int op) const { return op; }
  int backward_time(int op) const { return 2 * most_ops - 1 - op; }
  Map add_map(const Shape& shape, bool wants_diff) const {
    const std::size_t bytes =
        stored_shape(shape).size() * static_cast<std::size_t>(largest()) * sizeof(float);
    return {shape, stored_shape(shape), memory.add(bytes), memory.add(bytes),
            training && wants_diff};
  }
  /// Notes when an op reads its source and writes its destination, and their gradients.
  void use_maps(int op, const Map& src, const Map& dst) const {
    memory.use(src.value, forward_time(op));
    memory.use(dst.value, forward_time(op));
    if (dst.wants_diff) memory.use(dst.diff, backward_time(op));
    if (src.wants_diff) memory.use(src.diff, backward_time(op));
  }
};

/// Where everything lies once memory has been planned.
struct Bindings {
  const compute::MemoryPlan& memory;
  std::byte* arena;
  const compute::ParameterLayout& layout;
  compute::Arenas parameters;

  template <class T = float>
  T* at(compute::MemoryPlan::Block block) const {
    return reinterpret_cast<T*>(arena + memory.offset(block));
  }
  float* value(const Map& map) const { return at(map.value); }
  /// Null where the map has none.
  float* diff(const Map& map) const { return map.wants_diff ? at(map.diff) : nullptr; }
  float* weights(std::size_t parameter) const { return element(parameters.weights, parameter); }
  /// Null where there are no gradients, or none of this parameter.
  float* gradients(std::size_t parameter) const {
    const bool learns = parameters.gradients.data && layout.parameters[parameter].learnt;
    return learns ? element(parameters.gradients, parameter) : nullptr;
  }

 private:
  float* element(const Array& arena_of_all, std::size_t parameter) const {
    return arena_of_all.as<float>().data() + layout.parameters[parameter].range.begin;
  }
};

/// One call of the program.
struct Execution {
  Stream stream;
  int images;                                  ///< never 0
  const compute::MicroBatch* batch = nullptr;  ///< forward
  compute::Pass pass;
  double loss_scale = 1;  ///< backward
  bool add = false;       ///< backward: parameters' gradients are added to what is there
  const std::int32_t* labels = nullptr;    ///< on the device, one for each image
  const std::uint32_t* samples = nullptr;  ///< as well
};

/// Device seconds of what was put into a stream between two places, asked for once it was done.
/// Nothing unless take() was called: events take time on the device and on the host.
class DeviceTime {
 public:
  void take() { events_ = std::make_unique<Events>(); }
  void begin(Stream stream) {
    if (events_) events_->begin.record(stream);
  }
  void end(Stream stream) {
    if (!events_) return;
    events_->end.record(stream);
    pending_ = true;
  }
  /// Adds what passed since the last time it was asked; the stream was waited for.
  void collect(double& seconds) {
    if (pending_) seconds += events_->end.seconds_since(events_->begin);
    pending_ = false;
  }

 private:
  struct Events {
    Event begin{Event::timed}, end{Event::timed};
  };
  std::unique_ptr<Events> events_;
  bool pending_ = false;
};

/// Does the work, and times what it puts into the stream where times are taken.
template <class Work>
void timed(DeviceTime& time, Stream stream, const Work& work) {
  time.begin(stream);
  work();
  time.end(stream);
}

class Op {
 public:
  Op(const std::string& name, const std::string& algorithm, double macs = 0) {
    time_.name = name;
    time_.algorithm = algorithm;
    time_.macs = macs;
  }
  virtual ~Op() = default;

  /// One for each of the node's parameters, in model order.
  virtual std::vector<ParameterFormat> formats() const { return {}; }
  virtual void bind(const Bindings&) = 0;
  virtual void forward(const Execution&) = 0;
  virtual void backward(const Execution&) {}

  /// Has all passes timed. Without it time() has no seconds.
  void take_times() {
    for (DeviceTime* time : {&forward_time_, &data_time_, &weights_time_}) time->take();
  }
  /// Adds up the times of passes that the device is done with.
  void collect_times() {
    forward_time_.collect(time_.forward);
    data_time_.collect(time_.backward_data);
    weights_time_.collect(time_.backward_weights);
  }
  const compute::LayerTime& time() const { return time_; }

 protected:
  DeviceTime forward_time_, data_time_, weights_time_;

 private:
  compute::LayerTime time_;
};

}  // namespace cputrain::cuda
