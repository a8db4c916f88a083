#include "tests/support/locked_backend.h"

#include <stdexcept>
#include <utility>

namespace cputrain::testing {
namespace {

using Unlocked = LockedMemory::Unlocked;

class LockedProgram final : public compute::Program {
 public:
  LockedProgram(LockedMemory& memory, std::unique_ptr<compute::Program> program)
      : memory_(memory),
        program_(std::move(program)),
        parameters_(program_->parameters().in(memory)) {}

  const compute::StoredParameters& parameters() const override { return parameters_; }
  void forward(const compute::MicroBatch& batch, const compute::Pass& pass) override {
    const Unlocked unlocked(memory_);
    sends_probabilities_ = pass.probabilities;
    program_->forward(batch, pass);
  }
  compute::Pending<compute::Tally> tally() override { return program_->tally(); }
  void backward(const compute::Backward& call) override {
    const Unlocked unlocked(memory_);
    compute::Backward unlocked_call = call;
    unlocked_call.ready = [&](std::size_t n, compute::Event* after) {
      const LockedMemory::Locked locked(memory_);
      call.ready(n, after);
    };
    program_->backward(unlocked_call);
  }
  void publish_statistics() override {
    const Unlocked unlocked(memory_);
    program_->publish_statistics();
  }
  /// As from a device, they are there only where the pass said that they would be asked for.
  std::span<const float> probabilities() override {
    if (!sends_probabilities_) throw std::logic_error("probabilities that no pass was to send");
    return program_->probabilities();
  }
  std::vector<compute::LayerTime> layer_times() const override { return program_->layer_times(); }
  compute::Tuner& tuner() override { return program_->tuner(); }
  std::size_t workspace_bytes() const override { return program_->workspace_bytes(); }
  double waited() const override { return program_->waited(); }

 private:
  LockedMemory& memory_;
  std::unique_ptr<compute::Program> program_;
  compute::StoredParameters parameters_;
  bool sends_probabilities_ = false;
};

class LockedUpdate final : public compute::Update {
 public:
  LockedUpdate(LockedMemory& memory, std::unique_ptr<compute::Update> update)
      : memory_(memory), update_(std::move(update)) {}
  void apply(const optim::UpdateStep& step) override {
    const Unlocked unlocked(memory_);
    update_->apply(step);
  }

 private:
  LockedMemory& memory_;
  std::unique_ptr<compute::Update> update_;
};

class LockedBackend final : public compute::Backend {
 public:
  LockedBackend(std::unique_ptr<compute::Backend> backend, std::optional<std::size_t> room)
      : memory_(room), backend_(std::move(backend)), facts_(backend_->facts()) {
    facts_.name = "locked";
    facts_.description = "locked memory, " + facts_.description;
  }

  const compute::BackendFacts& facts() const override { return facts_; }
  compute::Memory& memory() override { return memory_; }

  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& source) override {
    const Unlocked unlocked(memory_);
    auto program = backend_->compile(graph, options, [&](const compute::ParameterLayout& layout) {
      const LockedMemory::Locked locked(memory_);
      const compute::Arenas arenas = source(layout);
      memory_.require_own(arenas.weights);
      memory_.require_own(arenas.gradients);
      return arenas;
    });
    return std::make_unique<LockedProgram>(memory_, std::move(program));
  }
  void on_threads(int count, const std::function<void(int)>& work) override {
    backend_->on_threads(count, work);
  }
  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    for (const optim::UpdateSlice& slice : plan.slices) require_own(slice);
    return std::make_unique<LockedUpdate>(memory_, backend_->make_update(plan));
  }
  void change_gradients(const optim::GradientOperation& operation,
                        const optim::UpdateSlice& slice) override {
    require_own(slice);
    const Unlocked unlocked(memory_);
    backend_->change_gradients(operation, slice);
  }
  void sum(std::span<const Array> src, const Array& dst) override {
    for (const Array& array : src) memory_.require_own(array);
    memory_.require_own(dst);
    const Unlocked unlocked(memory_);
    backend_->sum(src, dst);
  }
  void add_products(const compute::Factors& factors, std::span<const Array> chunks, Range part,
                    const Array& sum) override {
    for (const Array& array : chunks) memory_.require_own(array);
    memory_.require_own(sum);
    const Unlocked unlocked(memory_);
    backend_->add_products(factors, chunks, part, sum);
  }
  compute::Pending<std::vector<double>> block_norms(
      std::span<const compute::ArenaPart> parts) override {
    for (const compute::ArenaPart& part : parts) memory_.require_own(part.values);
    const Unlocked unlocked(memory_);
    return backend_->block_norms(parts);
  }
  compute::Limits measure_limits(const compute::Together& together) override {
    return backend_->measure_limits(together);
  }

 private:
  void require_own(const optim::UpdateSlice& slice) const {
    memory_.require_own(slice.weights);
    memory_.require_own(slice.gradients);
    for (const Array& state : slice.state) memory_.require_own(state);
  }

  LockedMemory memory_;
  std::unique_ptr<compute::Backend> backend_;
  compute::BackendFacts facts_;
};

}  // namespace

std::unique_ptr<compute::Backend> make_locked_backend(std::unique_ptr<compute::Backend> backend,
                                                      std::optional<std::size_t> room) {
  return std::make_unique<LockedBackend>(std::move(backend), room);
}

}  // namespace cputrain::testing
