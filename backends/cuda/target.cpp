#include "backends/cuda/target.h"

#include <optional>
#include <vector>

#include "backends/cuda/compile.h"
#include "backends/cuda/image_feed.h"

namespace cputrain::cuda {
namespace {

class StreamPlace final : public compute::Place {
 public:
  void record(Stream stream) { event_.record(stream); }
  void wait() override { event_.synchronize(); }

 private:
  Event event_;
};

class DeviceTarget final : public compute::Target {
 public:
  explicit DeviceTarget(const ProgramDevice& device) : device_(device) {}

  compute::OpList make_ops(const model::Graph& graph, const compute::Planning& planning) override {
    compute::OpList list = cuda::make_ops(
        graph,
        Planning{planning, {.multiprocessors = device_.multiprocessors, .stream = stream()}});
    own_size_ = {.image = graph.image(), .images = static_cast<std::size_t>(planning.largest())};
    for (std::size_t i = 0; i < list.ops.size(); ++i) {
      places_.push_back(std::make_unique<StreamPlace>());
    }
    return list;
  }

  compute::Memory& memory() override { return device_.memory; }

  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override {
    return take_block(bytes, "activations");
  }

  void enter(const std::function<void()>& work) override {
    use_device(device_.device);
    work();
  }

  void stage(const compute::MicroBatch& batch, compute::Execution& execution) override {
    batch_ = nullptr;  // that of the last pass may be gone
    if (batch.size() == 0) return;
    batch_ = static_cast<DeviceBatch*>(batch.staged ? batch.staged : send(batch));
    batch_->begin_use(stream());
    execution.bytes = batch_->bytes;
    execution.moves = batch_->moves;
    execution.labels = batch_->labels;
    execution.samples = batch_->samples;
  }

  void clear(const Array& values) override {
    clear_async(values.data, values.bytes().size(), stream());
  }

  compute::Place* place(std::size_t i) override {
    places_[i]->record(stream());
    return places_[i].get();
  }

  void end_call() override {
    if (batch_) batch_->end_use(stream());
    device_.stream.finish_call();
  }
  void wait() override { device_.stream.synchronize(); }

 private:
  Stream stream() const { return device_.stream.get(); }

  /// What nobody has sent ahead.
  compute::StagedImages* send(const compute::MicroBatch& batch) {
    if (!own_) own_.emplace(device_.device, device_.memory, own_size_);
    moves_.clear();
    for (std::uint32_t i = 0; i < batch.labels.size(); ++i) {
      moves_.push_back(compute::whole_image(i, own_size_.image));
    }
    return own_->stage(0, batch, moves_);
  }

  ProgramDevice device_;
  std::vector<std::unique_ptr<StreamPlace>> places_;  ///< by operator
  DeviceBatch* batch_ = nullptr;                      ///< of the pass
  compute::FeedSize own_size_;
  std::optional<DeviceFeed> own_;
  std::vector<compute::ImageMove> moves_;
};

}  // namespace

std::unique_ptr<compute::Target> make_target(const ProgramDevice& device) {
  return std::make_unique<DeviceTarget>(device);
}

}  // namespace cputrain::cuda
