#include "cli/algorithm_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/known_algorithms.h"
#include "core/error.h"
#include "model/rewrite.h"
#include "model/zoo.h"
#include "support/temporary_folder.h"

namespace cputrain {
namespace {

class AlgorithmCacheTest : public ::testing::Test {
 protected:
  void write(const std::string& text) const {
    std::filesystem::create_directories(cache_.file().parent_path());
    std::ofstream(cache_.file()) << text;
  }

  const TemporaryFolder folder_;
  const AlgorithmCache cache_{folder_.path() / "not there yet" / "algorithms.json"};
};

TEST_F(AlgorithmCacheTest, FindsWhatItKept) {
  EXPECT_EQ(cache_.find("a"), "");
  cache_.keep("a", "dws");
  cache_.keep("b \"quoted\" \xff", "ddd sss");
  EXPECT_EQ(cache_.find("a"), "dws");
  EXPECT_EQ(cache_.find("c"), "");
  cache_.keep("a", "www");
  EXPECT_EQ(cache_.find("a"), "www");
  const auto json = nlohmann::json::parse(std::ifstream(cache_.file()));
  EXPECT_EQ(json.at("found").size(), 2u);
  EXPECT_EQ(json.at("found").back(), nlohmann::json({{"for", "a"}, {"algorithms", "www"}}));
}

TEST_F(AlgorithmCacheTest, ForgetsTheOldest) {
  for (int i = 0; i < 300; ++i) cache_.keep(std::to_string(i), "dws");
  EXPECT_EQ(cache_.find("43"), "");  // 300 - 256 = 44 are gone
  EXPECT_EQ(cache_.find("44"), "dws");
  EXPECT_EQ(cache_.find("299"), "dws");
}

TEST_F(AlgorithmCacheTest, WhatIsNoneOfItsOwnIsEmptyAndReplaced) {
  const std::string good = R"({"for": "a", "algorithms": "dws"})";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string(R"({"found": 3})"),
        std::string(R"({"found": [3]})"), R"({"found": [)" + good + R"(, {"for": "b"}]})",
        R"({"found": [)" + good + R"(, {"for": "b", "algorithms": 3}]})",
        R"({"found": [)" + good + "]} more", std::string(100'000, '['),
        std::string("\0\xff\xfe", 3), R"({"found": [)" + good + "]}" + std::string(1 << 20, ' ')}) {
    write(text);
    EXPECT_EQ(cache_.find("a"), "") << text.substr(0, 80);
  }
  cache_.keep("b", "sss");
  EXPECT_EQ(cache_.find("b"), "sss");
  write(R"({"found": [)" + good + "]}");
  EXPECT_EQ(cache_.find("a"), "dws");  // the same without the fault
}

TEST_F(AlgorithmCacheTest, WhatIsNoFileIsNotOpened) {
  std::filesystem::create_directories(cache_.file().parent_path());
  ASSERT_EQ(::mkfifo(cache_.file().c_str(), 0600), 0);
  EXPECT_EQ(cache_.find("a"), "");  // would wait for a writer
  std::filesystem::remove(cache_.file());
  std::filesystem::create_directories(cache_.file() / "folder");
  EXPECT_EQ(cache_.find("a"), "");
  EXPECT_THROW(cache_.keep("a", "dws"), Error);
}

TEST(AlgorithmsFile, LiesWhereTheEnvironmentSays) {
  ::setenv("HOME", "/home/somebody", 1);
  ::setenv("XDG_CACHE_HOME", "/var/caches", 1);
  EXPECT_EQ(algorithms_file(), "/var/caches/cputrain/algorithms.json");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(algorithms_file(), "/home/somebody/.cache/cputrain/algorithms.json");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(algorithms_file(), "/home/somebody/.cache/cputrain/algorithms.json");
  ::unsetenv("HOME");
  EXPECT_EQ(algorithms_file(), std::nullopt);
}

TEST(ShapesFingerprint, IsOfWhatDecidesTheSpeed) {
  const auto model = find_model("dogcat");
  const Graph graph = model->build({64, 64, 3}, 2);
  const std::uint64_t here = shapes_fingerprint(graph);
  EXPECT_EQ(shapes_fingerprint(model->build({64, 64, 3}, 2)), here);
  EXPECT_EQ(shapes_fingerprint(model->build({64, 64, 3}, 7)), here);
  EXPECT_EQ(shapes_fingerprint(with_dropout(graph, 0.25f)), here);
  EXPECT_NE(shapes_fingerprint(model->build({65, 65, 3}, 2)), here);
  EXPECT_NE(shapes_fingerprint(find_model("resnet50v2")->build({64, 64, 3}, 2)), here);
  const std::vector<std::string> first{graph.nodes()[1].name};
  EXPECT_NE(shapes_fingerprint(with_frozen(graph, first)), here);
}

}  // namespace
}  // namespace cputrain
