#include "backends/cuda/target.h"

#include <cstring>
#include <vector>

#include "backends/cuda/compile.h"

namespace cputrain::cuda {
namespace {

class DeviceTarget final : public compute::Target {
 public:
  explicit DeviceTarget(const ProgramDevice& device) : device_(device) {}

  compute::OpList make_ops(const model::Graph& graph, const compute::Planning& planning) override {
    compute::OpList list = cuda::make_ops(
        graph,
        Planning{planning, {.multiprocessors = device_.multiprocessors, .stream = stream()}});
    largest_ = static_cast<std::size_t>(planning.largest());
    for (std::size_t i = 0; i < list.ops.size(); ++i) {
      places_.push_back(std::make_unique<StreamEvent>(device_.stream));
    }
    return list;
  }

  compute::Memory& memory() override { return device_.memory; }

  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override {
    constexpr std::size_t kOfAnImage = sizeof(std::int32_t) + sizeof(std::uint32_t);
    staged_ = PinnedBlock(largest_ * kOfAnImage);
    of_images_ = DeviceBlock(largest_ * kOfAnImage, "labels and samples");
    return take_block(bytes, "activations");
  }

  void enter(const std::function<void()>& work) override {
    use_device(device_.device);
    work();
  }

  /// Labels and samples go to the device together.
  void stage(const compute::MicroBatch& batch, compute::Execution& execution) override {
    const std::size_t labels = batch.labels.size_bytes();
    copied_.synchronize();  // of the pass before
    std::memcpy(staged_.data(), batch.labels.data(), labels);
    std::memcpy(staged_.data() + labels, batch.samples.data(), batch.samples.size_bytes());
    copy_async(of_images_.data(), staged_.data(), labels + batch.samples.size_bytes(), stream());
    copied_.record(stream());
    const auto* begin = static_cast<const std::byte*>(of_images_.data());
    execution.labels = reinterpret_cast<const std::int32_t*>(begin);
    execution.samples = reinterpret_cast<const std::uint32_t*>(begin + labels);
  }

  void clear(const Array& values) override {
    clear_async(values.data, values.bytes().size(), stream());
  }

  compute::Event* place(std::size_t i) override {
    places_[i]->record(stream());
    return places_[i].get();
  }

  void end_call() override { device_.stream.finish_call(); }
  void wait() override { device_.stream.synchronize(); }

 private:
  Stream stream() const { return device_.stream.get(); }

  ProgramDevice device_;
  std::size_t largest_ = 0;                           ///< images of a call
  std::vector<std::unique_ptr<StreamEvent>> places_;  ///< by operator
  PinnedBlock staged_;                                ///< labels, and behind them samples
  Event copied_;                                      ///< them, to the device
  DeviceBlock of_images_;                             ///< the same on the device
};

}  // namespace

std::unique_ptr<compute::Target> make_target(const ProgramDevice& device) {
  return std::make_unique<DeviceTarget>(device);
}

}  // namespace cputrain::cuda
