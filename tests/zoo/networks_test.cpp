// The built-in models as their sources describe them: parameters, layers, sizes.

#include "zoo/networks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/text.h"
#include "zoo/zoo.h"

namespace cputrain::zoo {
namespace {

struct Counts {
  std::string model;
  int image, classes;
  std::size_t total, learnt;
};

class ParameterCounts : public ::testing::TestWithParam<Counts> {};

TEST_P(ParameterCounts, AreThoseOfTheSource) {
  const Counts& row = GetParam();
  const model::Graph graph = find_model(row.model)->build({row.image, row.image, 3}, row.classes);
  EXPECT_EQ(graph.parameter_count(), row.total);
  EXPECT_EQ(graph.learnt_count(), row.learnt);
}

/// A name that GoogleTest allows.
std::string plain(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

// What torchvision publishes, and timm of EfficientNet-Lite0, is learnt; moving statistics, two for
// each normalised channel, count, too.
INSTANTIATE_TEST_SUITE_P(PyTorch, ParameterCounts,
                         ::testing::Values(Counts{"resnet18", 224, 1000, 11'699'112, 11'689'512},
                                           Counts{"resnet50", 224, 1000, 25'610'152, 25'557'032},
                                           Counts{"mobilenetv2", 224, 1000, 3'538'984, 3'504'872},
                                           Counts{"efficientnet-lite0", 224, 1000, 4'694'024,
                                                  4'652'008},
                                           Counts{"densenet121", 224, 1000, 8'062'504, 7'978'856}),
                         [](const auto& test) { return plain(test.param.model); });
INSTANTIATE_TEST_SUITE_P(
    Samples, ParameterCounts,
    ::testing::Values(Counts{CPUTRAIN_SAMPLES "alexnet.json", 224, 1000, 61'100'840, 61'100'840},
                      Counts{CPUTRAIN_SAMPLES "googlenet.json", 224, 1000, 6'639'464, 6'624'904}),
    [](const auto& test) { return plain(test.param.model.substr(sizeof(CPUTRAIN_SAMPLES) - 1)); });

/// The work of an image forward, in 10^9 multiply-adds, as torchvision publishes it.
TEST(PyTorchNetworks, DoThePublishedWork) {
  for (const auto& [name, published] : {std::pair{"resnet18", 1.81},
                                        {"resnet50", 4.09},
                                        {"mobilenetv2", 0.30},
                                        {"densenet121", 2.83},
                                        {CPUTRAIN_SAMPLES "alexnet.json", 0.71},
                                        {CPUTRAIN_SAMPLES "googlenet.json", 1.50}}) {
    const model::Graph graph = find_model(name)->build({224, 224, 3}, 1000);
    double macs = 0;
    for (int i = 1; i < static_cast<int>(graph.nodes().size()); ++i) {
      macs += model::macs(graph.nodes()[static_cast<std::size_t>(i)].layer, graph.src_shape(i));
    }
    EXPECT_NEAR(macs / 1e9, published, 0.005) << name;
  }
}

/// Names of a state_dict: modules as their sources call them.
TEST(PyTorchNetworks, HaveTheNamesOfItsModules) {
  const std::map<std::string, std::vector<std::string>> expected{
      {"resnet18",
       {"conv1", "bn1", "layer1.0.conv1", "layer2.0.downsample.0", "layer2.0.downsample.1",
        "layer4.1.bn2", "fc"}},
      {"resnet50", {"layer1.0.downsample.1", "layer1.2.conv3", "layer3.5.bn3"}},
      {"mobilenetv2",
       {"features.0.0", "features.1.conv.0.0", "features.1.conv.1", "features.1.conv.2",
        "features.17.conv.1.1", "features.17.conv.3", "features.18.1", "classifier.1"}},
      {"efficientnet-lite0",
       {"conv_stem", "bn1", "blocks.0.0.conv_dw", "blocks.0.0.conv_pw", "blocks.0.0.bn2",
        "blocks.1.0.conv_pw", "blocks.6.0.conv_pwl", "blocks.5.3.bn3", "conv_head", "bn2",
        "classifier"}},
      {"densenet121",
       {"features.conv0", "features.norm0", "features.denseblock1.denselayer1.norm1",
        "features.denseblock4.denselayer16.conv2", "features.transition3.norm",
        "features.transition3.conv", "features.norm5", "classifier"}}};
  for (const auto& [name, layers] : expected) {
    const model::Graph graph = find_model(name)->build({64, 64, 3}, 10);
    for (const std::string& layer : layers) {
      EXPECT_TRUE(std::ranges::any_of(
          graph.nodes(),
          [&](const auto& node) { return node.name == layer && !node.parameters.empty(); }))
          << name << ": " << layer;
    }
  }
}

TEST(PyTorchNetworks, HaveTheirLaws) {
  const auto laws = [](const char* name) {
    std::set<std::string_view> found;
    const model::Graph graph = find_model(name)->build({64, 64, 3}, 10);
    for (const auto& node : graph.nodes()) {
      if (const auto* l = std::get_if<model::Convolution>(&node.layer)) {
        found.insert(word_of(l->init));
      } else if (const auto* dense = std::get_if<model::Dense>(&node.layer)) {
        found.insert(word_of(dense->init));
      }
    }
    return found;
  };
  using Laws = std::set<std::string_view>;
  EXPECT_EQ(laws("resnet18"), (Laws{"he_normal_out", "uniform_in"}));
  EXPECT_EQ(laws("mobilenetv2"), (Laws{"he_normal_out", "normal_hundredth"}));
  EXPECT_EQ(laws("efficientnet-lite0"), (Laws{"he_normal_group", "uniform_out"}));
  EXPECT_EQ(laws("densenet121"), (Laws{"he_normal", "uniform_in_only"}));
}

// The sources' own summaries; those of the residual networks and of vgg16 are Keras', where moving
// statistics count as parameters, but as none that learns.
INSTANTIATE_TEST_SUITE_P(
    Zoo, ParameterCounts,
    ::testing::Values(Counts{"dogcat", 256, 2, 13'217'985, 13'217'985},
                      Counts{"nature7", 299, 10, 910'922, 910'922},
                      Counts{"chips", 500, 2, 7'942'658, 7'942'658},
                      Counts{"vgg16", 224, 1000, 138'357'544, 138'357'544},
                      Counts{"resnet50v2", 224, 1000, 25'613'800, 25'568'360},
                      Counts{"resnet50v2", 128, 10, 23'585'290, 23'585'290 - 45'440},
                      Counts{"resnet50v2", 224, 2, 23'568'898, 23'568'898 - 45'440},
                      Counts{"resnet50v2", 32, 5089, 33'992'161, 33'992'161 - 45'440},
                      Counts{"resnet101v2", 224, 1000, 44'675'560, 44'577'896},
                      Counts{"resnet101v2", 128, 10, 42'647'050, 42'647'050 - 97'664},
                      Counts{"resnet101v2", 224, 2, 42'630'658, 42'630'658 - 97'664},
                      Counts{"resnet101v2", 32, 5089, 53'053'921, 53'053'921 - 97'664},
                      Counts{"resnet152v2", 224, 1000, 60'380'648, 60'236'904},
                      Counts{"resnet152v2", 128, 10, 58'352'138, 58'352'138 - 143'744},
                      Counts{"resnet152v2", 224, 2, 58'335'746, 58'335'746 - 143'744},
                      Counts{"resnet152v2", 32, 5089, 68'759'009, 68'759'009 - 143'744}),
    [](const auto& test) {
      return test.param.model + "_" + std::to_string(test.param.classes) + "_classes";
    });

/// Output and parameters of every layer of type L.
struct LayerRow {
  Shape output;
  std::size_t parameters;
  bool operator==(const LayerRow&) const = default;
};
std::ostream& operator<<(std::ostream& stream, const LayerRow& row) {
  return stream << shape_text(row.output) << ": " << row.parameters;
}

template <class L>
std::vector<LayerRow> rows(const model::Graph& graph) {
  std::vector<LayerRow> rows;
  for (const auto& node : graph.nodes()) {
    if (!std::holds_alternative<L>(node.layer)) continue;
    std::size_t count = 0;
    for (const auto& parameter : node.parameters) count += parameter.size();
    rows.push_back({node.dst, count});
  }
  return rows;
}

using Rows = std::vector<LayerRow>;

TEST(Nature7, LayersAreTheReports) {
  const model::Graph graph = find_model("nature7")->build({299, 299, 3}, 10);
  EXPECT_EQ(rows<model::Convolution>(graph), (Rows{{{297, 297, 16}, 448},
                                                   {{146, 146, 32}, 4'640},
                                                   {{71, 71, 32}, 9'248},
                                                   {{33, 33, 64}, 18'496},
                                                   {{14, 14, 128}, 73'856}}));
  EXPECT_EQ(rows<model::MaxPool>(graph), (Rows{{{148, 148, 16}, 0},
                                               {{73, 73, 32}, 0},
                                               {{35, 35, 32}, 0},
                                               {{16, 16, 64}, 0},
                                               {{7, 7, 128}, 0}}));
  EXPECT_EQ(rows<model::Dense>(graph), (Rows{{{1, 1, 128}, 802'944}, {{1, 1, 10}, 1'290}}));
  for (const auto& node : graph.nodes()) {
    if (const auto* dropout = std::get_if<model::Dropout>(&node.layer)) {
      EXPECT_EQ(dropout->rate, 0.3f);
    }
  }
  EXPECT_EQ(rows<model::Dropout>(graph).size(), 1u);
}

TEST(Chips, LayersAreThePosts) {
  const model::Graph graph = find_model("chips")->build({500, 500, 3}, 2);
  EXPECT_EQ(rows<model::Convolution>(graph), (Rows{{{500, 500, 16}, 448},
                                                   {{500, 500, 32}, 4'640},
                                                   {{250, 250, 32}, 9'248},
                                                   {{125, 125, 64}, 18'496},
                                                   {{62, 62, 64}, 36'928}}));
  EXPECT_EQ(rows<model::MaxPool>(graph),
            (Rows{{{250, 250, 32}, 0}, {{125, 125, 32}, 0}, {{62, 62, 64}, 0}, {{31, 31, 64}, 0}}));
  EXPECT_EQ(rows<model::Dropout>(graph), (Rows{{{31, 31, 64}, 0}}));  // before Flatten
  EXPECT_EQ(rows<model::Dense>(graph), (Rows{{{1, 1, 128}, 7'872'640}, {{1, 1, 2}, 258}}));
}

TEST(Chips, HasL2OnEveryKernelButTheLast) {
  const model::Graph graph = find_model("chips")->build({500, 500, 3}, 2);
  std::vector<float> kernels;
  for (const auto& node : graph.nodes()) {
    for (const auto& parameter : node.parameters) {
      if (parameter.decays) {
        kernels.push_back(parameter.l2);
      } else {
        EXPECT_EQ(parameter.l2, 0) << parameter.name;
      }
    }
  }
  const float l2 = 0.0015f;
  EXPECT_EQ(kernels, (std::vector<float>{l2, l2, l2, l2, l2, l2, 0}));
}

/// Output of the node of that name.
Shape output(const model::Graph& graph, const std::string& name) {
  for (const auto& node : graph.nodes()) {
    if (node.name == name) return node.dst;
  }
  ADD_FAILURE() << "no layer " << name;
  return {};
}

template <class L>
std::size_t count(const model::Graph& graph) {
  return rows<L>(graph).size();
}

TEST(ResNetV2, MapsHaveKerasSizes) {
  const model::Graph graph = find_model("resnet50v2")->build({224, 224, 3}, 1000);
  EXPECT_EQ(output(graph, "conv1_pad"), (Shape{230, 230, 3}));
  EXPECT_EQ(output(graph, "conv1_conv"), (Shape{112, 112, 64}));
  EXPECT_EQ(output(graph, "pool1_pad"), (Shape{114, 114, 64}));
  EXPECT_EQ(output(graph, "pool1_pool"), (Shape{56, 56, 64}));
  EXPECT_EQ(output(graph, "conv2_block2_out"), (Shape{56, 56, 256}));
  EXPECT_EQ(output(graph, "conv2_block3_out"), (Shape{28, 28, 256}));  // the stride comes last
  EXPECT_EQ(output(graph, "conv3_block3_out"), (Shape{28, 28, 512}));
  EXPECT_EQ(output(graph, "conv3_block4_out"), (Shape{14, 14, 512}));
  EXPECT_EQ(output(graph, "conv4_block5_out"), (Shape{14, 14, 1024}));
  EXPECT_EQ(output(graph, "conv4_block6_out"), (Shape{7, 7, 1024}));
  EXPECT_EQ(output(graph, "conv5_block3_out"), (Shape{7, 7, 2048}));
  EXPECT_EQ(output(graph, "post_relu"), (Shape{7, 7, 2048}));
  EXPECT_EQ(output(graph, "avg_pool"), (Shape{1, 1, 2048}));
  EXPECT_EQ(output(graph, "predictions"), (Shape{1, 1, 1000}));

  const model::Graph small = find_model("resnet50v2")->build({128, 128, 3}, 10);
  std::vector<int> heights;
  for (const char* name : {"conv1_conv", "pool1_pool", "conv2_block3_out", "conv3_block4_out",
                           "conv4_block6_out", "conv5_block3_out"}) {
    heights.push_back(output(small, name).height);
  }
  EXPECT_EQ(heights, (std::vector{64, 32, 16, 8, 4, 4}));
  EXPECT_NO_THROW(find_model("resnet152v2")->build({32, 32, 3}, 2));  // Keras' smallest
}

TEST(ResNetV2, HasAsManyLayersAsKeras) {
  struct Row {
    std::string model;
    std::size_t convolutions, norms;
    std::size_t without_top;  // parameters without the last layer
  };
  for (const Row& row :
       {Row{"resnet50v2", 53, 49, 23'564'800}, Row{"resnet101v2", 104, 100, 42'626'560},
        Row{"resnet152v2", 155, 151, 58'331'648}}) {
    const model::Graph graph = find_model(row.model)->build({224, 224, 3}, 1000);
    EXPECT_EQ(count<model::Convolution>(graph), row.convolutions) << row.model;
    EXPECT_EQ(count<model::BatchNorm>(graph), row.norms) << row.model;
    const std::size_t top = rows<model::Dense>(graph).front().parameters;
    EXPECT_EQ(graph.parameter_count() - top, row.without_top) << row.model;
  }
}

TEST(Vgg16, BlocksHaveKerasNamesAndSizes) {
  const model::Graph graph = find_model("vgg16")->build({224, 224, 3}, 1000);
  EXPECT_EQ(output(graph, "block1_pool"), (Shape{112, 112, 64}));
  EXPECT_EQ(output(graph, "block2_pool"), (Shape{56, 56, 128}));
  EXPECT_EQ(output(graph, "block3_conv3"), (Shape{56, 56, 256}));
  EXPECT_EQ(output(graph, "block4_conv3"), (Shape{28, 28, 512}));
  EXPECT_EQ(output(graph, "block5_pool"), (Shape{7, 7, 512}));
  EXPECT_EQ(
      rows<model::Dense>(graph),
      (Rows{{{1, 1, 4096}, 102'764'544}, {{1, 1, 4096}, 16'781'312}, {{1, 1, 1000}, 4'097'000}}));
  EXPECT_EQ(count<model::Convolution>(graph), 13u);
}

}  // namespace
}  // namespace cputrain::zoo
