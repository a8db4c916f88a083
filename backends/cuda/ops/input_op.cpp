#include "backends/cuda/ops/input_op.h"

#include <cstring>

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

InputOp::InputOp(const Planning& planning, const model::Graph::Node& node, const Activation& dst)
    : DeviceOp(planning, node.name, "bytes to numbers"),
      input_(std::get<model::Input>(node.layer)),
      dst_(dst) {
  const std::size_t bytes = dst.layout.shape.size() * static_cast<std::size_t>(planning.largest());
  staged_bytes_ = bytes;
  bytes_ = planning.memory.add(bytes, planning.forward_time(0));
  planning.memory.use(dst.value, planning.forward_time(0));
}

void InputOp::bind(const Bindings& bindings) {
  staged_ = PinnedBlock(staged_bytes_);
  bytes_data_ = bindings.at<std::uint8_t>(bytes_);
  dst_data_ = bindings.value(dst_);
}

void InputOp::forward(const Execution& execution) {
  const std::size_t each = dst_.layout.shape.size();
  std::byte* staged = staged_.data();
  copied_.synchronize();  // of the pass before
  for (const std::uint8_t* image : execution.pixels) {
    std::memcpy(staged, image, each);
    staged += each;
  }
  timed(forward_time_, [&] {
    copy_async(bytes_data_, staged_.data(), each * execution.pixels.size(), stream());
    copied_.record(stream());
    load_images(stream(), execution.images, dst_.layout.shape.height, dst_.layout.shape.width,
                input_.scale, input_.offset, bytes_data_, dst_data_);
  });
}

}  // namespace cputrain::cuda
