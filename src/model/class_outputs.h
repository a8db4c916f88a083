#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// Which parameters make the network's outputs, so that classes can be put into another order.
struct ClassOutputs {
  int count = 0;  ///< outputs of the network: 1 for two classes
  /// Those whose last extent counts the outputs: kernel and bias of the last layer that has one,
  /// and of batch normalization behind it. Empty where what lies between mixes channels or is read
  /// by others, too.
  std::vector<std::string> arrays;
  /// For a network with one output: those whose negation makes the probability of class 1 that of
  /// class 0. Empty where no negation does.
  std::vector<std::string> negated;
};

ClassOutputs class_outputs(const Graph&);

}  // namespace cputrain::model
