#include "model/weights/keras_file.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/json_text.h"
#include "core/text.h"

namespace cputrain::model {
namespace {

constexpr const char *kAttributes = "attributes", *kUnread = "unread", *kConfig = "config";

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

}  // namespace cputrain::model
