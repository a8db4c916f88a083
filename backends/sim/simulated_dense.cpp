#include "backends/sim/simulated_dense.h"

#include <utility>

#include "backends/sim/core.h"
#include "core/casts.h"

namespace cputrain::sim {
namespace {

constexpr double kNumber = 4;  // bytes

/// Rows of a matrix, read and written.
void copy_rows(std::size_t rows, std::size_t columns) {
  move_memory(2 * kNumber * to_double(rows) * to_double(columns));
}

}  // namespace

SimulatedDense::SimulatedDense(comm::Communicator& node, std::string name,
                               const compute::Parameter& kernel, std::size_t images)
    : name_(std::move(name)),
      in_(kernel.range.size() / kernel.row),
      out_(kernel.row),
      layer_(node.node_memory(), {in_, out_, images}, DType::f32) {
  const Range own = compute::shard_of(kernel, layer_.local_rank(), layer_.ranks());
  part_ = to_double(own.size()) / to_double(kernel.range.size());
}

void SimulatedDense::forward(std::size_t images, const Multiply& multiply) {
  layer_.begin(images);
  copy_rows(images, in_);
  layer_.wait();
  multiply(part_, layer_.images());
  layer_.wait();
  // Partial sums of all ranks are read, the total is written.
  const double arrays = layer_.ranks() + 1;
  move_memory(arrays * kNumber * to_double(images * out_));
}

void SimulatedDense::backward(const Multiply& multiply) {
  const std::size_t own = layer_.rows().size();
  copy_rows(own, out_);
  layer_.wait();
  multiply(part_, layer_.images());
  layer_.wait();
  copy_rows(own, in_);
}

}  // namespace cputrain::sim
