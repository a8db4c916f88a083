#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// Numbers of a parameter ("conv2d/kernel") in the canonical layout.
using WeightValues = std::function<std::vector<float>(const std::string& parameter)>;

/// How images came to the network's input, as the flags of a training say it.
struct ExportedImages {
  std::string resize;           ///< "bilinear"
  std::string fit;              ///< "crop:0.875"
  double part = 1;              ///< what a crop shows, by the shorter side
  std::string in_words;         ///< both, with figures
  std::string exif;             ///< what was done with EXIF orientation before: "apply"
  bool resized_inside = false;  ///< the exported network is to take images of any size
};

/// A trained network on its way into another program's format.
struct ExportedModel {
  std::string name;
  std::vector<std::string> classes;  ///< by label
  ExportedImages images;
  Graph graph;          ///< with the image's size and scale
  WeightValues values;  ///< every parameter of the graph
};

}  // namespace cputrain::model
