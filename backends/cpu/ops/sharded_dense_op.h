#pragma once

#include <memory>
#include <optional>

#include "backends/cpu/ops/dense_op.h"
#include "exchange/shared_layer.h"

namespace cputrain::cpu {

/// A dense layer that the ranks of a node compute together, in the rounds of SharedLayer: each
/// multiplies its columns of all images with its rows of the weights.
/// The bias is each rank's own affair, and its gradient is reduced like that of other layers.
class ShardedDenseOp final : public DenseLayerOp {
 public:
  /// `zeros_are_dead`: the source's, as for DenseProduct.
  ShardedDenseOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
                 const Activation& dst, std::size_t first_parameter, bool zeros_are_dead = false);

  void bind(const Bindings&) override;
  void forward(const Execution& execution) override { multiply_together(execution.images); }
  void forward_of_nothing(const Execution&) override { multiply_together(0); }
  void backward(const Execution& execution) override { go_back(execution.accumulate); }
  void backward_of_nothing(compute::Accumulate accumulate) override { go_back(accumulate); }
  double waited() const override { return layer_->waited(); }
  std::size_t shared_bytes() const override { return layer_->bytes(); }

 private:
  void multiply_together(int images);
  void multiply_columns();
  void add_partial_sums();
  void go_back(compute::Accumulate);
  void write_weights_gradient(compute::Accumulate);
  void write_source_gradient();

  std::size_t first_row() const { return shard_.begin / out_; }
  std::size_t rows() const { return shard_.size() / out_; }

  bool zeros_are_dead_;
  std::size_t most_images_;
  comm::Communicator& node_;
  std::unique_ptr<exchange::SharedLayer> layer_;
  Range shard_;                                ///< this rank's weights, within the kernel
  std::vector<bool> has_rows_;                 ///< by rank: small layers leave some without
  std::optional<DenseProduct> product_;        ///< by the rows of this rank
  std::vector<std::byte> kept_, for_forward_;  ///< its memory
};

}  // namespace cputrain::cpu
