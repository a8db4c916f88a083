#include "zoo/zoo.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "zoo/model_file.h"
#include "zoo/networks.h"
#include "zoo/published.h"

namespace cputrain::zoo {
namespace {

ModelEntry resnet_entry(const std::string& name, const StackDepths& depths) {
  return {
      .name = name,
      .description = "residual network with pre-activation, as in Keras",
      .recipe = {.image_size = 128,
                 .classes = 1000,
                 .batch = 256,
                 .epochs = 5,
                 .rule = optim::Sgd{},
                 .learning_rate = 0.01,
                 .resize = data::Resize::bilinear_plain,
                 .source = "supercomputing post on CIFAR-10 at 128x128; network of Keras"},
      .build = [depths](Shape image, int classes) { return resnet_v2(image, classes, depths); }};
}

/// The recipe of ImageNet's 1000 classes at 224 x 224 by SGD with momentum 0.9, 90 epochs, a rate
/// of 0.1 that falls to a tenth every 30.
Recipe imagenet_recipe(const std::string& source) {
  return {.image_size = 224,
          .classes = 1000,
          .batch = 256,
          .epochs = 90,
          .rule = optim::Sgd{.momentum = 0.9},
          .learning_rate = 0.1,
          .schedule = optim::StepDecay{.epochs = 30, .factor = 0.1},
          .augment = {.flip = true},
          .source = source};
}

ModelEntry torch_entry(const std::string& name, const std::string& description,
                       const Recipe& recipe,
                       std::function<model::Graph(Shape image, int classes)> build) {
  return {.name = name, .description = description, .recipe = recipe, .build = std::move(build)};
}

std::vector<ModelEntry> residual_entries() {
  const Recipe recipe = imagenet_recipe("torchvision's network and reference training");
  const auto build = [](const StackDepths& depths, bool wide) {
    return [=](Shape image, int classes) { return resnet(image, classes, depths, wide); };
  };
  return {torch_entry("resnet18", "residual network of 18 layers, as in torchvision", recipe,
                      build({2, 2, 2, 2}, false)),
          torch_entry("resnet50", "residual network with bottlenecks, as in torchvision", recipe,
                      build({3, 4, 6, 3}, true))};
}

std::vector<ModelEntry> mobile_entries() {
  Recipe mobile = imagenet_recipe("torchvision's network and reference training");
  mobile.epochs = 300;
  mobile.learning_rate = 0.045;
  mobile.schedule = optim::StepDecay{.epochs = 1, .factor = 0.98};
  Recipe efficient = imagenet_recipe("TensorFlow's program for TPUs, its rate for 256 images");
  efficient.epochs = 350;
  efficient.rule = optim::RmsProp{.rho = 0.9, .momentum = 0.9, .epsilon = 1e-3};
  efficient.learning_rate = 0.016;
  efficient.schedule = optim::StepDecay{.epochs = 2.4, .factor = 0.97};
  return {torch_entry("mobilenetv2", "inverted residuals of depthwise convolutions, ReLU6", mobile,
                      mobilenet_v2),
          torch_entry("efficientnet-lite0", "EfficientNet for small devices: plain ReLU6",
                      efficient, efficientnet_lite0)};
}

ModelEntry densenet_entry() {
  Recipe recipe = imagenet_recipe("torchvision's network, the paper's training");
  recipe.rule = optim::Sgd{.momentum = 0.9, .nesterov = true};
  return torch_entry("densenet121", "dense blocks, whose layers read all earlier ones", recipe,
                     densenet121);
}

std::vector<ModelEntry> plain_entries() {
  return {
      {.name = "dogcat",
       .aliases = {"paper"},
       .description = "Dogs-vs-Cats CNN: 4 convolutions with max pooling, 3 dense layers",
       .recipe = {.image_size = 256,
                  .classes = 2,
                  .batch = 128,
                  .epochs = 10,
                  .rule = optim::RmsProp{},
                  .learning_rate = 0.001,
                  .resize = data::Resize::bilinear_plain,
                  .source = "paper on synchronous SGD with large batches, Table I"},
       .build = dogcat},
      {.name = "nature7",
       .description = "iNaturalist CNN: 5 convolutions with max pooling, 2 dense layers",
       .recipe = {.image_size = 299,
                  .classes = 10,
                  .batch = 32,
                  .epochs = 50,
                  .rule = optim::Adam{},
                  .learning_rate = 0.001,
                  .drop_last = true,
                  .augment = {.shear = 0.2, .zoom = 0.2, .flip = true},
                  .resize = data::Resize::nearest,
                  .source = "W&B report on distributed training in Keras"},
       .build = nature7},
      {.name = "chips",
       .description = "potato chip CNN: 5 convolutions, 4 of them pooled, 2 dense layers, L2",
       .recipe = {.image_size = 500,
                  .classes = 2,
                  .batch = 64,
                  .epochs = 50,
                  .rule = optim::Adam{},
                  .learning_rate = 0.0005,
                  .resize = data::Resize::bilinear_plain,
                  .source = "post on training with Horovod"},
       .build = chips},
      {.name = "vgg16",
       .description = "VGG configuration D: 13 convolutions, 3 dense layers",
       .recipe = {.image_size = 224,
                  .classes = 1000,
                  .batch = 64,
                  .epochs = 10,
                  .rule = optim::Sgd{.momentum = 0.9},
                  .learning_rate = 0.01,
                  .source = "network of Keras; the recipe is ours"},
       .build = vgg16},
  };
}

}  // namespace

const std::vector<ModelEntry>& model_zoo() {
  static const std::vector<ModelEntry> zoo = [] {
    auto entries = plain_entries();
    entries.push_back(resnet_entry("resnet50v2", {3, 4, 6, 3}));
    entries.push_back(resnet_entry("resnet101v2", {3, 4, 23, 3}));
    entries.push_back(resnet_entry("resnet152v2", {3, 8, 36, 3}));
    for (const auto& made : {residual_entries(), mobile_entries()}) {
      entries.insert(entries.end(), made.begin(), made.end());
    }
    entries.push_back(densenet_entry());
    for (ModelEntry& entry : entries) entry.modules = other_names(entry.name);
    return entries;
  }();
  return zoo;
}

namespace {

bool is_called(const ModelEntry& entry, const std::string& name) {
  return entry.name == name || std::ranges::find(entry.aliases, name) != entry.aliases.end();
}

/// A file must not pass for a built-in model in run folders and weight files.
std::shared_ptr<const ModelEntry> model_of_file(const std::string& path) {
  auto entry = std::make_shared<ModelEntry>(read_model_file(path));
  for (const ModelEntry& built_in : model_zoo()) {
    if (!is_called(built_in, entry->name)) continue;
    fail(ExitCode::data, "model file " + path + ": name " + entry->name +
                             " is that of a built-in model (the two would be taken for each "
                             "other); give it another name");
  }
  return entry;
}

}  // namespace

std::shared_ptr<const ModelEntry> find_model(const std::string& name) {
  if (name.ends_with(".json")) return model_of_file(name);
  std::vector<std::string> names;
  for (const ModelEntry& entry : model_zoo()) {
    // The zoo lives as long as the program.
    if (is_called(entry, name)) return {std::shared_ptr<void>(), &entry};
    names.push_back(entry.name);
    names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
  }
  fail(ExitCode::usage, "--model " + name + " is not known; models are " + join(names, ", ") +
                            ", or a model file (.json)" + did_you_mean(name, names));
}

}  // namespace cputrain::zoo
