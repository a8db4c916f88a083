#pragma once

#include <optional>

#include "backends/cpu/kernels/max_pool.h"
#include "backends/cpu/ops/op.h"

namespace cputrain::cpu {

/// Nodes that run as one: a convolution, its ReLU fused; or a convolution, the max pool behind it
/// and the ReLU on the pooled map; or a convolution and the sum of it and another map.
struct ConvolutionBlock {
  const model::Graph::Node* convolution;
  Shape src_shape;
  model::PadAmount rows, columns;            ///< its own padding, or that of a ZeroPad before it
  double macs;                               ///< per image, forward
  bool relu = false;                         ///< right behind the convolution; never with a pool
  const model::Graph::Node* pool = nullptr;  ///< a MaxPool of at most MaxPoolShape::kLargestSize
  bool pooled_relu = false;
  const model::Graph::Node* sum = nullptr;  ///< an Add; never with a pool or a ReLU
  const model::Input* image = nullptr;  ///< it alone reads the images, and turns them into numbers
};

/// A block in a program: what it reads and writes, and when.
struct ConvolutionPlace {
  int op;
  ConvolutionBlock block;
  Source src;
  std::vector<Source> added;  ///< the other part of the sum, or none
  Activation dst;
  compute::SampleLayout wide;  ///< the convolution's output, before the pool
  std::optional<MaxPoolShape> pool;
  compute::MemoryPlan::Block winners;  ///< where the pool's maxima were, for backward
  std::size_t first_parameter;
  bool bias;
  bool learns;  ///< computes gradients of its weights

  const model::Convolution& layer() const {
    return std::get<model::Convolution>(block.convolution->layer);
  }
};

/// Plans memory for the winners, too.
ConvolutionPlace place_convolution(const Planning&, int op, const ConvolutionBlock&,
                                   const Source& src, const std::vector<Source>& added,
                                   const Activation& dst, std::size_t first_parameter);

/// Where the time of a block goes.
struct ConvolutionTimes {
  compute::LayerTime convolution, pool, sum;
  double before_backward = 0;  ///< once for both ways back: ReLU's gradient, a copy of it
};

}  // namespace cputrain::cpu
