#include "backends/cpu/convolution/convolution_place.h"

namespace cputrain::cpu {
namespace {

std::optional<MaxPoolShape> pool_shape(const ConvolutionBlock& block, const SampleLayout& src,
                                       const SampleLayout& dst) {
  if (!block.pool) return std::nullopt;
  const auto& layer = std::get<model::MaxPool>(block.pool->layer);
  return MaxPoolShape{src,
                      dst,
                      layer.size,
                      layer.stride,
                      model::pad_amount(layer.padding, src.shape.height, layer.size, layer.stride),
                      model::pad_amount(layer.padding, src.shape.width, layer.size, layer.stride),
                      block.pooled_relu};
}

}  // namespace

ConvolutionPlace place_convolution(const Planning& planning, int step,
                                   const ConvolutionBlock& block, const Source& src, const Map& dst,
                                   std::size_t first_parameter) {
  const SampleLayout wide{block.convolution->dst, dst.layout.block};
  ConvolutionPlace place{.step = step,
                         .block = block,
                         .source = src,
                         .src = src.map,
                         .dst = dst,
                         .wide = wide,
                         .pool = pool_shape(block, wide, dst.layout),
                         .winners = {},
                         .first_parameter = first_parameter,
                         .bias = std::get<model::Convolution>(block.convolution->layer).bias,
                         .learns = planning.training() && !block.convolution->frozen};
  if (place.pool && dst.wants_diff) {
    const std::size_t bytes = dst.layout.size() * static_cast<std::size_t>(planning.largest());
    place.winners = planning.memory.add(bytes, planning.forward_time(step));
    planning.memory.use(place.winners, planning.backward_time(step));
  }
  return place;
}

}  // namespace cputrain::cpu
