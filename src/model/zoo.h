#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"
#include "train/update_rule.h"

namespace cputrain {

/// What the source of a model trained it with; every flag of the command line goes before it.
struct Recipe {
  int image_size;
  std::size_t batch;
  int epochs;
  UpdateRule rule;
  double learning_rate;
  std::string source;  ///< where the network and these figures come from
};

/// A built-in model is a function from the picture's size and the number of classes to a graph.
struct ModelEntry {
  std::string name;
  std::vector<std::string> aliases;
  std::string description;
  Recipe recipe;
  Graph (*build)(Shape image, int classes);
};

const std::vector<ModelEntry>& model_zoo();

/// By name or alias; Error(usage) lists the names and the nearest one.
const ModelEntry& find_model(std::string_view name);

/// Ends the network with the head for this many classes: two give one logit with a sigmoid (class
/// 1 against class 0), more give a softmax.
void add_classifier(Graph&, int classes);

}  // namespace cputrain
