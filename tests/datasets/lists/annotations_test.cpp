#include "datasets/lists/annotations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "datasets/open.h"
#include "tests/datasets/made_files.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

using Json = nlohmann::ordered_json;

/// As iNaturalist 2017 writes them, with images `first`, `first` + 1, ... of these categories.
Json annotations(int first, const std::vector<int>& categories) {
  Json json{{"info", {{"year", 2017}, {"nested", {1, {2, {3.5, nullptr, true}}}}}},
            {"images", Json::array()},
            {"licenses", {{{"id", 1}, {"url", "x"}}}},
            {"annotations", Json::array()},
            {"categories",
             {{{"id", 0}, {"name", "Danaus plexippus"}, {"supercategory", "Insecta"}},
              {{"id", 1}, {"name", "Apis mellifera"}, {"supercategory", "Insecta"}},
              {{"id", 5088}, {"name", "Ardea alba"}, {"supercategory", "Aves"}}}}};
  for (std::size_t i = 0; i < categories.size(); ++i) {
    const int id = first + static_cast<int>(i);
    const std::string name = "train_val_images/Some folder/" + std::to_string(id) + ".jpg";
    json["images"].push_back({{"license", 1},
                              {"file_name", name},
                              {"rights_holder", "A \xC3\x89 \"B\""},
                              {"height", 600},
                              {"width", 800},
                              {"id", id}});
    if (categories[i] < 0) continue;
    json["annotations"].push_back(
        {{"bbox", {1.5, 2, 3, 4}}, {"id", id}, {"image_id", id}, {"category_id", categories[i]}});
  }
  return json;
}

class AnnotationsTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_bytes(folder_.path() / name, bytes_of(text));
    return (folder_.path() / name).string();
  }
  std::string path() const { return folder_.path().string(); }
  /// The message with which a file is refused.
  std::string refusal(const std::string& text) {
    const std::string file = write("bad.json", text);
    try {
      read_annotations(file, LabelBy::category);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos);
      return error.what();
    }
    ADD_FAILURE() << "taken: " << text.substr(0, 300);
    return "";
  }
  void expect_refused(const Json& json, const std::string& says) {
    const std::string message = refusal(json.dump());
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(AnnotationsTest, InatSplitsByFileAndLabelsBySuperCategory) {
  write("train2017.json", annotations(10, {0, 5088, 1, -1, 5088}).dump());
  write("val2017.json", annotations(30, {1, 5088}).dump(1));
  write_bytes(folder_.path() / "train_val_images/Some folder/10.jpg", jpeg_of(smooth_image(8, 8)));
  const data::DataSource source = open_data({.spec = "inat:" + path()});
  const data::Dataset& data = *source.dataset;
  EXPECT_EQ(data.classes(), (std::vector<std::string>{"Aves", "Insecta"}));
  EXPECT_EQ(source.train, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(source.validation, (std::vector<std::uint32_t>{4, 5}));
  const std::vector<int> labels{1, 0, 1, 0, 1, 0};
  for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(data.label(i), labels[i]) << i;
  EXPECT_EQ(data.name(0), path() + "/train_val_images/Some folder/10.jpg");
  EXPECT_EQ(source.ignored, 1u) << "one image has no annotation";
  const data::DataSource named = open_data({.spec = "inat:" + path(), .list_unread = true});
  ASSERT_EQ(named.unread.size(), 1u);
  EXPECT_EQ(named.unread[0].path, "train_val_images/Some folder/13.jpg");
  EXPECT_EQ(named.unread[0].reason->one, "no label");
  EXPECT_NE(source.description.find("val2017.json"), std::string::npos);
  Bytes pixels(192);
  EXPECT_EQ(data.read(0, {8, 8, 3}, data::Resize::bilinear, pixels).status, data::ReadStatus::ok);
  EXPECT_EQ(data.read(1, {8, 8, 3}, data::Resize::bilinear, pixels).status,
            data::ReadStatus::unreadable);
}

TEST_F(AnnotationsTest, CocoLabelsByCategory) {
  const std::string train = write("a/train.json", annotations(1, {0, 5088, 1, 1}).dump());
  const std::string val = write("a/val.json", annotations(9, {1}).dump());
  const data::DataSource one = open_data({.spec = "coco:" + train, .validation_split = 0});
  EXPECT_EQ(one.dataset->classes(),
            (std::vector<std::string>{"Apis mellifera", "Ardea alba", "Danaus plexippus"}));
  EXPECT_EQ(one.train.size(), 4u);
  EXPECT_EQ(open_data({.spec = "coco:" + train + "," + val}).validation.size(), 1u);
  EXPECT_EQ(one.dataset->name(0), path() + "/a/train_val_images/Some folder/1.jpg");
}

TEST_F(AnnotationsTest, BalancedLimitsKeepAsManyOfEachClass) {
  std::vector<int> categories(40, 0);
  categories.insert(categories.end(), 8, 5088);
  write("train2017.json", annotations(1, categories).dump());
  const auto count = [&](bool balanced, std::size_t limit, std::uint64_t seed = 1) {
    const data::DataSource source = open_data({.spec = "inat:" + path(),
                                               .validation_split = 0,
                                               .seed = seed,
                                               .limit_train = limit,
                                               .balanced = balanced});
    std::map<int, std::size_t> counts;
    for (const auto sample : source.train) ++counts[source.dataset->label(sample)];
    return std::pair(counts, source.train);
  };
  using Counts = std::map<int, std::size_t>;
  EXPECT_EQ(count(false, 12).first, (Counts{{0, 2}, {1, 10}}));
  EXPECT_EQ(count(true, 12).first, (Counts{{0, 6}, {1, 6}}));
  EXPECT_EQ(count(true, 30).first, (Counts{{0, 8}, {1, 22}})) << "a class gives what it has";
  EXPECT_EQ(count(true, 12).second, count(true, 12).second);
  EXPECT_NE(count(true, 12).second, count(true, 12, 2).second);
}

TEST_F(AnnotationsTest, WhatIsNoJsonObject) {
  for (const char* text : {"", "[]", "3", "\"images\"", "{", "{\"images\":[", "{}}", "{\"a\":1,}",
                           "{\"images\":[]} x", "\xFF\xFE", "{\"images\":\"\xC3\"}"}) {
    refusal(text);
  }
  EXPECT_NE(refusal("{\"x\":" + std::string(100'000, '[')).find("nested deeper than 32"),
            std::string::npos);
}

template <class Change>
Json with(const Change& change) {
  Json json = annotations(1, {0, 5088});
  change(json);
  return json;
}

TEST_F(AnnotationsTest, MissingAndWrongMembers) {
  expect_refused(with([](Json& j) { j["images"][1].erase("id"); }), "no 'id'");
  expect_refused(with([](Json& j) { j["images"][1].erase("file_name"); }), "no 'file_name'");
  expect_refused(with([](Json& j) { j["categories"][0].erase("name"); }), "no 'name'");
  expect_refused(with([](Json& j) { j["annotations"][0].erase("image_id"); }), "no 'image_id'");
  expect_refused(with([](Json& j) { j["annotations"][0]["category_id"] = "0"; }), "is a text");
  expect_refused(with([](Json& j) { j["annotations"][0]["category_id"] = 0.5; }), "no whole");
  expect_refused(with([](Json& j) { j["images"][0]["id"] = nullptr; }), "null");
  expect_refused(with([](Json& j) { j["images"][0]["id"] = UINT64_MAX; }), "too large");
  expect_refused(with([](Json& j) { j["images"] = 7; }), "'images' is no list");
  expect_refused(with([](Json& j) { j["images"] = Json::object(); }), "'images' is no list");
  expect_refused(with([](Json& j) { j["images"][0] = {1, 2}; }), "no object");
  expect_refused(with([](Json& j) { j["annotations"][0] = 3; }), "no object");
}

TEST_F(AnnotationsTest, DoubledAndUnknownIds) {
  const Json good = annotations(1, {0, 5088});
  expect_refused(with([](Json& j) { j["images"][1]["id"] = 1; }), "image 1 twice");
  expect_refused(with([](Json& j) { j["categories"][1]["id"] = 0; }), "category 0 twice");
  expect_refused(with([](Json& j) { j["annotations"][0]["image_id"] = 77; }), "image 77");
  expect_refused(with([](Json& j) { j["annotations"][0]["category_id"] = 2; }), "category 2");
  expect_refused(with([](Json& j) { j["annotations"][1]["image_id"] = 1; }), "image 1 is");
  std::string twice = good.dump();
  twice.insert(1, "\"images\":[],");
  EXPECT_NE(refusal(twice).find("'images' twice"), std::string::npos);
  std::string doubled = good.dump();
  doubled.insert(doubled.find("\"file_name\""), "\"file_name\":\"a.jpg\",");
  EXPECT_NE(refusal(doubled).find("'file_name' twice"), std::string::npos);
}

TEST_F(AnnotationsTest, NamesThatLeaveTheFolder) {
  for (const std::string name :
       {"", "/etc/passwd", "../a.jpg", "a/../../b.jpg", "a/..", "a//b.jpg", "./a.jpg", "a/"}) {
    Json json = annotations(1, {0, 5088});
    json["images"][0]["file_name"] = name;
    expect_refused(json, "names the file");
  }
  Json json = annotations(1, {0, 5088});
  json["images"][0]["file_name"] = std::string("a\0.jpg", 6);
  expect_refused(json, "zero byte");
  json["images"][0]["file_name"] = std::string(5000, 'a');
  expect_refused(json, "'file_name' of more than 4,096 bytes");
}

TEST_F(AnnotationsTest, PiecesHaveLimits) {
  const auto with = [](const std::string& first) { return "{\"x\":" + first + ",\"images\":[]}"; };
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {std::string(70'000, '1'), "number"},
           {"0." + std::string(70'000, '5'), "number"},
           {std::string(70'000, ' ') + "1", "run of blanks"},
           {"[1," + std::string(70'000, '\n') + "2]", "run of blanks"},
           {"\"" + std::string(5'000'000, 'x') + "\"", "text of more than 4,194,304 bytes"},
           {"\"" + std::string(5'000'000, '\\') + "\"", "text of more than"},
           {"{\"" + std::string(5'000'000, 'k') + "\":1}", "text of more than"}}) {
    const std::string message = refusal(with(text));
    EXPECT_NE(message.find(says), std::string::npos) << message.substr(0, 300);
    EXPECT_LT(message.size(), 600u);
  }
  Json json = annotations(1, {0, 5088});
  json["categories"][0]["name"] = std::string(2'000, 'n');
  expect_refused(json, "'name' of more than 1,000 bytes");
  json = annotations(1, {0, 5088});
  json["categories"][0]["supercategory"] = std::string(2'000, 'n');
  expect_refused(json, "'supercategory' of more than 1,000 bytes");
  // A mask as COCO has them, and quotes that are escaped.
  json = annotations(1, {0, 5088});
  json["annotations"][0]["segmentation"] = {{"counts", std::string(1'000'000, '\"')}};
  EXPECT_EQ(read_annotations(write("good.json", json.dump(4)), LabelBy::category).files.size(), 2u);
}

// They are classes, too.
TEST_F(AnnotationsTest, SuperCategoriesWithoutImagesAreSaid) {
  Json inat = annotations(1, {0, 5088, 1});
  inat["categories"].push_back({{"id", 7}, {"name", "Rana"}, {"supercategory", "Amphibia"}});
  write("train2017.json", inat.dump());
  EXPECT_NE(open_data({.spec = "inat:" + path()}).warnings.at(0).find("'Amphibia'"),
            std::string::npos);
}

TEST_F(AnnotationsTest, DataThatCannotBeTrainedOn) {
  const auto error = [&](const std::string& spec) {
    return testing::refused(ExitCode::data, [&] { open_data({.spec = spec}); });
  };
  EXPECT_NE(error("inat:" + path()).find("train2017.json"), std::string::npos);
  const std::string file = write("train2017.json", annotations(1, {0, 1, 0}).dump());
  EXPECT_NE(error("inat:" + path()).find("one class"), std::string::npos);
  write("train2017.json", annotations(1, {-1}).dump());
  EXPECT_NE(error("inat:" + path()).find("labels no image"), std::string::npos);
  write("train2017.json", annotations(1, {0, 1}).dump());
  const std::string birds = write("birds.json", annotations(5, {5088}).dump());
  EXPECT_NE(error("coco:" + file + "," + birds).find("Ardea alba"), std::string::npos);
  EXPECT_NE(error("coco:" + path() + "/none.json").find("none.json"), std::string::npos);
}

TEST_F(AnnotationsTest, IdsHaveAnyOrder) {
  Json json = annotations(1, {0, 1, 5088});
  std::reverse(json["images"].begin(), json["images"].end());
  const ImageFiles files =
      read_annotations(write("any.json", json.dump()), LabelBy::category).files;
  ASSERT_EQ(files.size(), 3u);
  EXPECT_TRUE(files.path(0).ends_with("/3.jpg"));
  EXPECT_EQ(files.label(0), "Ardea alba");
  EXPECT_EQ(files.label(1), "Apis mellifera");
  EXPECT_EQ(files.label(2), "Danaus plexippus");
}

}  // namespace
}  // namespace cputrain::datasets
