#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "compute/parameters/parameters.h"
#include "exchange/shared_layer.h"

namespace cputrain::sim {

/// The rounds of a sharded dense layer: waits are real ones, copies move their bytes, products are
/// charged by the caller.
class SimulatedDense final {
 public:
  /// Charges the product of `part` of the weights with so many images.
  using Multiply = std::function<void(double part, std::size_t images)>;

  /// Collective over the node. `images`: the most that this rank has at once.
  SimulatedDense(comm::Communicator& node, std::string name, const compute::Parameter& kernel,
                 std::size_t images);

  const std::string& name() const { return name_; }
  void forward(std::size_t images, const Multiply&);
  void backward(const Multiply&);
  double waited() const { return layer_.waited(); }

 private:
  std::string name_;
  std::size_t in_, out_;
  exchange::SharedLayer layer_;
  double part_;  ///< this rank's part of the weights
};

}  // namespace cputrain::sim
