#include "cli/known_algorithms.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "core/version.h"

namespace cputrain {
namespace {

std::string key_of(const Session& session, const Graph& graph, int images) {
  const auto here = std::ranges::count(session.plan.ranks, session.place().host, &RankPlan::host);
  return fmt::format(
      "{}; {}; cputrain {}; threads {}; ranks on the node {}; images at once {}; network {:016x}",
      session.machine.cpu_model, session.backend->kernels(), kVersion, session.threads, here,
      images, shapes_fingerprint(graph));
}

}  // namespace

std::uint64_t shapes_fingerprint(const Graph& graph) {
  Fnv1a hash;
  const auto add = [&](auto number) { hash.add_number(static_cast<std::uint64_t>(number)); };
  for (const Graph::Node& node : graph.nodes()) {
    if (node.dst.height == 1 && node.dst.width == 1) continue;  // no map
    add(node.layer.index());
    for (const int src : node.src) add(src);
    for (const int extent : {node.dst.height, node.dst.width, node.dst.channels}) add(extent);
    for (const auto& parameter : node.parameters) {
      for (const auto extent : parameter.extents) add(extent);
    }
    if (const auto* pool = std::get_if<MaxPool>(&node.layer)) add(pool->size);
    add(node.frozen);
  }
  return hash.value();
}

KnownAlgorithms::KnownAlgorithms(const Session& session, const Config& config, const Graph& graph,
                                 int images)
    : session_(session), key_(key_of(session, graph, images)) {
  if (!config.kernel_cache) return;
  if (const auto file = algorithms_file()) cache_.emplace(*file);
}

void KnownAlgorithms::start(Program& program) const {
  const bool looks = session_.leads() && program.trying();
  const std::string mine = looks && cache_ ? cache_->find(key_) : "";
  const std::string known = session_.communicator->gather(mine).front();
  const bool used = !known.empty() && program.use_findings(known);
  if (!looks) return;
  say(session_, used
                    ? fmt::format("Convolutions begin with the algorithms that an earlier training "
                                  "found ({}); in epochs 2, 3, 5, 9, ... they try again",
                                  cache_->file().string())
                    : "Convolutions try their algorithms in the first steps of epochs 1, 2, 3, 5, "
                      "9, ...");
}

void KnownAlgorithms::keep(const Program& program) const {
  const std::string found = program.findings();
  if (!session_.leads() || !cache_ || found.empty() || cache_->find(key_) == found) return;
  try {
    cache_->keep(key_, found);
  } catch (const Error& error) {
    say(session_, fmt::format("warning: the algorithms found are not kept for the next training "
                              "({}); --no-kernel-cache keeps none",
                              error.what()));
  }
}

}  // namespace cputrain
