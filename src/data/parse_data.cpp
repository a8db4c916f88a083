#include "data/parse_data.h"

#include <algorithm>

#include "core/text.h"
#include "system/files.h"

namespace cputrain::data {
namespace {

constexpr const char* kCoco = "coco";
constexpr const char* kWords[] = {"cifar10", "cifar100", "idx", "inat", kCoco, kSynthetic};

}  // namespace

DataSpec parse_data_spec(const std::string& text) {
  if (text == kSynthetic) return {kSynthetic, {}};
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  if (colon == std::string::npos || std::ranges::find(kWords, word) == std::end(kWords)) {
    return {"", {text}};
  }
  const std::string rest = text.substr(colon + 1);
  if (word != kCoco) return {word, {rest}};
  const std::size_t comma = rest.find(',');  // a training file, and a validation file or none
  if (comma == std::string::npos) return {word, {rest}};
  return {word, {rest.substr(0, comma), rest.substr(comma + 1)}};
}

bool may_have_exif(const std::string& text) {
  const std::string word = parse_data_spec(text).word;
  return word != kSynthetic && !word.starts_with("cifar") && word != "idx";
}

std::string absolute_data_spec(const std::string& text) {
  DataSpec spec = parse_data_spec(text);
  if (spec.word == kSynthetic) return text;
  for (std::string& part : spec.parts) part = system::absolute_path(part);
  return (spec.word.empty() ? "" : spec.word + ":") + join(spec.parts, ",");
}

}  // namespace cputrain::data
