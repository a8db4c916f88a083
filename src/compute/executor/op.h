#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compute/backend.h"
#include "compute/executor/memory_plan.h"
#include "compute/parameters/parameters.h"
#include "compute/tuner.h"

/// A program is a list of operators, each one node of the graph or a few that run as one. An
/// operator is made in two phases: its constructor adds to the memory plan what it needs and when;
/// bind() then learns the addresses, which never change afterwards. executor.h runs the list.
namespace cputrain::compute {

/// The output of an operator, and its gradient.
struct Activation {
  SampleLayout layout;
  MemoryPlan::Block value{}, diff{};
  bool wants_diff = false;              ///< something that learns lies before it
  std::size_t element = sizeof(float);  ///< bytes of a number of either

  /// Elements of so many images.
  std::size_t count(int images) const { return layout.size() * static_cast<std::size_t>(images); }
  std::size_t bytes(int images) const { return count(images) * element; }
};

/// An activation that an operator reads. Where later ones of the schedule read it too, they have
/// written its gradient when this operator's backward runs, so it adds to that.
struct Source : Activation {
  bool adds = false;
  bool shares_diff = false;  ///< it is a part of a sum: its gradient lies where the sum's does
};

/// What an operator's constructor reads and fills. Backends add to it what theirs must know.
struct Planning {
  MemoryPlan& memory;
  const CompileOptions& options;
  std::span<const int> sizes;  ///< numbers of images that a call may have, descending, different
  /// At least as many as there will be (a backend may copy what a node reads): forward of operator
  /// i is at time i, backward the other way behind them.
  int most_ops;

  int largest() const { return sizes.front(); }
  /// Images of a training pass, the same on all ranks.
  int usual() const { return options.usual_images.value_or(largest()); }
  bool training() const { return options.phase == Phase::train; }
  int forward_time(int op) const { return op; }
  int backward_time(int op) const { return 2 * most_ops - 1 - op; }

  Activation add_activation(const SampleLayout& layout, bool wants_diff,
                            std::size_t element = sizeof(float)) const {
    Activation made{.layout = layout, .wants_diff = training() && wants_diff, .element = element};
    made.value = memory.add(made.bytes(largest()));
    made.diff = memory.add(made.bytes(largest()));
    return made;
  }
  /// Notes when an operator reads its source and writes its destination, and their gradients.
  void use_forward(int op, const Activation& src, const Activation& dst) const {
    memory.use(src.value, forward_time(op));
    memory.use(dst.value, forward_time(op));
  }
  void use_backward(int op, const Activation& src, const Activation& dst) const {
    if (dst.wants_diff) memory.use(dst.diff, backward_time(op));
    if (src.wants_diff) memory.use(src.diff, backward_time(op));
  }
};

/// Where everything lies once memory has been planned.
struct Bindings {
  const MemoryPlan& memory;
  std::byte* arena;
  const ParameterLayout& layout;
  Arenas parameters;

  template <class T = float>
  T* at(MemoryPlan::Block block) const {
    return reinterpret_cast<T*>(arena + memory.offset(block));
  }
  /// `void` where the numbers are the backend's own.
  template <class T = float>
  T* value(const Activation& activation) const {
    check_element<T>(activation);
    return at<T>(activation.value);
  }
  /// Null where the activation has none.
  template <class T = float>
  T* diff(const Activation& activation) const {
    check_element<T>(activation);
    return activation.wants_diff ? at<T>(activation.diff) : nullptr;
  }
  float* weights(std::size_t parameter) const { return element(parameters.weights, parameter); }
  /// Null where there are no gradients, or none of this parameter.
  float* gradients(std::size_t parameter) const {
    const bool learns = parameters.gradients.data && layout.parameters[parameter].learnt;
    return learns ? element(parameters.gradients, parameter) : nullptr;
  }

 private:
  template <class T>
  static void check_element([[maybe_unused]] const Activation& activation) {
    if constexpr (!std::is_void_v<T>) assert(activation.element == sizeof(T));
  }
  float* element(const Array& of_all, std::size_t parameter) const {
    return of_all.as<float>().data() + layout.parameters[parameter].range.begin;
  }
};

/// One call of the program.
struct Execution {
  std::size_t size = 0;                    ///< index in Planning::sizes
  int images = 0;                          ///< that many
  bool forward = false, backward = false;  ///< in which directions it runs the operators
  Pass pass{};
  double loss_scale = 1;                          ///< backward
  Accumulate accumulate = Accumulate::overwrite;  ///< backward: of parameters' gradients
  const PassSums* sums = nullptr;                 ///< during backward: Backward::sums
  const StepUpdate* update = nullptr;             ///< behind that: Backward::update
  bool most_images = false;                       ///< as many as any training pass has had so far

  // Forward alone, unless they lie on a device. One for each image:
  std::span<const std::uint8_t* const> pixels{};  ///< in the host's memory
  const std::int32_t* labels = nullptr;           ///< where operators compute
  const std::uint32_t* samples = nullptr;         ///< as well
  const MixedLabel* mixed = nullptr;              ///< as well; null where labels are alone

  bool adds() const { return accumulate == Accumulate::add; }
};

class Op {
 public:
  explicit Op(std::string name, std::string algorithm = {}, double macs = 0) {
    time_.name = std::move(name);
    time_.algorithm = std::move(algorithm);
    time_.macs = macs;
  }
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  /// One for each of the nodes' parameters, in model order.
  virtual std::vector<std::unique_ptr<ParameterFormat>> formats() const { return {}; }
  virtual void bind(const Bindings&) = 0;
  /// Computes, or puts into a device's stream what does. There is at least one image.
  virtual void forward(const Execution&) = 0;
  virtual void backward(const Execution&) {}
  /// Takes part in what all ranks do together although this one has no images.
  virtual void forward_of_nothing(const Execution&) {}
  virtual void backward_of_nothing(Accumulate) {}
  /// Writes statistics that training passes moved on the side to the weights arena.
  virtual void publish_statistics() {}
  /// Null where one method computes it.
  virtual MethodChoice* choice() { return nullptr; }
  /// Seconds that this rank has waited for others of its node, and memory that it shares with them.
  virtual double waited() const { return 0; }
  virtual std::size_t shared_bytes() const { return 0; }
  /// As Program::time_layers().
  virtual void time([[maybe_unused]] bool on) {}
  /// Adds up the times of passes that the device is done with, where it keeps them itself.
  virtual void collect_times() {}
  virtual void append_times(std::vector<LayerTime>& times) const { times.push_back(time_); }

 protected:
  LayerTime time_;
};

/// A graph as operators, in the order of its nodes.
using OpList = std::vector<std::unique_ptr<Op>>;

/// The last operator, which knows what the network predicted.
class LossOp : public Op {
 public:
  using Op::Op;
  /// As Program::tally().
  virtual Pending<Tally> take_tally() = 0;
  /// As in Program; `last` is the last forward pass, which was waited for.
  virtual std::span<const float> probabilities(const Execution& last) const = 0;
};

}  // namespace cputrain::compute
