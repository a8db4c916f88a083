#include "backends/cpu/convolution_step.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

namespace cputrain {
namespace {

void note(std::vector<std::size_t>& list, std::optional<std::size_t> index) {
  if (index && std::find(list.begin(), list.end(), *index) == list.end()) list.push_back(*index);
}

std::size_t floats(const dnnl::memory::desc& desc) { return desc.get_size() / sizeof(float); }

std::size_t start(const SampleLayout& layout, const Piece& piece) {
  return layout.size() * static_cast<std::size_t>(piece.first);
}

std::optional<MaxPoolShape> pool_shape(const ConvolutionBlock& block, const SampleLayout& src,
                                       const SampleLayout& dst) {
  if (!block.pool) return std::nullopt;
  const auto& layer = std::get<MaxPool>(block.pool->layer);
  return MaxPoolShape{src,
                      dst,
                      layer.size,
                      layer.stride,
                      pad_amount(layer.padding, src.shape.height, layer.size, layer.stride),
                      pad_amount(layer.padding, src.shape.width, layer.size, layer.stride),
                      block.pooled_relu};
}

}  // namespace

ConvolutionStep::ConvolutionStep(const Planning& planning, int step, const ConvolutionBlock& block,
                                 const Source& src, const Map& dst, std::size_t first_parameter)
    : block_(block),
      source_(src),
      src_(src.map),
      dst_(dst),
      wide_{block.convolution->dst, dst.layout.block},
      pool_(pool_shape(block, wide_, dst.layout)),
      first_parameter_(first_parameter),
      bias_(std::get<Convolution>(block.convolution->layer).bias),
      learns_(planning.training() && !block.convolution->frozen) {
  plan_pieces(planning, step);
  plan_scratch(planning, step);
  time_.macs = block.macs;
  planning.use_forward(step, src, dst);
  planning.use_backward(step, src, dst);
  const int backward = planning.backward_time(step);
  if (learns_) planning.memory.use(src_.value, backward);
  if (dst_.wants_diff && (block.relu || block.pooled_relu))
    planning.memory.use(dst.value, backward);
}

const ConvolutionOperations& ConvolutionStep::operations_for(const Planning& planning, int images) {
  const auto found = operations_.find(images);
  if (found != operations_.end()) return found->second;
  return operations_
      .emplace(images,
               make_operations(planning, block_, images, src_.layout, wide_, src_.wants_diff))
      .first->second;
}

void ConvolutionStep::plan_pieces(const Planning& planning, int step) {
  const std::size_t bytes = (src_.layout.size() + wide_.size()) * sizeof(float);
  for (const int images : planning.sizes) {
    Prepared& prepared = prepared_.emplace_back();
    for (const Piece& piece : cut_into_pieces(images, bytes, planning.threads)) {
      const ConvolutionOperations& made = operations_for(planning, piece.count);
      if (!forward_copies_) {  // the first piece of the largest size decides the arena's layout
        kernel_layout_ = made.forward.weights;
        forward_copies_.emplace(kernel_layout_, planning.forward_time(step));
        data_copies_.emplace(kernel_layout_, planning.backward_time(step));
      }
      PieceCalls calls;
      calls.piece = piece;
      calls.forward_copy = forward_copies_->copy_for(planning, made.forward.weights);
      note(prepared.forward_copies, calls.forward_copy);
      if (src_.wants_diff) {
        calls.data_copy = data_copies_->copy_for(planning, made.backward_data.weights);
        note(prepared.data_copies, calls.data_copy);
      }
      prepared.pieces.push_back(std::move(calls));
    }
  }
}

void ConvolutionStep::plan_scratch(const Planning& planning, int step) {
  const int forward = planning.forward_time(step), backward = planning.backward_time(step);
  std::size_t forward_scratch = 0, backward_scratch = 0, foreign = 0;
  for (const auto& [images, made] : operations_) {
    forward_scratch = std::max(forward_scratch, made.forward.scratchpad);
    backward_scratch = std::max(
        {backward_scratch, made.backward_weights.scratchpad, made.backward_data.scratchpad});
    if (learns_) foreign = std::max(foreign, made.backward_weights.weights.get_size());
  }
  MemoryPlan& memory = planning.memory;
  const auto largest_piece = static_cast<std::size_t>(operations_.rbegin()->first);
  const std::size_t wide_bytes = wide_.size() * largest_piece * sizeof(float);
  forward_scratch_ = memory.add(forward_scratch, forward);
  if (pool_) wide_value_ = memory.add(wide_bytes, forward);
  if (!dst_.wants_diff) return;
  backward_scratch_ = memory.add(backward_scratch, backward);
  if (learns_) {
    kernel_gradient_ = memory.add(kernel_layout_.get_size(), backward);
    foreign_gradient_ = memory.add(foreign, backward);
    bias_gradient_ =
        memory.add(static_cast<std::size_t>(wide_.shape.channels) * sizeof(float), backward);
  }
  if (source_.adds) {
    piece_diff_ = memory.add(src_.layout.size() * largest_piece * sizeof(float), backward);
  }
  if (!pool_) return;
  wide_diff_ = memory.add(wide_bytes, backward);
  winners_block_ =
      memory.add(dst_.layout.size() * static_cast<std::size_t>(planning.largest()), forward);
  memory.use(winners_block_, backward);
}

std::vector<std::unique_ptr<ParameterFormat>> ConvolutionStep::formats() const {
  const auto& layer = std::get<Convolution>(block_.convolution->layer);
  std::vector<std::unique_ptr<ParameterFormat>> formats;
  formats.push_back(
      make_kernel_format(kernel_layout_, layer.kernel, block_.src_shape.channels, layer.filters));
  if (bias_) formats.push_back(make_vector_format(static_cast<std::size_t>(layer.filters)));
  return formats;
}

void ConvolutionStep::bind(const Bindings& bindings) {
  dst_value_ = bindings.at(dst_.value);
  if (pool_) wide_data_ = bindings.at(wide_value_);
  float* kernel = bindings.weights(first_parameter_);
  forward_copies_->bind(bindings, kernel);
  data_copies_->bind(bindings, kernel);
  if (learns_) {
    kernel_sum_ = bindings.gradients(first_parameter_);
    kernel_part_ = bindings.at(kernel_gradient_);
    if (bias_) bias_sum_ = bindings.gradients(first_parameter_ + 1);
    bias_part_ = bindings.at(bias_gradient_);
  }
  if (dst_.wants_diff) {
    dst_diff_ = bindings.at(dst_.diff);
    if (src_.wants_diff) src_diff_ = bindings.at(src_.diff);
    if (source_.adds) piece_diff_data_ = bindings.at(piece_diff_);
    if (pool_) wide_diff_data_ = bindings.at(wide_diff_);
    if (pool_) winners_ = bindings.at<std::uint8_t>(winners_block_);
  }
  for (Prepared& prepared : prepared_) {
    for (PieceCalls& calls : prepared.pieces) bind_piece(bindings, calls);
  }
}

void ConvolutionStep::bind_piece(const Bindings& bindings, PieceCalls& calls) const {
  const Piece& piece = calls.piece;
  const ConvolutionOperations& made = operations_.at(piece.count);
  const auto src_desc = activation_desc(src_.layout, piece.count);
  const auto wide_desc = activation_desc(wide_, piece.count);
  float* src = bindings.at(src_.value) + start(src_.layout, piece);
  std::vector<Call::Argument> arguments{
      {DNNL_ARG_SRC, src_desc, src},
      {DNNL_ARG_WEIGHTS, made.forward.weights, forward_copies_->kernel(calls.forward_copy)},
      {DNNL_ARG_DST, wide_desc, pool_ ? wide_data_ : dst_value_ + start(dst_.layout, piece)}};
  if (bias_) {
    arguments.push_back(
        {DNNL_ARG_BIAS, vector_desc(wide_.shape.channels), bindings.weights(first_parameter_ + 1)});
  }
  calls.convolve =
      Call(bindings.dnnl, made.forward, bindings.at<std::byte>(forward_scratch_), arguments);
  if (!dst_.wants_diff) return;

  float* diff = pool_ ? wide_diff_data_ : dst_diff_ + start(dst_.layout, piece);
  if (learns_) bind_weight_gradients(bindings, calls, made, src, diff);
  if (!src_.wants_diff) return;
  float* diff_src = source_.adds ? piece_diff_data_ : src_diff_ + start(src_.layout, piece);
  calls.data =
      Call(bindings.dnnl, made.backward_data, bindings.at<std::byte>(backward_scratch_),
           {{DNNL_ARG_DIFF_DST, wide_desc, diff},
            {DNNL_ARG_WEIGHTS, made.backward_data.weights, data_copies_->kernel(calls.data_copy)},
            {DNNL_ARG_DIFF_SRC, src_desc, diff_src}});
}

void ConvolutionStep::bind_weight_gradients(const Bindings& bindings, PieceCalls& calls,
                                            const ConvolutionOperations& made, const float* src,
                                            const float* diff) const {
  const Operation& operation = made.backward_weights;
  const bool foreign = operation.weights != kernel_layout_;
  const auto call = [&](float* kernel, float* bias) {
    std::vector<Call::Argument> arguments{
        {DNNL_ARG_SRC, activation_desc(src_.layout, calls.piece.count), const_cast<float*>(src)},
        {DNNL_ARG_DIFF_DST, activation_desc(wide_, calls.piece.count), const_cast<float*>(diff)},
        {DNNL_ARG_DIFF_WEIGHTS, operation.weights, kernel}};
    if (bias_) {
      arguments.push_back({DNNL_ARG_DIFF_BIAS, vector_desc(wide_.shape.channels), bias});
    }
    return Call(bindings.dnnl, operation, bindings.at<std::byte>(backward_scratch_), arguments);
  };
  float* other = bindings.at(foreign_gradient_);
  calls.weights_to_arena = call(foreign ? other : kernel_sum_, bias_sum_);
  calls.weights_to_scratch = call(foreign ? other : kernel_part_, bias_part_);
  if (!foreign) return;
  const Operation convert = reorder(bindings.dnnl, operation.weights, kernel_layout_);
  const auto from_foreign = [&](float* kernel) {
    return Call(bindings.dnnl, convert, nullptr,
                {{DNNL_ARG_FROM, operation.weights, other}, {DNNL_ARG_TO, kernel_layout_, kernel}});
  };
  calls.from_foreign_to_arena = from_foreign(kernel_sum_);
  calls.from_foreign_to_scratch = from_foreign(kernel_part_);
}

void ConvolutionStep::pool_piece(const Piece& piece) {
  const std::size_t first = start(dst_.layout, piece);
  max_pool(*pool_, piece.count, wide_data_, dst_value_ + first,
           winners_ ? winners_ + first : nullptr);
}

void ConvolutionStep::unpool_piece(const Piece& piece) {
  const std::size_t first = start(dst_.layout, piece);
  if (pool_) {
    max_pool_backward(*pool_, piece.count, dst_value_ + first, winners_ + first, dst_diff_ + first,
                      wide_diff_data_);
  } else if (block_.relu) {
    const float* dst = dst_value_ + first;
    float* diff = dst_diff_ + first;
    parallel_ranges(
        dst_.layout.size() * static_cast<std::size_t>(piece.count),
        [&](std::size_t b, std::size_t e) { kernels::relu_backward(dst + b, diff + b, e - b); });
  }
}

void ConvolutionStep::forward(const Execution& execution) {
  Stopwatch watch;
  const Prepared& prepared = prepared_[execution.size];
  for (const std::size_t copy : prepared.forward_copies) forward_copies_->refresh(copy);
  for (const PieceCalls& calls : prepared.pieces) {
    calls.convolve.run();
    time_.forward += watch.lap();
    if (!pool_) continue;
    pool_piece(calls.piece);
    pool_time_.forward += watch.lap();
  }
}

void ConvolutionStep::add_weight_gradients(const PieceCalls& calls, bool overwrite) {
  (overwrite ? calls.weights_to_arena : calls.weights_to_scratch).run();
  const Call& convert = overwrite ? calls.from_foreign_to_arena : calls.from_foreign_to_scratch;
  if (convert) convert.run();
  if (overwrite) return;
  parallel_ranges(floats(kernel_layout_), [&](std::size_t b, std::size_t e) {
    kernels::add(kernel_part_ + b, kernel_sum_ + b, e - b);
  });
  if (bias_) kernels::add(bias_part_, bias_sum_, static_cast<std::size_t>(wide_.shape.channels));
}

/// The library cannot add to a gradient; a piece of it is still in the cache when this adds it.
void ConvolutionStep::add_source_gradient(const PieceCalls& calls) {
  calls.data.run();
  if (!source_.adds) return;
  float* sum = src_diff_ + start(src_.layout, calls.piece);
  parallel_ranges(
      src_.layout.size() * static_cast<std::size_t>(calls.piece.count),
      [&](std::size_t b, std::size_t e) { kernels::add(piece_diff_data_ + b, sum + b, e - b); });
}

void ConvolutionStep::backward(const Execution& execution) {
  if (!dst_.wants_diff) return;
  Stopwatch watch;
  const Prepared& prepared = prepared_[execution.size];
  for (const std::size_t copy : prepared.data_copies) data_copies_->refresh(copy);
  bool overwrite = execution.accumulate == Accumulate::overwrite;
  for (const PieceCalls& calls : prepared.pieces) {
    unpool_piece(calls.piece);
    (pool_ ? pool_time_ : time_).backward_data += watch.lap();
    if (learns_) add_weight_gradients(calls, overwrite);
    overwrite = false;
    time_.backward_weights += watch.lap();
    if (calls.data) {
      add_source_gradient(calls);
      time_.backward_data += watch.lap();
    }
  }
}

void ConvolutionStep::append_times(std::vector<LayerTime>& times) const {
  const ConvolutionOperations& made = operations_.at(prepared_.front().pieces.front().piece.count);
  LayerTime time = time_;
  time.name = block_.convolution->name;
  time.algorithm = made.forward.implementation;
  if (learns_) time.algorithm += ", weights " + made.backward_weights.implementation;
  if (src_.wants_diff) time.algorithm += ", data " + made.backward_data.implementation;
  times.push_back(time);
  if (!pool_) return;
  LayerTime pool = pool_time_;
  pool.name = block_.pool->name;
  pool.algorithm = block_.pooled_relu ? "own, with ReLU" : "own";
  times.push_back(pool);
}

}  // namespace cputrain
