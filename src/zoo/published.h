#pragma once

#include <string>
#include <vector>

#include "weights/module_names.h"

/// Weights of the built-in networks that others publish: what they call the layers, and where
/// people get them. Nothing is fetched here.
namespace cputrain::zoo {

/// Names beside those that the layers have here. The networks of torchvision have its own.
std::vector<weights::ModuleNames> other_names(const std::string& model);

/// What to type to begin with them, for people. `model` is a built-in one's name.
std::string published_text(const std::string& model);

}  // namespace cputrain::zoo
