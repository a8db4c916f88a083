#include "zoo/zoo.h"

#include <fmt/format.h>

#include <array>

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

std::string of_keras(const std::string& name) {
  return "https://storage.googleapis.com/tensorflow/keras-applications/resnet/" + name +
         "_weights_tf_dim_ordering_tf_kernels.h5";
}
std::string of_timm(const std::string& name) {
  return "https://huggingface.co/timm/" + name + "/resolve/main/model.safetensors";
}

/// `source`: who has the weights; `address`: where the file is; `normalize`: --normalize, where it
/// is not the network's.
std::string text_of_weights(const std::string& source, const std::string& address,
                            const std::string& normalize = "") {
  std::string text = fmt::format(" {} ({}), then --weights with the name of the file{}", source,
                                 address, normalize.empty() ? "" : " and --normalize " + normalize);
  if (address.ends_with(".pth")) {
    text += ", once it is safetensors (--weights with the pickle says how)";
  }
  return text;
}

}  // namespace

std::vector<weights::ModuleNames> other_names(const std::string& model) {
  if (model == "mobilenetv2") return {mobilenet_v2_of_timm()};
  if (model == "efficientnet-lite0") return {efficientnet_of_lukemelas()};
  if (model == "vgg16") return {vgg16_of_torchvision()};
  if (model == "densenet121") {
    return {older_densenet_of_torchvision(), densenet_of_keras("keras.applications", "conv1_"),
            densenet_of_keras("Keras 2", "conv1/")};
  }
  return {};
}

/// Weights that learnt ImageNet's 1000 classes; empty where we know of none that fit.
std::string published_text(const std::string& model) {
  const auto of_torchvision = [](const std::string& name) {
    return text_of_weights("timm (torchvision's)", of_timm(name));
  };
  if (model == "resnet18") return of_torchvision("resnet18.tv_in1k");
  if (model == "resnet50") return of_torchvision("resnet50.tv_in1k");
  if (model == "densenet121") return of_torchvision("densenet121.tv_in1k");
  if (model == "mobilenetv2") return text_of_weights("timm", of_timm("mobilenetv2_100.ra_in1k"));
  if (model == "efficientnet-lite0") {
    return text_of_weights("timm (TensorFlow's)", of_timm("tf_efficientnet_lite0.in1k"));
  }
  if (model.ends_with("v2") && model.starts_with("resnet")) {
    return text_of_weights("keras.applications", of_keras(model), "symmetric");
  }
  if (model == "vgg16") {
    return text_of_weights("torchvision", "https://download.pytorch.org/models/vgg16-397923af.pth",
                           "imagenet");
  }
  return "";
}

}  // namespace cputrain::zoo
