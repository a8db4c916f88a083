#include "backends/cpu/ops/input_op.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu {

void split_images(const model::Input& input, const compute::SampleLayout& layout,
                  std::span<const std::uint8_t* const> images, float* planes) {
  const auto height = to_size(layout.shape.height);
  const auto width = to_size(layout.shape.width);
  parallel_for(images.size() * height, [&](std::size_t row) {
    const std::size_t image = row / height, y = row % height;
    kernels::split_pixels(images[image] + y * width * 3, width, height * width, input.scale,
                          input.offset, planes + image * layout.size() + y * width);
  });
}

InputOp::InputOp(const Planning& planning, const model::Graph::Node& node, const Activation& dst)
    : Op(node.name, "planes of floats"), input_(std::get<model::Input>(node.layer)), dst_(dst) {
  planning.memory.use(dst.value, planning.forward_time(0));
}

void InputOp::forward(const Execution& execution) {
  if (left_to_reader_) return;
  const TimeSpan span(time_.forward);
  split_images(input_, dst_.layout, execution.pixels, dst_data_);
}

}  // namespace cputrain::cpu
