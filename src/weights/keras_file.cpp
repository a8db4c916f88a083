#include "weights/keras_file.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/json_text.h"
#include "core/text.h"

namespace cputrain::weights {
namespace {

constexpr const char *kAttributes = "attributes", *kUnread = "unread", *kConfig = "config";

using nlohmann::json;

}  // namespace

bool is_of_no_layer(std::string_view path) {
  const std::vector<std::string> parts = split(path, '/');
  return std::ranges::any_of(parts, [](const std::string& part) {
    return part == "optimizer" || part == "optimizer_weights" || part == "metrics" ||
           part.starts_with("seed_generator");
  });
}

ReadKeras read_once(ReadKeras read) {
  return [read = std::move(read),
          last = std::make_shared<std::optional<KerasFile>>()](const std::filesystem::path& path) {
    if (!*last || (*last)->path != path) last->emplace(read(path));
    return **last;
  };
}

safetensors::Metadata to_metadata(const KerasTexts& texts) {
  return {{kAttributes, json_text(nlohmann::json(texts.attributes))},
          {kUnread, json_text(nlohmann::json(texts.unread))},
          {kConfig, texts.config}};
}

KerasTexts keras_texts(const safetensors::Metadata& metadata) {
  try {
    KerasTexts texts;
    parse_strict_json(metadata.at(kAttributes)).get_to(texts.attributes);
    parse_strict_json(metadata.at(kUnread)).get_to(texts.unread);
    texts.config = metadata.at(kConfig);
    return texts;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("has texts that make no sense: ") + error.what());
  }
}

const json& keras_member(const json& object, const char* key) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string keras_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool is_keras_operation(const json& entry) {
  const std::string kind = keras_text(keras_member(entry, "class_name"));
  const std::string module = keras_text(keras_member(entry, "module"));
  return kind == "Lambda" || kind == "TFOpLambda" || kind == "SlicingOpLambda" ||
         (says_keras_class(entry) && module.find(".ops.") != std::string::npos);
}

bool says_keras_class(const json& entry) {
  const std::string module = keras_text(keras_member(entry, "module"));
  return module.starts_with("keras.") || module.starts_with("tf_keras.");
}

std::optional<int> keras_number(const json& value, int least) {
  constexpr std::int64_t kMost = 16384;
  if (!value.is_number_integer()) return {};
  const auto number = value.get<std::int64_t>();
  if (number < least || number > kMost) return {};
  return static_cast<int>(number);
}

}  // namespace cputrain::weights
