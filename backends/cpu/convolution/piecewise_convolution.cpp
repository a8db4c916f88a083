#include "backends/cpu/convolution/piecewise_convolution.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/kernels/on_threads.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

void note(std::vector<std::size_t>& list, std::optional<std::size_t> index) {
  if (index && std::find(list.begin(), list.end(), *index) == list.end()) list.push_back(*index);
}

std::size_t floats(const dnnl::memory::desc& desc) { return desc.get_size() / sizeof(float); }

std::byte* start(std::byte* map, const Activation& of_map, const Piece& piece) {
  return map + of_map.bytes(piece.first);
}

Range images_of(const Piece& piece) {
  const auto first = to_size(piece.first);
  return {first, first + to_size(piece.count)};
}

std::byte* bytes_of(float* data) { return reinterpret_cast<std::byte*>(data); }
template <class Number>
Number* numbers_at(std::byte* data) {
  return reinterpret_cast<Number*>(data);
}

}  // namespace

PiecewiseConvolution::PiecewiseConvolution(const Planning& planning, const ConvolutionPlace& place,
                                           ConvolutionMethod method,
                                           const std::optional<dnnl::memory::desc>& kernel_layout)
    : place_(place),
      method_(method),
      forward_src_(place.src.layout, numbers_of(place.src)),
      forward_wide_(place.wide, numbers_of(place.dst)),
      backward_src_(place.src.layout, numbers_of(place.src)),
      weights_diff_(place.wide, numbers_of(place.dst)),
      data_diff_(place.wide, numbers_of(place.dst)),
      src_diff_copy_(place.src.layout, numbers_of(place.src)) {
  assert(!place.pool || !is_narrow(place.dst));
  if (kernel_layout) set_kernel_layout(planning, *kernel_layout);
  plan_pieces(planning);
  plan_scratch(planning);
  plan_map_copies(planning);
}

void PiecewiseConvolution::set_kernel_layout(const Planning& planning,
                                             const dnnl::memory::desc& layout) {
  kernel_layout_ = layout;
  forward_copies_.emplace(layout, planning.forward_time(place_.op));
  data_copies_.emplace(layout, planning.backward_time(place_.op));
}

/// Weights lie in the arena as floats, whatever is computed with.
dnnl::memory::desc PiecewiseConvolution::float_kernel_layout(
    const Planning& planning, const ConvolutionOperations& made) const {
  if (!made.forward.bf16) return made.forward.weights;
  return make_operations(planning, place_, made.problem.images, ConvolutionMethod::direct)
      .forward.weights;
}

const ConvolutionOperations& PiecewiseConvolution::operations_for(const Planning& planning,
                                                                  int images) {
  const auto found = operations_.find(images);
  if (found != operations_.end()) return found->second;
  return operations_.emplace(images, make_operations(planning, place_, images, method_))
      .first->second;
}

void PiecewiseConvolution::plan_pieces(const Planning& planning) {
  const std::size_t bytes = (place_.src.layout.size() + place_.wide.size()) * sizeof(float);
  for (const int images : planning.sizes) {
    Prepared& prepared = prepared_.emplace_back();
    for (const Piece& piece : cut_into_pieces(images, bytes, planning.threads)) {
      const ConvolutionOperations& made = operations_for(planning, piece.count);
      // No other method has chosen a layout, so the first piece of the largest size does.
      if (!forward_copies_) set_kernel_layout(planning, float_kernel_layout(planning, made));
      PieceCalls calls;
      calls.piece = piece;
      calls.forward_copy = forward_copies_->copy_for(planning, made.forward.weights);
      note(prepared.forward_copies, calls.forward_copy);
      if (place_.src.wants_diff) {
        calls.data_copy = data_copies_->copy_for(planning, made.backward_data.weights);
        note(prepared.data_copies, calls.data_copy);
      }
      prepared.pieces.push_back(std::move(calls));
    }
  }
}

bool PiecewiseConvolution::pools_copy(const ConvolutionOperations& made) const {
  return place_.pool && !place_.wide.padded() &&
         forward_wide_.needed(made.problem.images, made.forward.dst);
}

bool PiecewiseConvolution::shares_diff(const ConvolutionOperations& made) const {
  return place_.learns && made.backward_weights.dst == made.backward_data.dst;
}

/// Backward-weights writes and cannot add: pieces that add write to scratch (kernel_gradient_),
/// which is added to the arena. Where the library wants another layout than the arena's, it first
/// writes to foreign_gradient_, which is converted.
void PiecewiseConvolution::plan_scratch(const Planning& planning) {
  const int forward = planning.forward_time(place_.op),
            backward = planning.backward_time(place_.op);
  std::size_t forward_scratch = 0, backward_scratch = 0, foreign = 0;
  bool pools_ours = false;
  for (const auto& [images, made] : operations_) {
    forward_scratch = std::max(forward_scratch, made.forward.scratchpad);
    backward_scratch = std::max(
        {backward_scratch, made.backward_weights.scratchpad, made.backward_data.scratchpad});
    if (place_.learns) foreign = std::max(foreign, made.backward_weights.weights.get_size());
    if (!pools_copy(made)) pools_ours = true;
  }
  compute::MemoryPlan& memory = planning.memory;
  const auto largest_piece = to_size(operations_.rbegin()->first);
  const std::size_t wide_bytes = place_.wide.size() * largest_piece * sizeof(float);
  forward_scratch_ = memory.add(forward_scratch, forward);
  if (place_.pool) wide_value_ = memory.add(pools_ours ? wide_bytes : 0, forward);
  if (!place_.dst.wants_diff) return;
  backward_scratch_ = memory.add(backward_scratch, backward);
  if (place_.learns) {
    kernel_gradient_ = memory.add(kernel_layout_.get_size(), backward);
    foreign_gradient_ = memory.add(foreign, backward);
    bias_gradient_ = memory.add(to_size(place_.wide.shape.channels) * sizeof(float), backward);
  }
  if (place_.src.adds) {
    piece_diff_ = memory.add(place_.src.bytes(operations_.rbegin()->first), backward);
  }
  if (!place_.pool) return;
  wide_diff_ = memory.add(wide_bytes, backward);
}

void PiecewiseConvolution::plan_map_copies(const Planning& planning) {
  const int forward = planning.forward_time(place_.op),
            backward = planning.backward_time(place_.op);
  for (const auto& [images, made] : operations_) {
    forward_src_.plan(planning, images, made.forward.src, forward);
    forward_wide_.plan(planning, images, made.forward.dst, forward);
    if (!place_.dst.wants_diff) continue;
    if (place_.learns) {
      backward_src_.plan(planning, images, made.backward_weights.src, backward);
      weights_diff_.plan(planning, images, made.backward_weights.dst, backward);
    }
    if (!place_.src.wants_diff) continue;
    if (!shares_diff(made)) data_diff_.plan(planning, images, made.backward_data.dst, backward);
    src_diff_copy_.plan(planning, images, made.backward_data.src, backward);
  }
}

void PiecewiseConvolution::share_memory(compute::MemoryPlan& memory,
                                        const PiecewiseConvolution& other) const {
  memory.merge(forward_scratch_, other.forward_scratch_);
  if (place_.pool) memory.merge(wide_value_, other.wide_value_);
  if (!place_.dst.wants_diff) return;
  memory.merge(backward_scratch_, other.backward_scratch_);
  if (place_.pool) memory.merge(wide_diff_, other.wide_diff_);
  if (place_.src.adds) memory.merge(piece_diff_, other.piece_diff_);
  if (!place_.learns) return;
  memory.merge(kernel_gradient_, other.kernel_gradient_);
  memory.merge(foreign_gradient_, other.foreign_gradient_);
  memory.merge(bias_gradient_, other.bias_gradient_);
}

void PiecewiseConvolution::bind(const DnnlBindings& bindings) {
  dst_value_ = bindings.at<std::byte>(place_.dst.value);
  if (place_.pool) wide_data_ = bindings.at(wide_value_);
  float* kernel = bindings.weights(place_.first_parameter);
  forward_copies_->bind(bindings, kernel);
  data_copies_->bind(bindings, kernel);
  if (place_.learns) {
    kernel_sum_ = bindings.gradients(place_.first_parameter);
    kernel_part_ = bindings.at(kernel_gradient_);
    if (place_.bias) bias_sum_ = bindings.gradients(place_.first_parameter + 1);
    bias_part_ = bindings.at(bias_gradient_);
  }
  if (place_.dst.wants_diff) {
    dst_diff_ = bindings.at<std::byte>(place_.dst.diff);
    if (place_.src.wants_diff) src_diff_ = bindings.at<std::byte>(place_.src.diff);
    if (place_.src.adds) piece_diff_data_ = bindings.at<std::byte>(piece_diff_);
    if (place_.pool) wide_diff_data_ = bindings.at(wide_diff_);
    if (place_.pool) winners_ = bindings.at<std::uint8_t>(place_.winners);
  }
  for (Prepared& prepared : prepared_) {
    for (PieceCalls& calls : prepared.pieces) bind_piece(bindings, calls);
  }
}

void PiecewiseConvolution::bind_piece(const DnnlBindings& bindings, PieceCalls& calls) const {
  const Piece& piece = calls.piece;
  const ConvolutionOperations& made = operations_.at(piece.count);
  std::byte* src = start(bindings.at<std::byte>(place_.src.value), place_.src, piece);
  bind_forward(bindings, calls, made, src);
  if (!place_.dst.wants_diff) return;
  std::byte* diff = place_.pool ? bytes_of(wide_diff_data_) : start(dst_diff_, place_.dst, piece);
  if (place_.learns) bind_weight_gradients(bindings, calls, made, src, diff);
  if (place_.src.wants_diff) bind_data_gradient(bindings, calls, made, diff);
}

void PiecewiseConvolution::bind_forward(const DnnlBindings& bindings, PieceCalls& calls,
                                        const ConvolutionOperations& made, std::byte* src) const {
  const int images = calls.piece.count;
  const Operation& operation = made.forward;
  std::byte* wide = place_.pool ? bytes_of(wide_data_) : start(dst_value_, place_.dst, calls.piece);
  std::vector<Call::Argument> arguments{
      forward_src_.argument(bindings, DNNL_ARG_SRC, images, operation.src, src),
      {DNNL_ARG_WEIGHTS, operation.weights, forward_copies_->kernel(calls.forward_copy)},
      forward_wide_.argument(bindings, DNNL_ARG_DST, images, operation.dst, wide)};
  if (place_.bias) {
    arguments.push_back({DNNL_ARG_BIAS, vector_desc(place_.wide.shape.channels),
                         bindings.weights(place_.first_parameter + 1)});
  }
  calls.fill_src = forward_src_.fill(bindings, images, operation.src, src);
  calls.convolve =
      Call(bindings.dnnl, operation, bindings.at<std::byte>(forward_scratch_), arguments);
  if (pools_copy(made)) {
    assert(operation.dst == channels_last_desc(place_.wide, images));
    calls.pooled = reinterpret_cast<const float*>(forward_wide_.data(bindings));
    calls.pooled_form = MapForm::channels_last;
  } else {
    calls.drain_wide = forward_wide_.drain(bindings, images, operation.dst, wide);
    calls.pooled = wide_data_;
  }
}

void PiecewiseConvolution::bind_data_gradient(const DnnlBindings& bindings, PieceCalls& calls,
                                              const ConvolutionOperations& made,
                                              std::byte* diff) const {
  const Piece& piece = calls.piece;
  const Operation& operation = made.backward_data;
  std::byte* diff_src = place_.src.adds ? piece_diff_data_ : start(src_diff_, place_.src, piece);
  calls.shares_diff = shares_diff(made);
  const MapCopy& diff_copy = calls.shares_diff ? weights_diff_ : data_diff_;
  if (!calls.shares_diff) {
    calls.fill_data_diff = data_diff_.fill(bindings, piece.count, operation.dst, diff);
  }
  calls.data = Call(
      bindings.dnnl, operation, bindings.at<std::byte>(backward_scratch_),
      {diff_copy.argument(bindings, DNNL_ARG_DIFF_DST, piece.count, operation.dst, diff),
       {DNNL_ARG_WEIGHTS, operation.weights, data_copies_->kernel(calls.data_copy)},
       src_diff_copy_.argument(bindings, DNNL_ARG_DIFF_SRC, piece.count, operation.src, diff_src)});
  calls.drain_src_diff = src_diff_copy_.drain(bindings, piece.count, operation.src, diff_src);
}

void PiecewiseConvolution::bind_weight_gradients(const DnnlBindings& bindings, PieceCalls& calls,
                                                 const ConvolutionOperations& made, std::byte* src,
                                                 std::byte* diff) const {
  const Operation& operation = made.backward_weights;
  const bool foreign = operation.weights != kernel_layout_;
  const int images = calls.piece.count;
  calls.fill_src_again = backward_src_.fill(bindings, images, operation.src, src);
  calls.fill_weights_diff = weights_diff_.fill(bindings, images, operation.dst, diff);
  if (operation.bf16 && !calls.fill_src_again) calls.fetched_src = src;
  if (operation.bf16 && !calls.fill_weights_diff) calls.fetched_diff = diff;
  const auto call = [&](float* kernel, float* bias) {
    std::vector<Call::Argument> arguments{
        backward_src_.argument(bindings, DNNL_ARG_SRC, images, operation.src, src),
        weights_diff_.argument(bindings, DNNL_ARG_DIFF_DST, images, operation.dst, diff),
        {DNNL_ARG_DIFF_WEIGHTS, operation.weights, kernel}};
    if (place_.bias) {
      arguments.push_back({DNNL_ARG_DIFF_BIAS, vector_desc(place_.wide.shape.channels), bias});
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

void PiecewiseConvolution::pool_piece(const PieceCalls& calls) {
  max_pool(*place_.pool, calls.piece.count, calls.pooled, calls.pooled_form,
           numbers_at<float>(start(dst_value_, place_.dst, calls.piece)),
           winners_ ? winners_ + place_.dst.count(calls.piece.first) : nullptr);
}

void PiecewiseConvolution::unpool_piece(const Piece& piece) {
  std::byte *const dst = start(dst_value_, place_.dst, piece), *const diff = start(
                                                                   dst_diff_, place_.dst, piece);
  const std::size_t count = place_.dst.count(piece.count);
  if (place_.pool) {
    max_pool_backward(*place_.pool, piece.count, numbers_at<float>(dst),
                      winners_ + place_.dst.count(piece.first), numbers_at<float>(diff),
                      wide_diff_data_);
  } else if (place_.block.relu && is_narrow(place_.dst)) {
    stop_at_zeros(numbers_at<Bf16>(dst), numbers_at<Bf16>(diff), count);
  } else if (place_.block.relu) {
    stop_at_zeros(numbers_at<float>(dst), numbers_at<float>(diff), count);
  }
}

void PiecewiseConvolution::forward(const Execution& execution, ConvolutionTimes& times,
                                   const Written& written) {
  system::Stopwatch watch;
  const Prepared& prepared = prepared_[execution.size];
  for (const std::size_t copy : prepared.forward_copies) forward_copies_->refresh(copy);
  for (const PieceCalls& calls : prepared.pieces) {
    if (calls.fill_src) calls.fill_src.run();
    calls.convolve.run();
    if (calls.drain_wide) calls.drain_wide.run();
    times.convolution.forward += watch.lap();
    if (place_.pool) pool_piece(calls);
    times.pool.forward += watch.lap();
    written(images_of(calls.piece));
    watch.lap();  // theirs
  }
}

void PiecewiseConvolution::add_weight_gradients(const PieceCalls& calls, bool overwrite) {
  if (calls.fill_src_again) calls.fill_src_again.run();
  // The library's kernels of 16-bit factors read maps in an order that processors do not foresee:
  // from memory they take half as long again as from the caches.
  if (calls.fetched_src) fetch_on_threads(calls.fetched_src, place_.src.bytes(calls.piece.count));
  if (calls.fetched_diff) fetch_on_threads(calls.fetched_diff, place_.dst.bytes(calls.piece.count));
  (overwrite ? calls.weights_to_arena : calls.weights_to_scratch).run();
  const Call& convert = overwrite ? calls.from_foreign_to_arena : calls.from_foreign_to_scratch;
  if (convert) convert.run();
  if (overwrite) return;
  add_on_threads(kernel_part_, kernel_sum_, floats(kernel_layout_));
  if (place_.bias) kernels::add(bias_part_, bias_sum_, to_size(place_.wide.shape.channels));
}

/// The library cannot add to a gradient; a piece of it is still in the cache when this adds it.
void PiecewiseConvolution::add_source_gradient(const PieceCalls& calls) {
  if (calls.fill_data_diff) calls.fill_data_diff.run();
  calls.data.run();
  if (calls.drain_src_diff) calls.drain_src_diff.run();
  if (!place_.src.adds) return;
  std::byte* const sum = start(src_diff_, place_.src, calls.piece);
  const std::size_t count = place_.src.count(calls.piece.count);
  if (is_narrow(place_.src)) {
    add_on_threads(numbers_at<Bf16>(piece_diff_data_), numbers_at<Bf16>(sum), count);
  } else {
    add_on_threads(numbers_at<float>(piece_diff_data_), numbers_at<float>(sum), count);
  }
}

void PiecewiseConvolution::backward(const Execution& execution, bool weights, bool data,
                                    ConvolutionTimes& times, const Written& written) {
  system::Stopwatch watch;
  const Prepared& prepared = prepared_[execution.size];
  if (data) {
    for (const std::size_t copy : prepared.data_copies) data_copies_->refresh(copy);
  }
  bool overwrite = execution.accumulate == compute::Accumulate::overwrite;
  for (const PieceCalls& calls : prepared.pieces) {
    unpool_piece(calls.piece);
    (place_.pool ? times.pool.backward_data : times.before_backward) += watch.lap();
    if (calls.fill_weights_diff && (weights || calls.shares_diff)) calls.fill_weights_diff.run();
    times.before_backward += watch.lap();
    if (weights) {
      add_weight_gradients(calls, overwrite);
      times.convolution.backward_weights += watch.lap();
    }
    overwrite = false;
    if (data) {
      add_source_gradient(calls);
      times.convolution.backward_data += watch.lap();
    }
    written(images_of(calls.piece));
    watch.lap();
  }
}

const ConvolutionOperations& PiecewiseConvolution::operations() const {
  return operations_.at(prepared_.front().pieces.front().piece.count);
}

}  // namespace cputrain::cpu
