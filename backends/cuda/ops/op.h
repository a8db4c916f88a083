#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/shapes.h"
#include "backends/cuda/memory.h"
#include "backends/cuda/parameter_format.h"
#include "backends/cuda/plugin/plugin_api.h"
#include "compute/executor/op.h"
#include "compute/executor/target.h"
#include "model/graph.h"

/// Operators of this backend only put kernels into a stream.
namespace cputrain::cuda {

using compute::Activation;
using compute::Bindings;
using compute::Execution;
using compute::Source;

/// The device that a program runs on; borrowed from the backend.
struct ProgramDevice : DeviceChoice {
  int multiprocessors;
  ComputeStream& stream;
  DeviceMemory& device_memory;  ///< it knows how copies of weights are stored
};

/// Operators that put kernels into the device's one stream. Errors as make_ops().
std::unique_ptr<compute::Target> make_target(const ProgramDevice&);

/// What operators of this backend know besides when they are made.
struct Planning : compute::Planning, ProgramDevice {
  const PassFacts* facts;  ///< on the device: those of the pass that runs
};

/// Channels last, filled up to whole blocks of kChannelBlock.
inline compute::SampleLayout channels_last(const Shape& shape) {
  return {shape, padded_channels(shape.channels)};
}

/// As kernels take it.
inline MapShape stored_shape(const Activation& activation) {
  const compute::SampleLayout& layout = activation.layout;
  return {layout.shape.height, layout.shape.width, layout.block};
}

inline constexpr int kColours = 3;  ///< of an image's pixel

/// What an input reads, but for how many images.
inline ImageLoad images_of(const Planning& planning, const model::Graph::Node& input) {
  const auto& pixels = std::get<model::Input>(input.layer);
  return {.height = input.dst.height,
          .width = input.dst.width,
          .scale = pixels.scale,
          .offset = pixels.offset,
          .facts = planning.facts};
}

/// The windows of a layer that slides one over an activation, but for the images. `zeros`: a layer
/// before it that pads the activation and was left to this one; then it has no padding of its own.
inline WindowShape sliding_window(model::Padding padding, int size, int stride,
                                  const model::ZeroPad* zeros, const Activation& src,
                                  const Activation& dst) {
  const Shape& read = src.layout.shape;
  return {.src = stored_shape(src),
          .dst = stored_shape(dst),
          .size = size,
          .stride = stride,
          .top = zeros ? zeros->top : model::pad_amount(padding, read.height, size, stride).before,
          .left = zeros ? zeros->left : model::pad_amount(padding, read.width, size, stride).before,
          .sees_zeros = zeros != nullptr};
}

inline WindowShape of_images(WindowShape windows, int images) {
  windows.images = images;
  return windows;
}

using Formats = std::vector<std::unique_ptr<compute::ParameterFormat>>;
inline void add_vector(Formats& formats, int size) {
  formats.push_back(std::make_unique<PaddedFormat>(PaddedFormat::of_vector(size)));
}

/// A layer's kernel, the bias behind it, and their gradients.
struct KernelAndBias {
  KernelAndBias(const Planning& planning, const model::Graph::Node& node, std::size_t parameter)
      : copies_(planning.device_memory.weight_copies()),
        parameter_(parameter),
        has_bias_(node.parameters.size() > 1) {}

  Formats formats(const PaddedFormat& of_kernel, int outputs) const {
    Formats formats;
    formats.push_back(std::make_unique<PaddedFormat>(of_kernel));
    if (has_bias_) add_vector(formats, outputs);
    return formats;
  }
  void bind(const Bindings& bindings, bool has_diff) {
    const float* const floats = bindings.weights(parameter_);
    weights = copies_.find(floats)->of(floats);
    if (has_bias_) bias = bindings.weights(parameter_ + 1);
    if (has_diff) diff_weights = bindings.gradients(parameter_);
    if (has_bias_ && diff_weights) diff_bias = bindings.gradients(parameter_ + 1);
  }

  const void* weights = nullptr;  ///< in the maps' numbers
  float *bias = nullptr, *diff_weights = nullptr, *diff_bias = nullptr;

 private:
  WeightCopies& copies_;
  std::size_t parameter_;  ///< index of the kernel, which the bias follows
  bool has_bias_;
};

/// Device seconds of what was put into a stream between two places.
/// Nothing unless take(true) was called: events take time on the device and on the host.
class DeviceTime {
 public:
  void take(bool on) {
    pending_ = false;
    events_ = on ? std::make_unique<Events>() : nullptr;
  }
  void begin(Stream stream) {
    if (events_) events_->begin.record(stream);
  }
  void end(Stream stream) {
    if (!events_) return;
    events_->end.record(stream);
    pending_ = true;
  }
  /// Adds what passed since the last time it was asked, and waits for that.
  void collect(double& seconds) {
    if (!std::exchange(pending_, false)) return;
    events_->end.synchronize();
    seconds += events_->end.seconds_since(events_->begin);
  }

 private:
  struct Events {
    Event begin{Event::timed}, end{Event::timed};
  };
  std::unique_ptr<Events> events_;
  bool pending_ = false;
};

/// An operator, or the loss, with the stream that it computes in.
template <class Base>
class OnDevice : public Base {
 public:
  OnDevice(const Planning& planning, std::string name, std::string algorithm, double macs = 0)
      : Base(std::move(name), std::move(algorithm), macs),
        stream_(planning.stream.get()),
        numbers_(planning.numbers) {}

  void time(bool on) override {
    for (DeviceTime* time : {&forward_time_, &data_time_, &weights_time_}) time->take(on);
  }

  void collect_times() override {
    forward_time_.collect(this->time_.forward);
    data_time_.collect(this->time_.backward_data);
    weights_time_.collect(this->time_.backward_weights);
  }

 protected:
  Stream stream() const { return stream_; }
  Numbers numbers() const { return numbers_; }
  /// Does the work, and times what it puts into the stream where times are taken.
  template <class Work>
  void timed(DeviceTime& time, const Work& work) {
    time.begin(stream_);
    work();
    time.end(stream_);
  }

  DeviceTime forward_time_, data_time_, weights_time_;

 private:
  Stream stream_;
  Numbers numbers_;
};

using DeviceOp = OnDevice<compute::Op>;

/// Those of a graph. Error(usage) where the backend lacks a layer, or one reads a flattened map
/// that cannot, naming it.
compute::OpList make_ops(const model::Graph&, const Planning&);

}  // namespace cputrain::cuda
