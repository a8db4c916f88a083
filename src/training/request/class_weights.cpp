#include "training/request/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "system/bounded_file.h"

namespace cputrain::training {
namespace {

constexpr const char* kBalanced = "balanced";
constexpr double kMostWeight = 1e6;
constexpr std::string_view kRemedy =
    "(every class needs its weight); write {\"NAME\": NUMBER, ...}, or use --class-weights "
    "balanced";

std::map<std::string, double> read_weights(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;
  const nlohmann::json file = system::read_json_file(path, kMostBytes, kRemedy);
  const auto wrong = [&](const std::string& what) {
    fail(ExitCode::data, "{}: {} {}", printable(path), what, kRemedy);
  };
  if (!file.is_object()) wrong("is no object of JSON");
  std::map<std::string, double> weights;
  for (const auto& [name, value] : file.items()) {
    const double weight = value.is_number() ? value.get<double>() : 0;
    if (!(weight > 0 && weight <= kMostWeight)) {
      wrong(fmt::format("the weight of {} must be a number above 0, up to {:g}", printable(name),
                        kMostWeight));
    }
    weights[name] = weight;
  }
  return weights;
}

/// "0", "1", ...
std::optional<std::size_t> label_of(std::string_view name) {
  return name == "0" || !name.starts_with('0') ? number_in<std::size_t>(name) : std::nullopt;
}

/// The file's weights by names of classes. Where all its names are numbers and none is a class,
/// they are labels, as in Keras' class_weight.
std::map<std::string, double> named(const std::map<std::string, double>& weights,
                                    std::span<const std::string> classes) {
  const bool labels = std::ranges::all_of(weights, [&](const auto& entry) {
    return label_of(entry.first) && std::ranges::find(classes, entry.first) == classes.end();
  });
  if (!labels) return weights;
  std::map<std::string, double> by_name;
  for (const auto& [name, weight] : weights) {
    const std::size_t label = *label_of(name);
    by_name[label < classes.size() ? classes[label] : name] = weight;
  }
  return by_name;
}

std::vector<double> balanced_weights(std::size_t classes, std::span<const std::int32_t> labels) {
  std::vector<double> weights(classes, 0);
  for (const std::int32_t label : labels) weights[static_cast<std::size_t>(label)] += 1;
  const auto seen =
      static_cast<double>(std::ranges::count_if(weights, [](double images) { return images > 0; }));
  for (double& weight : weights) {
    weight = weight > 0 ? static_cast<double>(labels.size()) / (seen * weight) : 1;
  }
  return weights;
}

}  // namespace

ClassWeights parse_class_weights(const std::string& text) {
  if (text == kBalanced) return {.text = text, .balanced = true};
  if (!system::is_present(text)) {
    fail(ExitCode::usage,
         "--class-weights {}: there is no such file, and the one word is balanced{}",
         printable(text), did_you_mean(text, std::vector<std::string>{kBalanced}));
  }
  return {.text = text, .by_name = read_weights(text)};
}

void check_class_weights(const ClassWeights& asked, std::span<const std::string> classes) {
  if (!asked.given() || asked.balanced) return;
  const std::map<std::string, double> by_name = named(asked.by_name, classes);
  for (const std::string& name : classes) {
    if (by_name.contains(name)) continue;
    fail(ExitCode::usage, "--class-weights {}: has no weight for the class {} {}",
         printable(asked.text), printable(name), kRemedy);
  }
  for (const auto& [name, weight] : by_name) {
    if (std::ranges::find(classes, name) != classes.end()) continue;
    fail(ExitCode::usage,
         "--class-weights {}: {} is no class of the data (its weight would be without effect); "
         "take it out, or use other data",
         printable(asked.text), printable(name));
  }
}

std::vector<double> class_weights(const ClassWeights& asked, std::span<const std::string> classes,
                                  std::span<const std::int32_t> labels) {
  if (!asked.given()) return {};
  if (asked.balanced) return balanced_weights(classes.size(), labels);
  const std::map<std::string, double> by_name = named(asked.by_name, classes);
  std::vector<double> weights;
  for (const std::string& name : classes) {
    const auto found = by_name.find(name);
    weights.push_back(found == by_name.end() ? 1 : found->second);  // of no image
  }
  return weights;
}

}  // namespace cputrain::training
