#include "backends/cpu/input_step.h"

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

namespace cputrain {

InputStep::InputStep(const Planning& planning, const Graph::Node& node, const Map& dst)
    : input_(std::get<Input>(node.layer)), dst_(dst) {
  planning.memory.use(dst.value, planning.forward_time(0));
  time_.name = node.name;
  time_.algorithm = "planes of floats";
}

void InputStep::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const auto height = static_cast<std::size_t>(dst_.layout.shape.height);
  const auto width = static_cast<std::size_t>(dst_.layout.shape.width);
  parallel_for(static_cast<std::size_t>(execution.images) * height, [&](std::size_t row) {
    const std::size_t image = row / height, y = row % height;
    kernels::split_pixels(execution.batch->images[image] + y * width * 3, width, height * width,
                          input_.scale, input_.offset,
                          dst_data_ + image * dst_.layout.size() + y * width);
  });
}

}  // namespace cputrain
