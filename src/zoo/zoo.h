#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/resize.h"
#include "model/graph.h"
#include "optim/learning_rate.h"
#include "optim/update_rule.h"
#include "weights/module_names.h"

namespace cputrain::zoo {

/// What the source of a model trained it with; every flag of the command line goes before it.
struct Recipe {
  int image_size;
  int classes;  ///< in the source's data; training takes those of the data at hand
  std::size_t batch;
  int epochs;
  optim::UpdateRule rule;
  double learning_rate;
  double weight_decay = 0;
  optim::Schedule schedule = optim::ConstantRate{};
  bool shuffle = true;
  bool drop_last = false;
  data::Augment augment{};
  data::Resizing resize{};
  std::string source;  ///< where the network and these figures come from
};

/// A model is a function from the image's size and the number of classes to a graph.
struct ModelEntry {
  std::string name;
  std::string file{};  ///< the path of a model file; empty for a built-in model
  std::vector<std::string> aliases{};
  std::string description;
  Recipe recipe;
  std::function<model::Graph(Shape image, int classes)> build;
  std::vector<weights::ModuleNames> modules{};  ///< what other programs call its layers

  bool built_in() const { return file.empty(); }
  /// What `--model` takes.
  const std::string& spec() const { return built_in() ? name : file; }
};

/// The built-in models.
const std::vector<ModelEntry>& model_zoo();

/// By name or alias, or a model file by its path (a name that ends in .json). Error(usage) lists
/// the names and the nearest one; Error(data) names what is wrong with a file.
std::shared_ptr<const ModelEntry> find_model(const std::string& name);

}  // namespace cputrain::zoo
