#include "backends/cpu/convolution/convolution_operations.h"

#include <cassert>

#include "backends/cpu/convolution/winograd_operation.h"

namespace cputrain::cpu {

std::optional<std::size_t> KernelCopies::copy_for(const Planning& planning,
                                                  const dnnl::memory::desc& layout) {
  if (layout == arena_layout_) return std::nullopt;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].layout == layout) return i;
  }
  copies_.push_back({layout,
                     planning.memory.add(layout.get_size(), time_),
                     reorder(planning.dnnl, arena_layout_, layout),
                     nullptr,
                     {}});
  return copies_.size() - 1;
}

void KernelCopies::bind(const DnnlBindings& bindings, float* arena_kernel) {
  arena_kernel_ = arena_kernel;
  for (Copy& copy : copies_) {
    copy.data = bindings.at(copy.block);
    copy.call =
        Call(bindings.dnnl, copy.reorder, nullptr,
             {{DNNL_ARG_FROM, arena_layout_, arena_kernel}, {DNNL_ARG_TO, copy.layout, copy.data}});
  }
}

float* KernelCopies::kernel(std::optional<std::size_t> index) const {
  return index ? copies_[*index].data : arena_kernel_;
}

NumberType numbers_of(const Activation& activation) {
  return is_narrow(activation) ? NumberType::bf16 : NumberType::f32;
}

ConvolutionProblem problem_of(const ConvolutionPlace& place, int images) {
  const ConvolutionBlock& block = place.block;
  const model::Convolution& layer = place.layer();
  return {images,      place.src.layout, place.wide, layer.kernel,          layer.stride,
          block.rows,  block.columns,    layer.bias, numbers_of(place.src), numbers_of(place.dst),
          layer.groups};
}

const Operation& ConvolutionOperations::in(Direction direction) const {
  return direction == Direction::forward         ? forward
         : direction == Direction::backward_data ? backward_data
                                                 : backward_weights;
}

bool winograd_pays(const ConvolutionPlace& place, int images) {
  const ConvolutionProblem problem = problem_of(place, images);
  return winograd_pays(problem, Direction::forward) ||
         winograd_pays(problem, Direction::backward_data) ||
         winograd_pays(problem, Direction::backward_weights);
}

ConvolutionOperations make_operations(const Planning& planning, const ConvolutionPlace& place,
                                      int images, ConvolutionMethod method) {
  const ConvolutionProblem problem = problem_of(place, images);
  const auto post_op = place.block.relu ? PostOp::relu : PostOp::none;
  const auto algorithm =
      method == ConvolutionMethod::bf16 ? ConvolutionAlgorithm::bf16 : ConvolutionAlgorithm::direct;
  const auto make = [&](Direction direction) {
    if (method == ConvolutionMethod::winograd && winograd_pays(problem, direction)) {
      return winograd_operation(problem, direction, post_op, planning.threads);
    }
    switch (direction) {
      case Direction::backward_data:
        return convolution_backward_data(planning.dnnl, problem, algorithm);
      case Direction::backward_weights:
        return convolution_backward_weights(planning.dnnl, problem, algorithm);
      default:
        return convolution_forward(planning.dnnl, problem, algorithm, post_op);
    }
  };
  ConvolutionOperations made{.problem = problem,
                             .forward = make(Direction::forward),
                             .backward_data = {},
                             .backward_weights = {}};
  if (place.learns) made.backward_weights = make(Direction::backward_weights);
  if (place.src.wants_diff) made.backward_data = make(Direction::backward_data);
  return made;
}

bool has_bf16(const Planning& planning, const ConvolutionPlace& place, int images) {
  const auto made = make_operations(planning, place, images, ConvolutionMethod::bf16);
  return made.forward.bf16 || made.backward_data.bf16 || made.backward_weights.bf16;
}

/// One block of channels without padding lies channels-last, too.
bool MapCopy::needed(int images, const dnnl::memory::desc& wanted) const {
  if (wanted == activation_desc(layout_, images, numbers_)) return false;
  const bool one_block = layout_.blocks() == 1 && !layout_.padded();
  return !one_block || wanted != channels_last_desc(layout_, images, numbers_);
}

void MapCopy::plan(const Planning& planning, int images, const dnnl::memory::desc& wanted,
                   int time) {
  if (!needed(images, wanted)) return;
  const compute::MemoryPlan::Block block = planning.memory.add(wanted.get_size(), time);
  if (block_) planning.memory.merge(*block_, block);
  block_ = block;
}

std::byte* MapCopy::data(const DnnlBindings& bindings) const {
  assert(block_);
  return bindings.at<std::byte>(*block_);
}

Call::Argument MapCopy::argument(const DnnlBindings& bindings, int name, int images,
                                 const dnnl::memory::desc& wanted, void* ours) const {
  if (!needed(images, wanted)) return {name, wanted, ours};
  return {name, wanted, data(bindings)};
}

Call MapCopy::fill(const DnnlBindings& bindings, int images, const dnnl::memory::desc& wanted,
                   void* ours) const {
  if (!needed(images, wanted)) return {};
  const dnnl::memory::desc desc = activation_desc(layout_, images, numbers_);
  return Call(bindings.dnnl, reorder(bindings.dnnl, desc, wanted), nullptr,
              {{DNNL_ARG_FROM, desc, ours}, {DNNL_ARG_TO, wanted, data(bindings)}});
}

Call MapCopy::drain(const DnnlBindings& bindings, int images, const dnnl::memory::desc& wanted,
                    void* ours) const {
  if (!needed(images, wanted)) return {};
  const dnnl::memory::desc desc = activation_desc(layout_, images, numbers_);
  return Call(bindings.dnnl, reorder(bindings.dnnl, wanted, desc), nullptr,
              {{DNNL_ARG_FROM, wanted, data(bindings)}, {DNNL_ARG_TO, desc, ours}});
}

}  // namespace cputrain::cpu
