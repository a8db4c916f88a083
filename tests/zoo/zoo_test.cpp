#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "model/rewrite.h"
#include "model/summary.h"
#include "nlohmann/json.hpp"
#include "tests/support/refusal.h"

namespace cputrain::zoo {
namespace {

// The paper's Table I; parameters and MACs worked out by hand from it.
TEST(Dogcat, IsThePapersNetwork) {
  const model::Graph graph = find_model("dogcat")->build({256, 256, 3}, 2);
  EXPECT_EQ(graph.parameter_count(), 13'217'985u);
  std::vector<Shape> pooled;
  for (const auto& node : graph.nodes()) {
    if (std::holds_alternative<model::MaxPool>(node.layer)) pooled.push_back(node.dst);
  }
  EXPECT_EQ(pooled,
            (std::vector<Shape>{{127, 127, 32}, {62, 62, 64}, {30, 30, 128}, {14, 14, 128}}));
  EXPECT_EQ(graph.back().dst, (Shape{1, 1, 1}));
  const double macs = 254.0 * 254 * 32 * 27 + 125.0 * 125 * 64 * 288 + 60.0 * 60 * 128 * 576 +
                      28.0 * 28 * 128 * 1152 + 25088.0 * 512 + 512.0 * 256 + 256;
  EXPECT_EQ(model::summary_json(graph)["macs_per_image"], macs);
  EXPECT_EQ(graph.training_flops(), 2 * (3 * macs - 254.0 * 254 * 32 * 27));
}

TEST(Dogcat, TakesMoreClassesAndOtherSizes) {
  const model::Graph ten = find_model("paper")->build({64, 64, 3}, 10);
  EXPECT_TRUE(std::holds_alternative<model::SoftmaxCrossEntropy>(ten.back().layer));
  EXPECT_EQ(ten.back().dst.channels, 10);
  // 64 -> 62/31 -> 29/14 -> 12/6 -> 4/2: the dense layer reads 2x2x128.
  EXPECT_EQ(ten.parameter_count(),
            896u + 18496 + 73856 + 147584 + 512 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10);
  EXPECT_NO_THROW(find_model("dogcat")->build({46, 46, 3}, 2));  // the smallest that leaves a pixel
  EXPECT_THROW(find_model("dogcat")->build({45, 45, 3}, 2), Error);
}

TEST(WithDropout, ChangesEveryRateAndNothingElse) {
  const model::Graph graph = model::with_dropout(find_model("dogcat")->build({64, 64, 3}, 2), 0.0f);
  int layers = 0;
  for (const auto& node : graph.nodes()) {
    if (const auto* dropout = std::get_if<model::Dropout>(&node.layer)) {
      EXPECT_EQ(dropout->rate, 0.0f);
      ++layers;
    }
  }
  EXPECT_EQ(layers, 2);
}

TEST(FindModel, NamesTheNearest) {
  const std::string text = testing::refused(ExitCode::usage, [&] { find_model("dogcart"); });
  EXPECT_NE(text.find("did you mean dogcat"), std::string::npos);
}

TEST(SummaryText, ListsEveryLayerAndTheTotal) {
  const model::Graph graph = find_model("dogcat")->build({256, 256, 3}, 2);
  const std::string text = model::summary_text(graph);
  for (const auto& node : graph.nodes()) EXPECT_NE(text.find(node.name), std::string::npos);
  EXPECT_NE(text.find("Total params: 13,217,985"), std::string::npos);
  EXPECT_NE(text.find("52.9 MB"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::zoo
