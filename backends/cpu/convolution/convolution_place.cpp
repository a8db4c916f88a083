#include "backends/cpu/convolution/convolution_place.h"

#include "core/casts.h"

namespace cputrain::cpu {

ConvolutionPlace place_convolution(const Planning& planning, int op, const ConvolutionBlock& block,
                                   const Source& src, const std::vector<Source>& added,
                                   const Activation& dst, std::size_t first_parameter) {
  const compute::SampleLayout wide{block.convolution->dst, dst.layout.block};
  ConvolutionPlace place{.op = op,
                         .block = block,
                         .src = src,
                         .added = added,
                         .dst = dst,
                         .wide = wide,
                         .pool = {},
                         .winners = {},
                         .first_parameter = first_parameter,
                         .bias = std::get<model::Convolution>(block.convolution->layer).bias,
                         .learns = planning.training() && !block.convolution->frozen};
  if (block.pool) {
    place.pool = MaxPoolShape::of(std::get<model::MaxPool>(block.pool->layer), wide, dst.layout,
                                  block.pooled_relu);
  }
  if (place.pool && dst.wants_diff) {
    const std::size_t bytes = dst.layout.size() * to_size(planning.largest());
    place.winners = planning.memory.add(bytes, planning.forward_time(op));
    planning.memory.use(place.winners, planning.backward_time(op));
  }
  return place;
}

}  // namespace cputrain::cpu
