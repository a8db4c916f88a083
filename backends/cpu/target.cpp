#include "backends/cpu/target.h"

#include <algorithm>

#include "backends/cpu/compile.h"
#include "backends/cpu/huge_memory.h"
#include "backends/cpu/kernels/parallel.h"
#include "comm/communicator.h"

namespace cputrain::cpu {
namespace {

class CpuTarget final : public compute::Target {
 public:
  CpuTarget(const compute::CompileOptions& options, int threads, const KernelChoice& kernels)
      : node_(options.node), threads_(threads), kernels_(kernels), dnnl_(make_dnnl_context()) {}

  compute::OpList make_ops(const model::Graph& graph, const compute::Planning& planning) override {
    MadeOps made = cpu::make_ops(
        graph, Planning{planning, {.dnnl = dnnl_, .threads = threads_, .kernels = kernels_}});
    frozen_end_ = made.frozen_end;
    return std::move(made.ops);
  }
  std::optional<compute::FrozenEnd> frozen_end() const override { return frozen_end_; }

  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override {
    return allocate_huge(bytes);
  }

  void enter(const std::function<void()>& work) override {
    const ThreadCount scope(threads_);
    work();
  }

  std::vector<Range> own_gradients(const compute::ParameterLayout& layout) const override {
    if (!node_) return Target::own_gradients(layout);
    const comm::NodeMemory& node = node_->node_memory();
    return compute::used_gradients(layout, node.local_rank(), node.local_size());
  }

  void clear(const Array& values) override { std::ranges::fill(values.as<float>(), 0.0f); }

 private:
  comm::Communicator* node_;
  int threads_;
  KernelChoice kernels_;
  DnnlContext dnnl_;
  std::optional<compute::FrozenEnd> frozen_end_;
};

}  // namespace

std::unique_ptr<compute::Target> make_target(const compute::CompileOptions& options, int threads,
                                             const KernelChoice& kernels) {
  return std::make_unique<CpuTarget>(options, threads, kernels);
}

}  // namespace cputrain::cpu
