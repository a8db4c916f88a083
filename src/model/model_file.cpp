#include "model/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/json_text.h"
#include "core/strict_json.h"
#include "model/json_reader.h"
#include "model/model_json.h"

namespace cputrain {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "cputrain model 1";
constexpr std::uintmax_t kMaxBytes = 64 << 20;

json read_json(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& what) {
    fail(ExitCode::data, fmt::format("model file {} {} (the model cannot be built); check --model",
                                     path.string(), what));
  };
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream) refuse("cannot be read");
  if (bytes > kMaxBytes) refuse("is larger than 64 MiB");
  std::ostringstream text;
  text << stream.rdbuf();
  try {
    return parse_strict_json(text.str());
  } catch (const std::runtime_error& mistake) {
    refuse(std::string("is not valid JSON: ") + mistake.what());
  }
  return {};
}

UpdateRule read_rule(const JsonReader& r) {
  const std::string name = r.text("optimizer", "sgd");
  const auto momentum = [&](double standard) { return r.real("momentum", 0, 0.9999, standard); };
  if (name == "sgd") return Sgd{.momentum = momentum(0)};
  if (name == "rmsprop") return RmsProp{.momentum = momentum(0)};
  if (name == "lars") return Lars{.momentum = momentum(0.9)};
  if (name != "adam" && name != "lamb") {
    r.wrong("optimizer must be sgd, rmsprop, adam, lars or lamb");
  }
  if (r.has("momentum")) r.wrong("momentum does not go with " + name);
  if (name == "lamb") return Lamb{};
  return Adam{};
}

Schedule read_schedule(const JsonReader& r) {
  try {
    return parse_schedule(r.text("schedule", "constant"));
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) r.wrong(error.what());
    throw;
  }
}

Recipe read_recipe(const JsonReader& r, const std::string& source) {
  r.allow({"image_size", "classes", "batch", "epochs", "optimizer", "learning_rate", "momentum",
           "weight_decay", "schedule", "shuffle", "drop_last"});
  const UpdateRule rule = read_rule(r);
  return {.image_size = r.whole("image_size", 1, 16384, 224),
          .classes = r.whole("classes", 2, 65536, 10),
          .batch = static_cast<std::size_t>(r.whole("batch", 1, 16'777'216, 128)),
          .epochs = r.whole("epochs", 1, 1'000'000, 10),
          .rule = rule,
          .learning_rate = r.real("learning_rate", 0, 1e6, default_learning_rate(rule)),
          .weight_decay = r.real("weight_decay", 0, 1e3, 0),
          .schedule = read_schedule(r),
          .shuffle = r.flag("shuffle", true),
          .drop_last = r.flag("drop_last", false),
          .source = source};
}

ordered_json recipe_json(const Recipe& recipe) {
  ordered_json fields{{"image_size", recipe.image_size},
                      {"classes", recipe.classes},
                      {"batch", recipe.batch},
                      {"epochs", recipe.epochs},
                      {"optimizer", rule_name(recipe.rule)},
                      {"learning_rate", recipe.learning_rate}};
  if (momentum_of(recipe.rule) != 0) fields["momentum"] = momentum_of(recipe.rule);
  if (recipe.weight_decay != 0) fields["weight_decay"] = recipe.weight_decay;
  if (recipe.schedule != Schedule{}) fields["schedule"] = schedule_text(recipe.schedule);
  if (!recipe.shuffle) fields["shuffle"] = false;
  if (recipe.drop_last) fields["drop_last"] = true;
  return fields;
}

/// Run folders are called after the model.
void check_name(const std::string& name, const JsonReader& r) {
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

}  // namespace

ModelEntry read_model_file(const std::filesystem::path& path) {
  const std::string where = "model file " + path.string();
  const json file = read_json(path);
  const JsonReader r(file, where);
  r.allow({"format", "description", "recipe", "input", "layers"});
  if (r.text("format") != kFormat) r.wrong(fmt::format("format must be \"{}\"", kFormat));
  static const json nothing = json::object();
  const JsonReader recipe(r.has("recipe") ? r.field("recipe") : nothing, where + ", recipe");
  ModelEntry entry{.name = r.text("name", path.stem().string()),
                   .aliases = {},
                   .description = r.text("description", "a model file"),
                   .recipe = read_recipe(recipe, where),
                   .build = [file, where](Shape image, int classes) {
                     return graph_from_json(file, where, ModelSize{image, classes});
                   }};
  check_name(entry.name, r);
  try {
    entry.build({entry.recipe.image_size, entry.recipe.image_size, 3}, entry.recipe.classes);
  } catch (const Error& error) {
    fail(ExitCode::data, error.what());  // at its own recipe's size a network must fit
  }
  return entry;
}

std::string model_file_text(const ModelEntry& entry, Shape image, int classes) {
  ordered_json graph = to_json(entry.build(image, classes));
  open_classes(graph["layers"], classes);
  for (const char* size : {"height", "width", "channels"}) graph["input"].erase(size);
  const ordered_json file{{"format", kFormat},
                          {"name", entry.name},
                          {"description", entry.description},
                          {"recipe", recipe_json(entry.recipe)},
                          {"input", graph["input"]},
                          {"layers", graph["layers"]}};
  return json_text(file, 1) + "\n";
}

}  // namespace cputrain
