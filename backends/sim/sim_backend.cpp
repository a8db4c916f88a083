#include "backends/sim/sim_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "backends/sim/sim_program.h"
#include "core/casts.h"

namespace cputrain::sim {
namespace {

double bytes_of(const Array& array) { return to_double(array.bytes().size()); }

}  // namespace

/// Costs of every graph that was compiled; programs borrow them.
struct SimBackend::Parts {
  SimulatedCore core;
  LayerCosts plain;  ///< without a graph: for what is not a layer
  std::list<LayerCosts> of_graphs;
};

SimBackend::SimBackend(const simulation::SimulationJob& job, int rank, int local_rank,
                       int local_size)
    : job_(job),
      local_rank_(local_rank),
      of_node_{local_size, job.threads},
      facts_{.name = "simulated",
             .description = fmt::format("simulated cores of {} by costs of {}", job.platform.name,
                                        job.costs.cpu)} {
  LayerCosts plain(model::Graph({1, 1, 1}), job.platform, job.costs, local_rank_, of_node_);
  parts_ = std::make_unique<Parts>(
      Parts{SimulatedCore(plain.noise(), job.seed, rank, job.threads), std::move(plain), {}});
}

SimBackend::~SimBackend() = default;

std::unique_ptr<compute::Program> SimBackend::compile(const model::Graph& graph,
                                                      const compute::CompileOptions& options,
                                                      const compute::ArenaSource& arenas) {
  const LayerCosts& costs =
      parts_->of_graphs.emplace_back(graph, job_.platform, job_.costs, local_rank_, of_node_);
  return std::make_unique<SimProgram>(graph, options, arenas, costs, parts_->core);
}

std::unique_ptr<compute::Update> SimBackend::make_update(const optim::UpdatePlan& plan) {
  return compute::make_update_by_slices(
      *this, plan, [this](const optim::UpdateStep& step, double, const optim::UpdateSlice& slice) {
        // The gradient is read, weights and state are read and written.
        const double passes = 3 + 2 * optim::state_arrays(step.rule);
        parts_->core.work(parts_->plain.update_seconds(to_double(slice.weights.size)),
                          passes * bytes_of(slice.weights));
      });
}

void SimBackend::change_gradients(const optim::GradientOperation&,
                                  const optim::UpdateSlice& slice) {
  constexpr double kPasses = 3;
  move_memory(kPasses * bytes_of(slice.gradients));
}

void SimBackend::sum(std::span<const Array> src, const Array& dst) {
  if (src.size() == 1 && src[0].data == dst.data) return;  // it is its own sum
  const double bytes = to_double(src.size() + 1) * bytes_of(dst);
  parts_->core.work(parts_->plain.sum_seconds(bytes), bytes);
}

compute::Pending<std::vector<double>> SimBackend::block_norms(
    std::span<const compute::ArenaPart> parts) {
  for (const compute::ArenaPart& part : parts) move_memory(bytes_of(part.values));
  return std::vector<double>(compute::norm_blocks(parts));
}

double SimBackend::memory_stall() const { return parts_->core.memory_stall(); }

}  // namespace cputrain::sim
