#pragma once

#include <string>
#include <vector>

#include "model/weights/module_names.h"

/// Weights of the built-in networks that others publish: what they call the layers, and where
/// people get them. Nothing is fetched here.
namespace cputrain::zoo {

/// Names beside those that the layers have here. The networks of torchvision have its own.
std::vector<model::ModuleNames> other_names(const std::string& model);

struct PublishedWeights {
  std::string source;     ///< "torchvision, trained on ImageNet"
  std::string address;    ///< where the file is
  std::string normalize;  ///< --normalize, where it is not the network's
};

/// Weights that learnt ImageNet's 1000 classes; empty where we know of none that fit.
std::vector<PublishedWeights> published_weights(const std::string& model);

/// What to type to begin with them, for people. `model` is a built-in one's name.
std::string published_text(const std::string& model);

}  // namespace cputrain::zoo
