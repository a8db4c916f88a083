#include "training/weights/preprocessing.h"

#include <fmt/format.h>

#include <variant>

#include "core/text.h"
#include "model/normalization.h"

namespace cputrain::training {
namespace {

/// One thing that is done to images, and the flags that decide it.
struct Fact {
  const char *learnt, *here, *remedy, *remedy_of_packed;
  std::string (*text)(const Preprocessing&);  ///< empty where it is not known
};

constexpr Fact kFacts[] = {
    {"images of", "they are", "--image-size says how large",
     "data pack --image-size says how large",
     [](const Preprocessing& p) { return p.image ? shape_text(*p.image) : ""; }},
    {"pixels as", "they are", "--normalize says how", "--normalize says how",
     [](const Preprocessing& p) { return p.pixels ? model::normalization_text(*p.pixels) : ""; }},
    {"images resized by", "it is", "--resize and --fit say how",
     "the packed file's form; data pack --resize and --fit make another",
     [](const Preprocessing& p) { return p.resize ? data::to_text(*p.resize) : ""; }},
    {"photographs read with --exif", "it is --exif",
     "one that a camera turned lies otherwise; --exif says how",
     "the packed file's form; data pack --exif makes another",
     [](const Preprocessing& p) { return p.exif ? std::string(word_of(*p.exif)) : ""; }}};

}  // namespace

Preprocessing preprocessing_of(const loop::ModelDescription& model) {
  return {
      .image = model.graph.image(),
      .pixels = std::get<model::Input>(model.graph.nodes().front().layer),
      .resize = model.resize,
      .exif = model.data && !model.data->photographs ? std::nullopt : std::optional(model.exif)};
}

std::vector<std::string> preprocessing_differences(const std::string& weights,
                                                   const Preprocessing& then,
                                                   const Preprocessing& here) {
  std::vector<std::string> lines;
  for (const Fact& fact : kFacts) {
    const std::string theirs = fact.text(then), ours = fact.text(here);
    if (theirs.empty() || ours.empty() || theirs == ours) continue;
    lines.push_back(fmt::format("--weights {} learnt from {} {}; here {} {} ({})", weights,
                                fact.learnt, theirs, fact.here, ours,
                                here.packed ? fact.remedy_of_packed : fact.remedy));
  }
  return lines;
}

}  // namespace cputrain::training
