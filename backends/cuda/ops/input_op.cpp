#include "backends/cuda/ops/input_op.h"

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

InputOp::InputOp(const Planning& planning, const model::Graph::Node& node, const Activation& dst)
    : DeviceOp(planning, node.name, "bytes to numbers"),
      input_(std::get<model::Input>(node.layer)),
      dst_(dst),
      facts_(planning.facts) {
  planning.memory.use(dst.value, planning.forward_time(0));
}

void InputOp::bind(const Bindings& bindings) { dst_data_ = bindings.value<void>(dst_); }

void InputOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    load_images(stream(), numbers(),
                {.images = execution.images,
                 .height = dst_.layout.shape.height,
                 .width = dst_.layout.shape.width,
                 .scale = input_.scale,
                 .offset = input_.offset,
                 .facts = facts_},
                dst_data_);
  });
}

}  // namespace cputrain::cuda
