#include "weights/torch_arrays.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string_view>

#include "core/casts.h"
#include "core/error.h"
#include "tests/support/temporary_folder.h"
#include "weights/torch_arrays.h"
#include "zoo/zoo.h"

namespace cputrain::weights {
namespace {

using namespace model;
using Tensors = std::vector<safetensors::OutTensor>;

/// Every parameter counts on from the one before, so that each number of the network is another.
ExportedModel numbered(const Graph& graph) {
  return {"m", {"a", "b"}, ExportedImages{}, graph, [graph](const std::string& parameter) {
            float first = 0;
            for (const auto& node : graph.nodes()) {
              for (const auto& spec : node.parameters) {
                std::vector<float> values(spec.size());
                std::iota(values.begin(), values.end(), first);
                if (spec.name == parameter) return values;
                first += static_cast<float>(values.size());
              }
            }
            throw std::out_of_range(parameter);
          }};
}

/// Kernels, groups, rows of a flattened map, and normalization of both.
Graph network() {
  Graph graph({5, 6, 3});
  graph.add(Convolution{.filters = 4, .kernel = 3}, "conv");
  graph.add(BatchNorm{}, "norm");
  graph.add(Convolution{.filters = 8, .kernel = 2, .bias = false, .groups = 4}, "deep");
  graph.add(Flatten{}, "flat");
  graph.add(BatchNorm{}, "flat_norm");
  graph.add(Dense{5}, "first");
  graph.add(Relu{}, "relu");
  graph.add(Dense{2}, "head");
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

Graph head_alone() {
  Graph graph({5, 6, 3});
  graph.add(Flatten{}, "flat");
  graph.add(Dense{2}, "head");
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

class TorchArrays : public ::testing::Test {
 protected:
  /// The network's own export, its tensors changed.
  template <class Change>
  TensorFile written(const Graph& graph, const Change& change,
                     const safetensors::Metadata& metadata = {}) {
    Tensors tensors = torch_tensors(numbered(graph));
    change(tensors);
    const auto path = folder_.path() / "w.safetensors";
    safetensors::write(path, metadata, std::move(tensors));
    return safetensors::open(path);
  }

  void expect_whole(const Graph& graph, const WeightArrays& arrays) {
    const ExportedModel model = numbered(graph);
    for (const auto& node : graph.nodes()) {
      for (const auto& spec : node.parameters) {
        const StoredArray* array = arrays.find(spec.name);
        ASSERT_NE(array, nullptr) << spec.name;
        EXPECT_EQ(array->extents,
                  std::vector<std::size_t>(spec.extents.begin(), spec.extents.end()));
        EXPECT_EQ(array->floats(), model.values(spec.name)) << spec.name;
      }
    }
  }

 private:
  testing::TemporaryFolder folder_;
};

void nothing(Tensors&) {}

void add_counters(Tensors& tensors) {
  tensors.push_back({"norm.num_batches_tracked", {}, [] { return std::vector<float>{7}; }});
}

TEST_F(TorchArrays, ComeBackAsTheyWereExported) {
  const Graph graph = network();
  const WeightArrays said = arrays_for(written(graph, nothing, {{"layout", "torch"}}), graph);
  expect_whole(graph, said);
  const WeightArrays found = arrays_for(written(graph, add_counters), graph);
  expect_whole(graph, found);
  EXPECT_EQ(found.ignored, std::vector<std::string>{"norm.num_batches_tracked"});
  EXPECT_EQ(found.arrays.size(), 15u);
  EXPECT_TRUE(found.find("conv/kernel")->rearranged);
  EXPECT_FALSE(found.find("conv/bias")->rearranged);
}

TEST_F(TorchArrays, OurOwnLayoutIsLeftAlone) {
  const Graph graph = network();
  const WeightArrays arrays = arrays_for(
      written(graph,
              [](Tensors& tensors) {
                tensors = {{"conv/kernel", {2}, [] { return std::vector<float>{1, 2}; }}};
              }),
      graph);
  EXPECT_EQ(arrays.origin, "");
  EXPECT_EQ(arrays.find("conv/kernel")->floats(), (std::vector<float>{1, 2}));
}

TEST_F(TorchArrays, NamesByRulesAndBehindABeginning) {
  const Graph graph = network();
  const ModuleNames names{"others",
                          {{"conv", "stem"},
                           {"norm", "bn"},
                           {"deep", "body.0"},
                           {"flat_norm", "body.1"},
                           {"first", "body.2"},
                           {"head", "fc"}}};
  const auto renamed = [&](Tensors& tensors) {
    for (auto& tensor : tensors) {
      const std::size_t dot = tensor.name.rfind('.');
      tensor.name = "module." + *names.module(tensor.name.substr(0, dot)) + tensor.name.substr(dot);
    }
  };
  const WeightArrays arrays = arrays_for(written(graph, renamed), graph, std::span(&names, 1));
  expect_whole(graph, arrays);
  EXPECT_NE(arrays.origin.find("others's names"), std::string::npos);
  EXPECT_EQ(arrays.find("first/kernel")->file_name, "module.body.2.weight");
}

/// Every parameter by our name and in our layout.
Tensors our_tensors(const Graph& graph) {
  Tensors tensors;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) {
      tensors.push_back({spec.name,
                         {spec.extents.begin(), spec.extents.end()},
                         [values = numbered(graph).values(spec.name)] { return values; }});
    }
  }
  return tensors;
}

void put_behind(const std::string& beginning, Tensors& tensors) {
  for (auto& tensor : tensors) tensor.name.insert(0, beginning);
}

/// As wrappers, Lightning modules, `torch.compile` and Keras' `path` of a variable call them.
TEST_F(TorchArrays, WhatStandsBeforeAllNamesIsLeftOutAndSaid) {
  for (const char* beginning : {"module.", "model.", "_orig_mod.", "module._orig_mod.", "net.",
                                "backbone.", "sequential/", "model/sequential_1/"}) {
    for (const Graph& graph : {network(), head_alone()}) {
      const bool torch = std::string_view(beginning).ends_with('.');
      const WeightArrays arrays = arrays_for(written(graph,
                                                     [&](Tensors& tensors) {
                                                       if (!torch) tensors = our_tensors(graph);
                                                       put_behind(beginning, tensors);
                                                     }),
                                             graph);
      expect_whole(graph, arrays);
      EXPECT_EQ(arrays.origin, std::string(torch ? "PyTorch's" : "Keras'") +
                                   " layout, own names behind " + beginning);
      EXPECT_EQ(arrays.find("head/bias")->file_name,
                beginning + std::string(torch ? "head.bias" : "head/bias"));
    }
  }
}

TEST_F(TorchArrays, AnotherArrayBesideTheNetworkStaysOne) {
  const Graph graph = network();
  const auto array = [](const char* name) {
    return safetensors::OutTensor{name, {2}, [] { return std::vector<float>{1, 2}; }};
  };
  const WeightArrays torch = arrays_for(written(graph,
                                                [&](Tensors& tensors) {
                                                  put_behind("model.", tensors);
                                                  tensors.push_back(array("criterion.weight"));
                                                }),
                                        graph);
  expect_whole(graph, torch);
  EXPECT_EQ(torch.arrays.back().name, "criterion.weight");
  const WeightArrays ours = arrays_for(written(graph,
                                               [&](Tensors& tensors) {
                                                 tensors = our_tensors(graph);
                                                 put_behind("sequential/", tensors);
                                                 tensors.push_back(array("adam/rate"));
                                               }),
                                       graph);
  expect_whole(graph, ours);
  EXPECT_NE(ours.find("adam/rate"), nullptr);
}

TEST_F(TorchArrays, AHeadStandsOnANetworkWithinAnother) {
  const Graph graph = network();
  const auto all_but_head = [](Tensors& tensors) {
    for (auto& tensor : tensors) {
      if (!tensor.name.starts_with("head")) tensor.name.insert(0, "backbone.");
    }
  };
  expect_whole(graph, arrays_for(written(graph, all_but_head), graph));
  const WeightArrays none = arrays_for(written(graph,
                                               [&](Tensors& tensors) {
                                                 all_but_head(tensors);
                                                 for (auto& tensor : tensors) {
                                                   if (tensor.name == "head.bias")
                                                     tensor.name = "classifier.bias";
                                                 }
                                               }),
                                       graph);
  EXPECT_NE(none.find("conv/kernel"), nullptr);
  EXPECT_NE(none.find("head/kernel"), nullptr);
  EXPECT_EQ(none.find("head/bias"), nullptr);
}

TEST_F(TorchArrays, TwoThatMayBeMeantAreRefused) {
  const Graph graph = network();
  const auto refused = [&](const auto& change) {
    try {
      arrays_for(written(graph, change), graph);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  const auto twice = [&](const char* first, const char* second) {
    return [=](Tensors& tensors) {
      Tensors others = tensors;
      put_behind(first, tensors);
      put_behind(second, others);
      tensors.insert(tensors.end(), others.begin(), others.end());
    };
  };
  EXPECT_NE(refused(twice("student.", "teacher."))
                .find("student.head.bias and teacher.head.bias (either may be"),
            std::string::npos);
  // One network with its own names and an average of it: its own are meant.
  expect_whole(graph, arrays_for(written(graph, twice("", "ema.")), graph));
  EXPECT_NE(refused([&](Tensors& tensors) {
              const auto bias = tensors.back();
              put_behind("net.", tensors);
              tensors.push_back(bias);
            }).find("holds net." + torch_tensors(numbered(graph)).back().name + " and "),
            std::string::npos);
}

TEST_F(TorchArrays, AnIncompleteFileHasABeginningToo) {
  const Graph graph = network();
  const WeightArrays arrays = arrays_for(written(graph,
                                                 [](Tensors& tensors) {
                                                   std::erase_if(tensors, [](const auto& tensor) {
                                                     return tensor.name.starts_with("first");
                                                   });
                                                   put_behind("module.", tensors);
                                                 }),
                                         graph);
  EXPECT_NE(arrays.find("conv/kernel"), nullptr);
  EXPECT_EQ(arrays.find("first/kernel"), nullptr);
}

/// Nothing of it stands behind one beginning.
TEST_F(TorchArrays, PartsOfAnotherNetworkAreNone) {
  const Graph graph = network();
  const auto scattered = [](Tensors& tensors) {
    int block = 0;
    for (auto& tensor : tensors) tensor.name.insert(0, "layer" + std::to_string(block++) + ".");
  };
  const WeightArrays arrays = arrays_for(written(graph, scattered), graph);
  EXPECT_EQ(arrays.origin, "PyTorch's layout, unknown names");
  EXPECT_EQ(arrays.find("conv/kernel"), nullptr);
}

TEST_F(TorchArrays, AHeadOfOtherClassesHasItsOwnShape) {
  const Graph graph = network();
  const auto thousand = [](Tensors& tensors) {
    for (auto& tensor : tensors) {
      if (tensor.name != "head.weight") continue;
      tensor = {"head.weight", {3, 5, 1, 1}, [] {
                  std::vector<float> values(15);
                  std::iota(values.begin(), values.end(), 0.0f);
                  return values;
                }};
    }
  };
  const WeightArrays arrays = arrays_for(written(graph, thousand), graph);
  const StoredArray* head = arrays.find("head/kernel");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->extents, (std::vector<std::size_t>{5, 3}));  // of a 1x1 convolution, too
  EXPECT_EQ(head->floats(), (std::vector<float>{0, 5, 10, 1, 6, 11, 2, 7, 12, 3, 8, 13, 4, 9, 14}));
}

/// As timm has VGG16's: the kernel of the first dense layer covers its map, that of others a pixel.
TEST_F(TorchArrays, DenseLayersMayBeConvolutions) {
  const Graph graph = network();
  const auto as_convolutions = [&](Tensors& tensors) {
    const Shape map = graph.nodes()[3].dst;
    for (auto& tensor : tensors) {
      if (tensor.name == "first.weight") {
        tensor.extents = {5, to_size(map.channels), to_size(map.height), to_size(map.width)};
      }
      if (tensor.name == "head.weight") tensor.extents = {2, 5, 1, 1};
    }
  };
  expect_whole(graph, arrays_for(written(graph, as_convolutions), graph));
}

TEST(ModuleNames, RulesCarryNumbers) {
  const ModuleNames names{"x",
                          {{"conv{s}_block{b}_{i}_conv", "layer{s-1}.{b-1}.conv{i}"},
                           {"stem", "conv1"},
                           {"n{a}", "m{a+1}"}}};
  EXPECT_EQ(names.module("conv2_block10_3_conv"), "layer1.9.conv3");
  EXPECT_EQ(names.module("stem"), "conv1");
  EXPECT_EQ(names.module("n9"), "m10");
  for (const char* other : {"stem1", "conv_block1_1_conv", "conv2_block1_1_con", "n", "n-1", ""}) {
    EXPECT_EQ(names.module(other), std::nullopt) << other;
  }
}

TEST(ModuleNames, OlderFilesOfDenseNetHaveAPointMore) {
  for (const zoo::ModelEntry& entry : zoo::model_zoo()) {
    if (entry.name != "densenet121") continue;
    const auto older = entry.modules.front();
    EXPECT_EQ(older.module("features.denseblock1.denselayer1.norm1"),
              "features.denseblock1.denselayer1.norm.1");
    EXPECT_EQ(older.module("features.denseblock4.denselayer16.conv2"),
              "features.denseblock4.denselayer16.conv.2");
    EXPECT_EQ(older.module("features.norm5"), "features.norm5");
    EXPECT_EQ(older.module("features.transition1.norm"), "features.transition1.norm");
    return;
  }
  FAIL() << "there is no densenet121";
}

/// A layer that a rule forgot would begin with random numbers.
TEST(ModuleNames, OfBuiltInNetworksNameEveryLayerOnce) {
  int checked = 0;
  for (const zoo::ModelEntry& entry : zoo::model_zoo()) {
    for (const ModuleNames& names : entry.modules) {
      const int side = entry.recipe.image_size;
      std::set<std::string> modules;
      std::size_t layers = 0;
      const Graph graph = entry.build({side, side, 3}, 10);
      for (const auto& node : graph.nodes()) {
        if (node.parameters.empty()) continue;
        ++layers;
        const auto module = names.module(node.name);
        ASSERT_TRUE(module) << entry.name << " " << names.source << " " << node.name;
        modules.insert(*module);
      }
      EXPECT_EQ(modules.size(), layers) << entry.name << " " << names.source;
      ++checked;
    }
  }
  EXPECT_GE(checked, 3);
}

}  // namespace
}  // namespace cputrain::weights
