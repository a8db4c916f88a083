#include "checkpoint/earlier_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/exif.h"
#include "data/resize.h"

namespace cputrain::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

/// Null where there is no such object.
Json* object_in(Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_object() ? &*found : nullptr;
}

void split_best(Json& progress) {
  Json* const best = object_in(progress, "best");
  if (best == nullptr || !best->contains("waited") || !best->contains("loss")) return;
  progress["patience"] = {{"loss", best->at("loss")}, {"waited", best->at("waited")}};
  progress["best"].erase("waited");
}

void complete(Json& training, const Json& epochs) {
  for (const char* hash : {"network", "data"}) {
    if (training.contains(hash) && training[hash].is_string()) {
      training[hash] = fmt::format("({})", training[hash].get<std::string>());
    }
  }
  training["classes"] = nullptr;  // not known
  training["exif"] = word_of(data::Exif::ignore);
  training["end"] = {{"epochs", epochs}};
}

}  // namespace

void name_resizing(Json& training) {
  if (training.contains("fit") || !training.contains("resize")) return;
  const auto& word = training["resize"];
  const auto way =
      word.is_string() ? value_named<data::Resize>(word.get<std::string>()) : std::nullopt;
  if (!way) return;
  training["resize"] = word_of(data::earlier_resize(*way));
  training["fit"] = to_text(data::Fit{});
}

void bring_up_to_date(Json& state) {
  if (Json* const progress = object_in(state, "progress")) split_best(*progress);
  Json* const training = object_in(state, "training");
  if (training != nullptr && state.contains("epochs")) complete(*training, state["epochs"]);
  state["format"] = kStateFormat;
}

}  // namespace cputrain::checkpoint
