#include "training/request/followed_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "loop/weights/description.h"
#include "model/normalization.h"
#include "model/weights/weight_format.h"
#include "zoo/zoo.h"

namespace cputrain::training {
namespace {

bool is_given(const TrainingFlags& flags, const std::string& name) {
  return std::ranges::any_of(flags.given, [&](const auto& each) { return each.first == name; });
}

bool says_its_network(const std::string& file) {
  return model::weight_format(file) == model::WeightFormat::safetensors &&
         model::safetensors::File(file).metadata().contains("graph");
}

bool is_built_in(const std::string& model) {
  return std::ranges::count(zoo::model_zoo(), model, &zoo::ModelEntry::name) > 0;
}

/// Only the words: other figures do not come back from text with the same bits.
void follow_normalization(TrainingFlags& flags, const model::Input& input) {
  const std::string word = model::normalization_text(input);
  const std::vector<std::string> words = model::normalization_words();
  if (flags.normalize || std::ranges::find(words, word) == words.end()) return;
  flags.normalize = input;
  flags.given.emplace_back("normalize", word);
}

}  // namespace

std::string follow_weights(TrainingFlags& flags) {
  if (flags.weights.empty() || is_given(flags, "model")) return "";
  if (!says_its_network(flags.weights)) return "";
  const loop::ModelDescription description = loop::read_description(flags.weights);
  if (!is_built_in(description.model)) return "";
  flags.model = description.model;
  flags.given.emplace_back("model", flags.model);
  if (!flags.image_size) {
    flags.image_size = description.graph.image().height;
    flags.given.emplace_back("image-size", fmt::format("{}", *flags.image_size));
  }
  follow_normalization(flags, std::get<model::Input>(description.graph.nodes()[0].layer));
  return fmt::format("--weights {}: the model is theirs, {} at {} pixels", flags.weights,
                     flags.model, *flags.image_size);
}

}  // namespace cputrain::training
