#include "zoo/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_fields.h"
#include "core/json_text.h"
#include "model/model_json.h"
#include "system/bounded_file.h"
#include "system/files.h"
#include "zoo/recipe_json.h"

namespace cputrain::zoo {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "cputrain model 1";
constexpr std::uintmax_t kMaxBytes = 16 << 20;  // 10,000 layers take 3 MB

/// Run folders are called after the model.
void check_name(const std::string& name, const JsonFields& r) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (name.empty() || name.size() > 64 || !std::ranges::all_of(name, plain)) {
    r.wrong("name must be 1 to 64 letters, digits, hyphens and underscores");
  }
}

/// The layer that decides the number of classes, if it is the one before the loss.
void open_classes(ordered_json& layers, int classes) {
  if (layers.size() < 2) return;
  ordered_json& head = layers[layers.size() - 2];
  if (head["type"] == "dense" && head["units"] == classes) head["units"] = "classes";
}

/// Outputs at the recipe's own size, at which the network must fit.
int outputs_of(const ModelEntry& entry) {
  const int side = entry.recipe.image_size;
  try {
    return entry.build({side, side, 3}, entry.recipe.classes).back().dst.channels;
  } catch (const Error& error) {
    fail(ExitCode::data, error.what());
  }
}

}  // namespace

ModelEntry read_model_file(const std::filesystem::path& path) {
  const std::string where = "model file " + path.string();
  const json file =
      system::read_json_file(path, kMaxBytes, "(the model cannot be built); check --model");
  const JsonFields r = model::model_fields(file, where);
  if (r.text("format") != kFormat) r.wrong(fmt::format("format must be \"{}\"", kFormat));
  static const json nothing = json::object();
  const JsonFields recipe =
      model::model_fields(r.has("recipe") ? r.required("recipe") : nothing, where + ", recipe");
  ModelEntry entry{.name = r.text("name", path.stem().string()),
                   .spec = system::absolute_path(path.string()),
                   .aliases = {},
                   .description = r.text("description", "a model file"),
                   .recipe = read_recipe(recipe, where),
                   .build = [file, where](Shape image, int classes) {
                     return model::graph_from_json(file, where, model::ModelSize{image, classes});
                   }};
  r.end({"input", "layers"});
  check_name(entry.name, r);
  const int outputs = outputs_of(entry);
  if (!recipe.has("classes")) entry.recipe.classes = outputs == 1 ? 2 : outputs;
  return entry;
}

std::string model_file_text(const ModelEntry& entry, Shape image, int classes) {
  ordered_json graph = model::to_json(entry.build(image, classes));
  open_classes(graph["layers"], classes);
  for (const char* size : {"height", "width", "channels"}) graph["input"].erase(size);
  Recipe recipe = entry.recipe;
  recipe.image_size = image.height;
  recipe.classes = classes;
  const bool built_in = entry.spec == entry.name;
  const ordered_json file{{"format", kFormat},
                          {"name", (built_in ? "my-" : "") + entry.name},
                          {"description", entry.description},
                          {"recipe", recipe_json(recipe)},
                          {"input", graph["input"]},
                          {"layers", graph["layers"]}};
  return json_text(file, 1) + "\n";
}

}  // namespace cputrain::zoo
