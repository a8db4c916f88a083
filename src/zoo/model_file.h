#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/json_fields.h"
#include "zoo/zoo.h"

/// Networks of one's own in files, for `--model my.json`:
/// {"format": "cputrain model 1", "name": "small", "description": "...",
///  "recipe": {"image_size": 32, "classes": 10, "batch": 128, "epochs": 20,
///             "optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9,
///             "weight_decay": 0, "schedule": "cosine", "shuffle": true, "drop_last": false,
///             "augment": "flip,crop:4"},
///  "input": {"scale": 0.00392, "offset": 0}, "layers": [... as in model_json.h ...]}
/// "units": "classes" stands for the number of classes of the data. Images have the size that the
/// command line or the recipe sets.
namespace cputrain::zoo {

/// Reads and checks everything but sizes that depend on the image. Error(data) names what is wrong
/// and where.
ModelEntry read_model_file(const std::filesystem::path&);

/// The file's text for a model, its last dense layer open for any number of classes; the recipe
/// has this size and these classes. A copy of a built-in model gets "my-" before its name.
std::string model_file_text(const ModelEntry&, Shape image, int classes);

/// A recipe from a model file; what is left out has the defaults of src/zoo/README.md. `source` is
/// where it comes from, for people. Error(data).
Recipe read_recipe(const JsonFields&, const std::string& source);

/// The inverse; figures that are the rule's or the recipe's defaults are left out.
nlohmann::ordered_json recipe_json(const Recipe&);

}  // namespace cputrain::zoo
