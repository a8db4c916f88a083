#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "backends/cuda/image_feed.h"
#include "backends/cuda/kernels/pass_facts.h"
#include "backends/cuda/ops/op.h"
#include "backends/cuda/ops/tile_trials.h"
#include "backends/cuda/update.h"
#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

/// Passes that enqueue the same work but for what is in PassFacts.
struct PassKind {
  bool forward, backward;
  std::size_t size;
  compute::Phase phase;
  bool probabilities;
  compute::Accumulate accumulate;
  const compute::PassSums* sums;
  std::uint64_t update;  ///< DeviceUpdate::number(), or 0

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
    may_capture_ = device_.captures && !planning.options.synchronise;  // the host takes part there
    facts_ = DeviceBlock(sizeof(PassFacts), "facts of a pass");
    auto ops = cuda::make_ops(graph, Planning{planning, device_, facts()});
    own_size_ = {.image = graph.image(), .images = to_size(planning.largest())};
    for (const auto& op : ops) {
      places_.push_back(std::make_unique<StreamEvent>(device_.stream));
      if (auto* const choice = op->choice()) trials_.push_back(static_cast<TileTrials*>(choice));
    }
    return ops;
  }

  compute::Memory& memory() override { return device_.device_memory; }

  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override {
    return take_block(bytes, "activations");
  }

  /// The copy of weights, which other programs of the arena share.
  std::size_t own_bytes(const compute::ParameterLayout& layout) const override {
    return copies().bytes(layout.arena_size);
  }

  void use(const compute::Arenas& arenas) override { copy_ = copies().find(arenas.weights.data); }

  /// Nothing is built upon what is spoilt.
  void enter(const std::function<void()>& work) override {
    use_device(device_.device);
    device_.stream.check();
    work();
  }

  void stage(const compute::MicroBatch& batch, compute::Execution&) override {
    batch_ = nullptr;  // that of the last pass may be gone
    reads_batch_ = false;
    if (batch.size() == 0) return;
    batch_ = static_cast<DeviceBatch*>(batch.staged ? batch.staged : send(batch));
    batch_->begin_use(stream());
  }

  void time_layers(bool on) override { times_layers_ = on; }

  bool joins_directions() const override { return captures(); }

  void run(const compute::Execution& execution, const std::function<void()>& ops) override {
    const DeviceUpdate* const update = update_of(execution);
    if (update && update->copy() && update->copy() != copy_) {
      fail(ExitCode::internal, "a pass with an update of other weights than its program's");
    }
    const auto work = [&] {
      ops();
      if (update) update->enqueue(&facts()->update);
    };
    if (copy_) copy_->renew(stream());
    write_facts(stream(), facts_of(execution), facts());
    reads_batch_ = true;
    if (!captures()) return work();
    KnownPass& known =
        passes_[{execution.forward, execution.backward, execution.size, execution.pass.phase,
                 execution.pass.probabilities, execution.accumulate, execution.sums,
                 update ? update->number() : 0}];
    // The first time, kernels are brought to the device, which a capture may not do.
    if (!std::exchange(known.has_run, true)) return work();
    if (!known.graph) known.graph.emplace(stream(), work);
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

  void end_call() override {
    if (std::exchange(reads_batch_, false)) batch_->end_use(stream());
    device_.stream.finish_call();
  }
  void wait() override { device_.stream.synchronize(); }

 private:
  Stream stream() const { return device_.stream.get(); }
  /// Timed events have no place in a graph. Where ranks sum in passes, they must begin together:
  /// all learn in the same step which tiles were found.
  bool captures() const {
    return may_capture_ && !times_layers_ && std::ranges::all_of(trials_, &TileTrials::agreed);
  }

  PassFacts* facts() const { return facts_.as<PassFacts>(); }
  WeightCopies& copies() const { return device_.device_memory.weight_copies(); }

  static const DeviceUpdate* update_of(const compute::Execution& execution) {
    return execution.update ? static_cast<const DeviceUpdate*>(execution.update->update) : nullptr;
  }
  PassFacts facts_of(const compute::Execution& execution) const {
    const DeviceUpdate* const update = update_of(execution);
    return {.bytes = batch_->bytes,
            .moves = batch_->moves,
            .labels = batch_->labels,
            .samples = batch_->samples,
            .mixed = batch_->mixed,
            .seed = execution.pass.seed,
            .step = execution.pass.step,
            .loss_scale = execution.loss_scale,
            .update = update ? update->facts_of(execution.update->step) : UpdateFacts{}};
  }

  /// Sends images that the loader has not sent ahead.
  compute::StagedImages* send(const compute::MicroBatch& batch) {
    if (!own_) own_.emplace(device_.device, device_.device_memory, own_size_);
    moves_.clear();
    for (std::uint32_t i = 0; i < batch.labels.size(); ++i) {
      moves_.push_back(compute::whole_image(i, own_size_.image));
    }
    return own_->stage(0, batch, moves_);
  }

  ProgramDevice device_;
  WeightCopy* copy_ = nullptr;  ///< the arena's; null where it is empty
  bool may_capture_ = false, times_layers_ = false;
  DeviceBlock facts_;                                 ///< the running pass's
  std::vector<std::unique_ptr<StreamEvent>> places_;  ///< by operator
  std::vector<const TileTrials*> trials_;
  std::map<PassKind, KnownPass> passes_;
  DeviceBatch* batch_ = nullptr;  ///< the pass's
  bool reads_batch_ = false;      ///< what was enqueued since the last call ended
  compute::FeedSize own_size_;
  std::optional<DeviceFeed> own_;
  std::vector<compute::ImageMove> moves_;
};

}  // namespace

std::unique_ptr<compute::Target> make_target(const ProgramDevice& device) {
  return std::make_unique<DeviceTarget>(device);
}

}  // namespace cputrain::cuda
