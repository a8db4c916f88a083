#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "data/exif.h"
#include "data/resize.h"
#include "loop/weights/description.h"
#include "model/layer.h"

/// What is done to images before a network sees them, beside what was done where its weights learnt
/// from them: another size, other numbers or other pixels cost accuracy, and nothing else shows it.
namespace cputrain::training {

/// A member is nothing where it is not known or changes nothing.
struct Preprocessing {
  std::optional<Shape> image{};
  std::optional<model::Input> pixels{};
  std::optional<data::Resizing> resize{};
  std::optional<data::Exif> exif{};
  bool packed = false;  ///< a file has the images resized and turned already
};

/// What a network did that a file of weights describes.
Preprocessing preprocessing_of(const loop::ModelDescription&);

/// "--weights FILE learnt from ...; here it is ... (--FLAG says how)", for each member that both
/// know and that differs.
std::vector<std::string> preprocessing_differences(const std::string& weights,
                                                   const Preprocessing& then,
                                                   const Preprocessing& here);

}  // namespace cputrain::training
