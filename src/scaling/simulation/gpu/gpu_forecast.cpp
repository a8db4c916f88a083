#include "scaling/simulation/gpu/gpu_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "scaling/cells/explanation.h"

namespace cputrain::simulation {
namespace {

double percent(double part, double whole) { return 100 * part / whole; }

/// Seconds of a reduce-scatter and an all-gather over n.
double ring_seconds(int n, double hop, double bytes, double bytes_per_second) {
  const double steps = 2.0 * (n - 1);
  return steps * hop + steps / n * bytes / bytes_per_second;
}

}  // namespace

double sum_seconds(const Platform& platform, int gpus, double bytes) {
  if (gpus == 1) return 0;
  const GpuNode& node = *platform.gpus;
  const int nodes = nodes_used(platform, gpus);
  double seconds = 1e-6 * node.sum_us +
                   ring_seconds(gpus / nodes, 1e-6 * node.hop_us, bytes, 1e9 * node.ring_gbs);
  if (nodes > 1) {
    const double network = 1e9 / 8 * platform.network_gbps * platform.network_efficiency;
    seconds += ring_seconds(nodes, 1e-6 * platform.network_latency_us, bytes, network);
  }
  return seconds;
}

double end_of_sums(const std::vector<double>& ready, const std::vector<double>& seconds) {
  double end = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) end = std::max(end, ready[i]) + seconds[i];
  return end;
}

GpuForecast::GpuForecast(Platform platform, GpuCostKind kind, GpuStepCosts costs,
                         const model::Graph& graph, const GpuRun& run)
    : platform_(std::move(platform)),
      kind_(kind),
      costs_(std::move(costs)),
      run_(run),
      flops_per_image_(graph.training_flops()),
      buckets_(training::gradient_buckets(graph, static_cast<std::size_t>(run.bucket_bytes))) {
  for (const training::GradientBucket& bucket : buckets_) gradient_bytes_ += bucket.bytes;
}

std::string GpuForecast::obstacle(const cells::Cell& cell) const {
  const int of_node = platform_.gpus->per_node;
  if (cell.ranks > platform_.most_ranks()) {
    return fmt::format("{} has {} ({} x {})", platform_.name,
                       counted(platform_.most_ranks(), "GPU"), platform_.nodes, of_node);
  }
  if (cell.ranks > of_node && cell.ranks % of_node != 0) {
    return fmt::format("{} GPUs do not fill nodes of {}, and sums over uneven nodes are not known",
                       cell.ranks, of_node);
  }
  if (cell.batch < static_cast<std::size_t>(cell.ranks)) {
    return fmt::format("a batch of {} leaves some of {} GPUs without an image", cell.batch,
                       cell.ranks);
  }
  return costs_.obstacle(static_cast<int>((cell.batch - 1) / cell.ranks + 1));
}

std::vector<double> GpuForecast::ready_of(const GpuStep& step) const {
  // Seconds at which each node's backward of the last micro-batch ends.
  std::vector<double> ends(step.backward.size());
  double now = step.forward + step.other + (1 - step.last) * step.all_backward();
  for (std::size_t node = ends.size(); node-- > 0;) {
    now += step.last * step.backward[node];
    ends[node] = now;
  }
  std::vector<double> ready;
  for (const training::GradientBucket& bucket : buckets_) ready.push_back(ends[bucket.last_node]);
  return ready;
}

double GpuForecast::copy_gbs(int gpus) const {
  return std::min(platform_.core_gbs, platform_.node_gbs / of_node(gpus)) / 2;
}

double GpuForecast::send_gbs(int gpus) const {
  const GpuNode& node = *platform_.gpus;
  return std::min(node.host_gbs, node.all_host_gbs / of_node(gpus));
}

double GpuForecast::input_seconds(int images, int gpus) const {
  if (run_.images_on_device) return 0;
  const double gb = images * run_.image_bytes / 1e9;
  const double copy = gb / copy_gbs(gpus), send = gb / send_gbs(gpus);
  return run_.prefetch ? std::max(copy, send) : copy + send;
}

Budget GpuForecast::step_budget(int images, int gpus) const {
  const GpuStep step = costs_.at(images);
  const double computed = step.forward + step.other + step.all_backward();
  std::vector<double> sums;
  for (const training::GradientBucket& bucket : buckets_) {
    sums.push_back(sum_seconds(platform_, gpus, bucket.bytes));
  }
  const double summed = end_of_sums(ready_of(step), sums);
  Budget budget{.forward = step.forward,
                .backward = step.all_backward(),
                .allreduce_exposed = std::max(0.0, summed - computed),
                .optimizer = step.update,
                .other = step.other};
  const double input = input_seconds(images, gpus);
  budget.input_wait = run_.prefetch ? std::max(0.0, input - budget.known() - budget.other) : input;
  return budget;
}

cells::CellLimits GpuForecast::limits_of(int images, int gpus, const Budget& step) const {
  const GpuNode& node = *platform_.gpus;
  const double seconds = step.known() + step.other;
  const double sums = sum_seconds(platform_, gpus, gradient_bytes_);
  const int nodes = nodes_used(platform_, gpus);
  const std::string sent = fmt::format(
      "{:.3g} MB of gradients, {:.3g} ms if summed at once, over {:g} GB/s in a node{}",
      gradient_bytes_ / 1e6, 1e3 * sums, node.ring_gbs,
      nodes > 1 ? fmt::format(" and {:g} Gbit/s between {} nodes", platform_.network_gbps, nodes)
                : "");
  const bool input_first = step.input_wait > step.allreduce_exposed;
  if (input_first && step.input_wait >= cells::kWaitLimits * seconds) {
    return {"input",
            fmt::format("GPUs wait {:.0f} % of a step of {:.3g} ms for images, which the host "
                        "copies at {:.3g} GB/s for each and sends at {:.3g}{}",
                        percent(step.input_wait, seconds), 1e3 * seconds, copy_gbs(gpus),
                        send_gbs(gpus), run_.prefetch ? "" : ", when a step asks for them")};
  }
  if (!input_first && step.allreduce_exposed >= cells::kWaitLimits * seconds) {
    return {"communication",
            fmt::format("sums that backward does not hide take {:.0f} % of a step of {:.3g} ms: {}",
                        percent(step.allreduce_exposed, seconds), 1e3 * seconds, sent)};
  }
  std::string why = fmt::format(
      "a GPU computes {:.0f} % of a step of {:.3g} ms, with {} images",
      percent(seconds - step.input_wait - step.allreduce_exposed, seconds), 1e3 * seconds, images);
  if (gpus > 1) {
    why += fmt::format("; sums that backward does not hide take {:.1f} %: {}",
                       percent(step.allreduce_exposed, seconds), sent);
  }
  return {"compute", why};
}

void GpuForecast::fill(cells::Cell& cell) const {
  cell.reason = obstacle(cell);
  if (!cell.reason.empty()) return;
  const int images = static_cast<int>((cell.batch - 1) / cell.ranks + 1);
  const Budget step = step_budget(images, cell.ranks);
  // The short last step of an epoch takes about its part of a step's time.
  const auto of_epoch = static_cast<double>(run_.images_per_epoch);
  const double steps = of_epoch / static_cast<double>(cell.batch);
  cell.status =
      kind_ == GpuCostKind::predicted ? cells::CellStatus::predicted : cells::CellStatus::simulated;
  cell.budget = step * steps;
  cell.seconds_per_epoch = cell.budget->known() + cell.budget->other;
  cell.images_per_second = of_epoch / *cell.seconds_per_epoch;
  cell.gflops = flops_per_image_ * *cell.images_per_second / 1e9;
  cell.limits = limits_of(images, cell.ranks, step);
}

}  // namespace cputrain::simulation
