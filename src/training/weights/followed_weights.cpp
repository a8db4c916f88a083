#include "training/weights/followed_weights.h"

#include <algorithm>

#include "model/normalization.h"
#include "weights/description.h"
#include "zoo/zoo.h"

namespace cputrain::training {
namespace {

bool is_built_in(const std::string& model) {
  return std::ranges::count(zoo::model_zoo(), model, &zoo::ModelEntry::name) > 0;
}

}  // namespace

std::optional<DescribedModel> described_model(const std::filesystem::path& weights) {
  if (!weights::describes_itself(weights)) return std::nullopt;
  const weights::ModelDescription description = weights::read_description(weights);
  if (!is_built_in(description.model)) return std::nullopt;
  const model::Graph& graph = description.graph;
  return DescribedModel{description.model, graph.image().height,
                        model::normalization_word(graph.input())};
}

void follow(TrainingFlags& flags, const DescribedModel& described) {
  flags.model = described.name;
  if (!flags.image_size) flags.image_size = described.image_size;
  if (!flags.normalize && !described.normalize.empty()) {
    flags.normalize = model::parse_normalization(described.normalize);
  }
}

}  // namespace cputrain::training
