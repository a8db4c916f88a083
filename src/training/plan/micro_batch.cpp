#include "training/plan/micro_batch.h"

#include <algorithm>
#include <variant>

namespace cputrain::training {
namespace {

using Node = model::Graph::Node;

template <class... L>
bool is_any(const Node& node) {
  return (std::holds_alternative<L>(node.layer) || ...);
}

/// Whether its output needs memory of its own.
bool is_kept(const model::Graph& graph, std::size_t index) {
  const auto nodes = graph.nodes();
  if (is_any<model::Input, model::Relu, model::Relu6, model::Dropout, model::Flatten>(nodes[index]))
    return false;
  if (!is_any<model::Convolution>(nodes[index])) return true;
  std::size_t next = index + 1;
  while (next < nodes.size() && is_any<model::Relu>(nodes[next])) ++next;
  return next == nodes.size() || !is_any<model::MaxPool>(nodes[next]);
}

/// Weights that no cache near a core holds.
bool has_large_dense(const model::Graph& graph) {
  constexpr std::size_t kLarge = 1 << 20;
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return is_any<model::Dense>(node) && node.parameters.front().size() >= kLarge;
  });
}

/// Many ranks for each hardware thread try a large job on a small machine: what is short is memory.
bool is_crowded(const Session& session) {
  constexpr double kCrowd = 4;
  return session.plan.crowding > kCrowd;
}

}  // namespace

int micro_batch_size(const TrainingFlags& flags, const Session& session) {
  // A GPU wants many images to have work for all of its multiprocessors; its memory holds them.
  constexpr int kOfADevice = 128;
  if (session.device.chosen()) return flags.micro_batch.value_or(kOfADevice);
  // One thread gains nothing by more images. Several wait for each other once a layer, and each
  // keeps sums of gradients of its own, so they do better with more; kMost is for memory. Ranks
  // that share dense layers meet once a micro-batch, and should not too often.
  constexpr int kOfOneThread = 8, kOfEachThread = 14, kMost = 32, kOfOneOfSeveralRanks = 16;
  const int threads = session.most_threads;
  const int of_threads = threads == 1 ? kOfOneThread : std::min(kOfEachThread * threads, kMost);
  const int usual = session.communicator->size() == 1 ? of_threads : kOfOneOfSeveralRanks;
  constexpr int kImagesInACrowd = 4;
  const int standard = is_crowded(session) ? kImagesInACrowd : usual;
  return flags.micro_batch.value_or(std::max(standard, 2 * threads));
}

int training_micro_batch(const TrainingFlags& flags, const Session& session,
                         const model::Graph& graph, std::optional<std::size_t> rank_memory) {
  const int usual = micro_batch_size(flags, session);
  const bool keeps_all = session.backend->name() == "reference";
  const bool decided = flags.micro_batch || session.device.chosen() || is_crowded(session);
  if (decided || keeps_all || !has_large_dense(graph)) return usual;
  // dogcat on a core of a Zen 5: 8 images make 127 images/s, 16 128, 32 136, 64 138, 128 143.
  // Each of many threads wants some images of a pass.
  constexpr std::size_t kMost = 128, kOfEachThread = 8, kPartOfMemory = 4;
  // Weights, gradients, two states and a snapshot come first.
  const std::size_t parameters = 5 * graph.parameter_count() * sizeof(float);
  const auto left = [&](std::size_t memory) { return memory - std::min(memory, parameters); };
  std::size_t images =
      std::max(kMost, kOfEachThread * static_cast<std::size_t>(session.most_threads));
  while (images > 1 && rank_memory &&
         images * activation_bytes(graph) > left(*rank_memory) / kPartOfMemory) {
    images /= 2;
  }
  return std::max(usual, static_cast<int>(images));
}

std::size_t activation_bytes(const model::Graph& graph) {
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (is_kept(graph, i)) numbers += graph.nodes()[i].dst.size();
  }
  return 2 * numbers * sizeof(float);
}

}  // namespace cputrain::training
