#include "backends/cuda/program.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "model/rewrite.h"

namespace cputrain::cuda {

CudaProgram::CudaProgram(const ProgramDevice& device, const model::Graph& graph,
                         const compute::CompileOptions& options, const compute::ArenaSource& arenas)
    : device_(device), graph_(model::pool_before_relu(graph)), sizes_(options.micro_batches) {
  use_device(device_.device);
  list_ = make_ops(graph_, {.memory = memory_,
                            .sizes = sizes_,
                            .training = options.phase == compute::Phase::train,
                            .multiprocessors = device_.multiprocessors,
                            .most_ops = static_cast<int>(graph_.nodes().size())});
  if (options.times_layers) {
    for (const auto& op : list_.ops) op->take_times();
  }
  lay_out_parameters();
  memory_.place();
  arenas_ = arenas(layout_);
}

/// With the first pass, not before: whoever compiles a program may find that it needs more memory
/// than there is, and tell how much would do.
void CudaProgram::allocate() {
  if (arena_.size() > 0) return;
  constexpr std::size_t kOfAnImage = sizeof(std::int32_t) + sizeof(std::uint32_t);
  const auto largest = static_cast<std::size_t>(std::ranges::max(sizes_));
  staged_ = PinnedBlock(largest * kOfAnImage);
  of_images_ = DeviceBlock(largest * kOfAnImage, "labels and samples");
  arena_ = DeviceBlock(memory_.peak(), "activations");
  const Bindings bindings{memory_, static_cast<std::byte*>(arena_.data()), layout_, arenas_};
  for (const auto& op : list_.ops) op->bind(bindings);
}

/// Ranges of parameters run backwards: behind an op's backward everything up to the end of its
/// first parameter is final.
void CudaProgram::lay_out_parameters() {
  std::vector<std::size_t> stored, first_of_op;
  for (const auto& op : list_.ops) {
    first_of_op.push_back(formats_.size());
    for (const ParameterFormat& format : op->formats()) {
      formats_.push_back(format);
      stored.push_back(format.stored());
    }
  }
  layout_ = compute::lay_out(graph_, DType::f32, stored);
  for (std::size_t p = 0; p < formats_.size(); ++p) {
    layout_.parameters[p].columns = formats_[p].row();
  }
  first_of_op.push_back(formats_.size());
  for (std::size_t i = 0; i < list_.ops.size(); ++i) {
    const std::size_t first = first_of_op[i];
    const bool learns = first < first_of_op[i + 1] && layout_.parameters[first].learnt;
    ready_after_.push_back(learns ? layout_.parameters[first].range.end : 0);
    gradients_done_.push_back(learns ? std::make_unique<Event>() : nullptr);
  }
}

/// Labels and samples go to the device together.
void CudaProgram::stage(const compute::MicroBatch& batch) {
  const std::size_t labels = batch.labels.size_bytes();
  std::memcpy(staged_.data(), batch.labels.data(), labels);
  std::memcpy(staged_.data() + labels, batch.samples.data(), batch.samples.size_bytes());
  copy_async(of_images_.data(), staged_.data(), labels + batch.samples.size_bytes(), last_.stream);
  const auto* begin = static_cast<const std::byte*>(of_images_.data());
  last_.labels = reinterpret_cast<const std::int32_t*>(begin);
  last_.samples = reinterpret_cast<const std::uint32_t*>(begin + labels);
}

compute::Tally CudaProgram::forward(const compute::MicroBatch& batch, const compute::Pass& pass) {
  last_ = {.stream = device_.stream.get(), .images = batch.size(), .batch = &batch, .pass = pass};
  if (batch.size() == 0) {
    list_.loss->forget();
    return {};
  }
  assert(std::ranges::count(sizes_, batch.size()) > 0 && "a size that it was not compiled for");
  use_device(device_.device);
  allocate();
  stage(batch);
  for (const auto& op : list_.ops) op->forward(last_);
  device_.stream.synchronize();
  device_.stream.finish_call();
  last_.batch = nullptr;  // the caller's
  for (const auto& op : list_.ops) op->collect_times();
  return list_.loss->tally();
}

void CudaProgram::backward(double loss_scale, compute::Accumulate accumulate,
                           const compute::ReadySink& ready) {
  assert(last_.pass.phase == compute::Phase::train && arenas_.gradients.data);
  use_device(device_.device);
  if (last_.images == 0) {
    backward_of_nothing(accumulate);
    return ready(layout_.gradient_size);
  }
  Execution execution = last_;
  execution.loss_scale = loss_scale;
  execution.add = accumulate == compute::Accumulate::add;
  run_backward(execution, ready);
}

void CudaProgram::backward_of_nothing(compute::Accumulate accumulate) {
  if (accumulate == compute::Accumulate::add) return;
  clear_async(arenas_.gradients.data, layout_.gradient_size * sizeof(float), device_.stream.get());
  device_.stream.finish_call();
  device_.stream.synchronize();
}

/// All of it is put into the stream before anybody waits, so that the device never does.
void CudaProgram::run_backward(const Execution& execution, const compute::ReadySink& ready) {
  for (std::size_t i = list_.ops.size(); i-- > 0;) {
    list_.ops[i]->backward(execution);
    if (gradients_done_[i]) gradients_done_[i]->record(execution.stream);
  }
  std::size_t told = 0;
  for (std::size_t i = list_.ops.size(); i-- > 0;) {
    if (ready_after_[i] <= told) continue;
    gradients_done_[i]->synchronize();
    // The last one is told when nothing of the pass is left.
    if (ready_after_[i] < layout_.gradient_size) ready(told = ready_after_[i]);
  }
  device_.stream.finish_call();
  device_.stream.synchronize();
  for (const auto& op : list_.ops) op->collect_times();
  ready(layout_.gradient_size);
}

Array CudaProgram::range_of(std::size_t parameter, const Array& arena) const {
  const Range& range = layout_.parameters[parameter].range;
  return arena.slice(range.begin, range.begin + formats_[parameter].stored());
}

std::vector<double> CudaProgram::to_canonical(std::size_t parameter, const Array& arena) const {
  const std::vector<float> canonical = to_canonical_floats(parameter, arena);
  return {canonical.begin(), canonical.end()};
}

std::vector<float> CudaProgram::to_canonical_floats(std::size_t parameter,
                                                    const Array& arena) const {
  std::vector<float> stored(formats_[parameter].stored());
  std::vector<float> canonical(layout_.parameters[parameter].count);
  device_.memory.read(range_of(parameter, arena).data, std::as_writable_bytes(std::span(stored)));
  formats_[parameter].to_canonical(stored, canonical);
  return canonical;
}

void CudaProgram::from_canonical(std::size_t parameter, std::span<const double> values,
                                 const Array& arena) const {
  assert(values.size() == layout_.parameters[parameter].count);
  const std::vector<float> canonical(values.begin(), values.end());
  std::vector<float> stored(formats_[parameter].stored());
  formats_[parameter].from_canonical(canonical, stored);
  device_.memory.write(std::as_bytes(std::span(stored)), range_of(parameter, arena).data);
}

std::vector<compute::LayerTime> CudaProgram::layer_times() const {
  std::vector<compute::LayerTime> times;
  for (const auto& op : list_.ops) times.push_back(op->time());
  return times;
}

}  // namespace cputrain::cuda
