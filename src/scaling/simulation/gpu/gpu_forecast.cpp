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

double sum_seconds(const Platform& platform, const GpuGroup& group, double bytes) {
  if (group.size() == 1) return 0;
  const GpuNode& node = *platform.gpus;
  double seconds = 1e-6 * node.sum_us +
                   ring_seconds(group.of_node, 1e-6 * node.hop_us, bytes, 1e9 * node.ring_gbs);
  if (group.nodes > 1) {
    const double network = 1e9 / 8 * platform.network_gbps * platform.network_efficiency;
    seconds += ring_seconds(group.nodes, 1e-6 * platform.network_latency_us, bytes, network);
  }
  return seconds;
}

double end_of_sums(const std::vector<GpuBucket>& buckets,
                   const std::function<double(double bytes)>& seconds) {
  double end = 0;
  for (const GpuBucket& bucket : buckets) {
    end = std::max(end, bucket.ready) + seconds(bucket.bytes);
  }
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

GpuGroup GpuForecast::group_of(const cells::Cell& cell) const {
  const int nodes = nodes_used(platform_, cell.ranks);
  return {nodes, cell.ranks / nodes};
}

std::vector<GpuBucket> GpuForecast::buckets_of(const GpuStep& step) const {
  // Seconds at which each node's backward of the last micro-batch ends.
  std::vector<double> ends(step.backward.size());
  double now = step.forward + step.other + (1 - step.last) * step.all_backward();
  for (std::size_t node = ends.size(); node-- > 0;) {
    now += step.last * step.backward[node];
    ends[node] = now;
  }
  std::vector<GpuBucket> buckets;
  for (const training::GradientBucket& bucket : buckets_) {
    buckets.push_back({ends[bucket.last_node], bucket.bytes});
  }
  return buckets;
}

double GpuForecast::copy_gbs(const GpuGroup& group) const {
  return std::min(platform_.core_gbs, platform_.node_gbs / group.of_node) / 2;
}

double GpuForecast::send_gbs(const GpuGroup& group) const {
  const GpuNode& node = *platform_.gpus;
  return std::min(node.host_gbs, node.all_host_gbs / group.of_node);
}

double GpuForecast::input_seconds(int images, const GpuGroup& group) const {
  if (run_.images_on_device) return 0;
  const double gb = images * run_.image_bytes / 1e9;
  const double copy = gb / copy_gbs(group), send = gb / send_gbs(group);
  return run_.prefetch ? std::max(copy, send) : copy + send;
}

Budget GpuForecast::step_budget(int images, const GpuGroup& group) const {
  const GpuStep step = costs_.at(images);
  const double computed = step.forward + step.other + step.all_backward();
  const double summed = end_of_sums(
      buckets_of(step), [&](double bytes) { return sum_seconds(platform_, group, bytes); });
  Budget budget{.forward = step.forward,
                .backward = step.all_backward(),
                .allreduce_exposed = std::max(0.0, summed - computed),
                .optimizer = step.update,
                .other = step.other};
  const double input = input_seconds(images, group);
  budget.input_wait = run_.prefetch ? std::max(0.0, input - budget.known() - budget.other) : input;
  return budget;
}

cells::CellLimits GpuForecast::limits_of(int images, const GpuGroup& group,
                                         const Budget& step) const {
  const GpuNode& node = *platform_.gpus;
  const double seconds = step.known() + step.other;
  const double sums = sum_seconds(platform_, group, gradient_bytes_);
  const std::string sent = fmt::format(
      "{:.3g} MB of gradients, {:.3g} ms if summed at once, over {:g} GB/s in a node{}",
      gradient_bytes_ / 1e6, 1e3 * sums, node.ring_gbs,
      group.nodes > 1
          ? fmt::format(" and {:g} Gbit/s between {} nodes", platform_.network_gbps, group.nodes)
          : "");
  const bool input_first = step.input_wait > step.allreduce_exposed;
  if (input_first && step.input_wait >= cells::kWaitLimits * seconds) {
    return {"input",
            fmt::format("GPUs wait {:.0f} % of a step of {:.3g} ms for images, which the host "
                        "copies at {:.3g} GB/s for each and sends at {:.3g}{}",
                        percent(step.input_wait, seconds), 1e3 * seconds, copy_gbs(group),
                        send_gbs(group), run_.prefetch ? "" : ", when a step asks for them")};
  }
  if (!input_first && step.allreduce_exposed >= cells::kWaitLimits * seconds) {
    return {"communication",
            fmt::format("sums that backward does not hide take {:.0f} % of a step of {:.3g} ms: {}",
                        percent(step.allreduce_exposed, seconds), 1e3 * seconds, sent)};
  }
  std::string why = fmt::format(
      "a GPU computes {:.0f} % of a step of {:.3g} ms, with {} images",
      percent(seconds - step.input_wait - step.allreduce_exposed, seconds), 1e3 * seconds, images);
  if (group.size() > 1) {
    why += fmt::format("; sums that backward does not hide take {:.1f} %: {}",
                       percent(step.allreduce_exposed, seconds), sent);
  }
  return {"compute", why};
}

void GpuForecast::fill(cells::Cell& cell) const {
  cell.reason = obstacle(cell);
  if (!cell.reason.empty()) return;
  const int images = static_cast<int>((cell.batch - 1) / cell.ranks + 1);
  const GpuGroup group = group_of(cell);
  const Budget step = step_budget(images, group);
  // The short last step of an epoch takes about its part of a step's time.
  const auto of_epoch = static_cast<double>(run_.images_per_epoch);
  const double steps = of_epoch / static_cast<double>(cell.batch);
  cell.status =
      kind_ == GpuCostKind::predicted ? cells::CellStatus::predicted : cells::CellStatus::simulated;
  cell.budget = step * steps;
  cell.seconds_per_epoch = cell.budget->known() + cell.budget->other;
  cell.images_per_second = of_epoch / *cell.seconds_per_epoch;
  cell.gflops = flops_per_image_ * *cell.images_per_second / 1e9;
  cell.limits = limits_of(images, group, step);
}

}  // namespace cputrain::simulation
