#include "zoo/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "model/model_json.h"
#include "system/bounded_file.h"
#include "system/files.h"

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

optim::UpdateRule read_rule(const JsonFields& r) {
  const auto named = optim::rule_named(r.text("optimizer", "sgd"));
  if (!named) {
    r.wrong(fmt::format("optimizer must be one of {}", join(optim::rule_names(), ", ")));
  }
  optim::UpdateRule rule = *named;
  std::vector<std::string> own;
  optim::for_figures(rule, [&](const char* field, auto& figure) {
    own.emplace_back(field);
    if constexpr (std::is_same_v<decltype(figure), bool&>) {
      figure = r.truth(field, figure);
    } else {
      figure = r.real(field, 0, 1e3, figure);
    }
  });
  for (const std::string& field : optim::figure_names()) {
    if (r.has(field.c_str()) && std::ranges::find(own, field) == own.end()) {
      r.wrong(fmt::format("{} does not go with {}", field, optim::rule_name(rule)));
    }
  }
  return rule;
}

/// What `parse` makes of the text; its complaint becomes one of the file.
template <class Parse>
auto parsed(const JsonFields& r, const std::string& text, const Parse& parse) {
  try {
    return parse(text);
  } catch (const Error& error) {
    r.wrong(error.what());
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
                   .file = system::absolute_path(path.string()),
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
  const ordered_json file{{"format", kFormat},
                          {"name", (entry.built_in() ? "my-" : "") + entry.name},
                          {"description", entry.description},
                          {"recipe", recipe_json(recipe)},
                          {"input", graph["input"]},
                          {"layers", graph["layers"]}};
  return json_text(file, 1) + "\n";
}

Recipe read_recipe(const JsonFields& r, const std::string& source) {
  const optim::UpdateRule rule = read_rule(r);
  Recipe recipe{
      .image_size = r.whole("image_size", 1, 16384, 224),
      .classes = r.whole("classes", 2, 65536, 10),
      .batch = static_cast<std::size_t>(r.whole("batch", 1, 16'777'216, 128)),
      .epochs = r.whole("epochs", 1, 1'000'000, 10),
      .rule = rule,
      .learning_rate = r.real("learning_rate", 0, 1e6, optim::default_learning_rate(rule)),
      .weight_decay = r.real("weight_decay", 0, 1e3, optim::default_weight_decay(rule)),
      .schedule = parsed(r, r.text("schedule", "constant"), optim::parse_schedule),
      .shuffle = r.truth("shuffle", true),
      .drop_last = r.truth("drop_last", false),
      .augment = parsed(r, r.text("augment", "none"), data::parse_augment),
      .resize = {parsed(r, r.text("resize", std::string(word_of(data::Resizing{}.way))),
                        [](const std::string& word) {
                          return parse_word<data::Resize>("resize", word);
                        }),
                 parsed(r, r.text("fit", to_text(data::Fit{})), data::parse_fit)},
      .source = source};
  r.end();
  return recipe;
}

ordered_json recipe_json(const Recipe& recipe) {
  ordered_json fields{{"image_size", recipe.image_size},
                      {"classes", recipe.classes},
                      {"batch", recipe.batch},
                      {"epochs", recipe.epochs},
                      {"optimizer", optim::rule_name(recipe.rule)},
                      {"learning_rate", recipe.learning_rate}};
  ordered_json standard;
  const optim::UpdateRule usual = *optim::rule_named(optim::rule_name(recipe.rule));
  optim::for_figures(usual,
                     [&](const char* field, const auto& figure) { standard[field] = figure; });
  optim::for_figures(recipe.rule, [&](const char* field, const auto& figure) {
    if (standard[field] != figure) fields[field] = figure;
  });
  if (recipe.weight_decay != optim::default_weight_decay(recipe.rule))
    fields["weight_decay"] = recipe.weight_decay;
  if (recipe.schedule != optim::Schedule{})
    fields["schedule"] = optim::schedule_text(recipe.schedule);
  if (!recipe.shuffle) fields["shuffle"] = false;
  if (recipe.drop_last) fields["drop_last"] = true;
  const data::Resizing standard_resize;
  if (recipe.resize.way != standard_resize.way) fields["resize"] = word_of(recipe.resize.way);
  if (recipe.resize.fit != standard_resize.fit) fields["fit"] = to_text(recipe.resize.fit);
  if (recipe.augment != data::Augment{}) fields["augment"] = data::to_text(recipe.augment);
  return fields;
}

}  // namespace cputrain::zoo
