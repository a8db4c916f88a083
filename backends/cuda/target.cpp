#include "backends/cuda/target.h"

#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "backends/cuda/compile.h"
#include "backends/cuda/kernels/pass_facts.h"

namespace cputrain::cuda {
namespace {

/// Passes that enqueue the same work but for what is in PassFacts.
struct PassKind {
  compute::Ways ways;
  std::size_t size;
  compute::Phase phase;
  bool probabilities;
  compute::Accumulate accumulate;

  auto operator<=>(const PassKind&) const = default;
};

/// What is known of a kind of pass.
struct KnownPass {
  bool has_run = false;
  std::optional<Graph> graph;
};

class DeviceTarget final : public compute::Target {
 public:
  explicit DeviceTarget(const ProgramDevice& device) : device_(device) {}

  compute::OpList make_ops(const model::Graph& graph, const compute::Planning& planning) override {
    // Timed events have no place in a graph.
    captures_ = device_.captures && !planning.options.times_layers;
    on_device_ = DeviceBlock(sizeof(PassFacts), "facts of a pass");
    auto* facts = static_cast<PassFacts*>(on_device_.data());
    compute::OpList list =
        cuda::make_ops(graph, Planning{planning, {device_.multiprocessors, stream(), facts}});
    largest_ = static_cast<std::size_t>(planning.largest());
    image_bytes_ = graph.image().size();
    for (std::size_t i = 0; i < list.ops.size(); ++i) {
      places_.push_back(std::make_unique<StreamEvent>(device_.stream));
    }
    return list;
  }

  compute::Memory& memory() override { return device_.memory; }

  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override {
    const std::size_t each = image_bytes_ + sizeof(std::int32_t) + sizeof(std::uint32_t);
    staged_ = PinnedBlock(largest_ * each);
    images_ = DeviceBlock(largest_ * each, "images, labels and samples");
    return take_block(bytes, "activations");
  }

  void enter(const std::function<void()>& work) override {
    use_device(device_.device);
    work();
  }

  /// Samples, labels and bytes of images go to the device together.
  void stage(const compute::MicroBatch& batch, compute::Execution&) override {
    copied_.synchronize();  // those of the pass before
    std::size_t size = 0;
    const auto put = [&](const void* src, std::size_t bytes) {
      std::memcpy(staged_.data() + size, src, bytes);
      size += bytes;
    };
    put(batch.samples.data(), batch.samples.size_bytes());
    put(batch.labels.data(), batch.labels.size_bytes());
    for (const std::uint8_t* image : batch.images) put(image, image_bytes_);
    copy_async(images_.data(), staged_.data(), size, stream());
    copied_.record(stream());
    facts_.samples = static_cast<const std::uint32_t*>(images_.data());
    facts_.labels = reinterpret_cast<const std::int32_t*>(facts_.samples + batch.samples.size());
    facts_.pixels = reinterpret_cast<const std::uint8_t*>(facts_.labels + batch.labels.size());
  }

  bool joins_ways() const override { return captures_; }

  void run(const compute::Execution& execution, compute::Ways ways,
           const std::function<void()>& ops) override {
    facts_.seed = execution.pass.seed;
    facts_.step = execution.pass.step;
    facts_.loss_scale = execution.loss_scale;
    write_facts(stream(), facts_, static_cast<PassFacts*>(on_device_.data()));
    if (!captures_) return ops();
    KnownPass& known = passes_[{ways, execution.size, execution.pass.phase,
                                execution.pass.probabilities, execution.accumulate}];
    // The first time, kernels are brought to the device, which a capture may not do.
    if (!std::exchange(known.has_run, true)) return ops();
    if (!known.graph) known.graph.emplace(stream(), ops);
    known.graph->launch(stream());
  }

  void clear(const Array& values) override {
    clear_async(values.data, values.bytes().size(), stream());
  }

  bool mark(std::size_t i) override {
    places_[i]->record(stream());
    return true;
  }
  compute::Event* event(std::size_t i) override { return places_[i].get(); }

  void end_call() override { device_.stream.finish_call(); }
  void wait() override { device_.stream.synchronize(); }

 private:
  Stream stream() const { return device_.stream.get(); }

  ProgramDevice device_;
  bool captures_ = false;
  std::size_t largest_ = 0, image_bytes_ = 0;         ///< images of a call; of one
  std::vector<std::unique_ptr<StreamEvent>> places_;  ///< by operator
  PinnedBlock staged_;                                ///< what stage() says
  Event copied_;                                      ///< it, to the device
  DeviceBlock images_;                                ///< the same on the device
  PassFacts facts_;                                   ///< of the pass that was staged
  DeviceBlock on_device_;                             ///< of the one that runs
  std::map<PassKind, KnownPass> passes_;
};

}  // namespace

std::unique_ptr<compute::Target> make_target(const ProgramDevice& device) {
  return std::make_unique<DeviceTarget>(device);
}

}  // namespace cputrain::cuda
