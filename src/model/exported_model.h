#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// Numbers of a parameter ("conv2d/kernel") in the canonical layout.
using WeightValues = std::function<std::vector<float>(const std::string& parameter)>;

/// A trained network on its way into another program's format.
struct ExportedModel {
  std::string name;
  std::vector<std::string> classes;  ///< by label
  std::string resize;                ///< how images came to the input's size: "bilinear"
  std::string exif;                  ///< what was done with EXIF orientation before: "apply"
  Graph graph;                       ///< with the image's size and scale
  WeightValues values;               ///< every parameter of the graph
};

}  // namespace cputrain::model
