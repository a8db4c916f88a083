// Where images of annotations are looked for, and what is said of their categories.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "datasets/open.h"
#include "tests/datasets/made_files.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

using Json = nlohmann::ordered_json;

/// Names only, as COCO has them; file N.jpg is image N of category 1 + N % 2.
Json plain_annotations(int first, int count) {
  Json json{{"images", Json::array()},
            {"annotations", Json::array()},
            {"categories", {{{"id", 1}, {"name", "cat"}}, {{"id", 2}, {"name", "dog"}}}}};
  for (int id = first; id < first + count; ++id) {
    json["images"].push_back({{"id", id}, {"file_name", std::to_string(id) + ".jpg"}});
    json["annotations"].push_back({{"image_id", id}, {"category_id", 1 + id % 2}});
  }
  return json;
}

class AnnotationPlaces : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_bytes(folder_.path() / name, bytes_of(text));
    return (folder_.path() / name).string();
  }
  std::string path() const { return folder_.path().string(); }
  void add(const std::string& name) { write_bytes(folder_.path() / name, Bytes{}); }
  std::vector<std::string> names(const std::string& spec) {
    source_ = open_data({.spec = spec, .validation_split = 0});
    std::vector<std::string> names;
    for (std::size_t i = 0; i < source_.dataset->size(); ++i) {
      names.push_back(std::filesystem::path(source_.dataset->name(i))
                          .lexically_normal()
                          .lexically_relative(folder_.path().lexically_normal())
                          .string());
    }
    return names;
  }
  std::string message(const std::string& spec) {
    return testing::refusal_of(ExitCode::data, [&] { open_data({.spec = spec}); });
  }

  testing::TemporaryFolder folder_;
  data::DataSource source_;
};

TEST_F(AnnotationPlaces, ImagesAreFoundAsCocoIsUnpacked) {
  using Names = std::vector<std::string>;
  struct Case {
    std::string train, validation, first, last;
  };
  // Both files name 3.jpg, which is another image in each part.
  for (const auto& [train, validation, first, last] : std::vector<Case>{
           {"a/annotations/instances_train2017.json", "a/annotations/instances_val2017.json",
            "a/train2017/2.jpg", "a/val2017/3.jpg"},
           {"b/annotations/train.json", "b/annotations/val.json", "b/images/train/2.jpg",
            "b/images/val/3.jpg"},
           {"c/annotations/train.json", "c/annotations/val.json", "c/images/2.jpg",
            "c/images/3.jpg"},
           {"d/train/_annotations.coco.json", "d/valid/_annotations.coco.json", "d/train/2.jpg",
            "d/valid/3.jpg"},
           {"e/train.json", "e/val.json", "e/2.jpg", "e/3.jpg"},
           {"f/train.json", "f/val.json", "f/train/2.jpg", "f/val/3.jpg"},
           {"g/train.json", "g/val.json", "g/images/2.jpg", "g/images/3.jpg"}}) {
    SCOPED_TRACE(train);
    const std::string train_folder = std::filesystem::path(first).parent_path();
    const std::string val_folder = std::filesystem::path(last).parent_path();
    for (const int id : {2, 3}) {
      add(train_folder + "/" + std::to_string(id) + ".jpg");
      add(val_folder + "/" + std::to_string(id) + ".jpg");
    }
    const std::string one = write(train, plain_annotations(2, 2).dump());
    const std::string two = write(validation, plain_annotations(3, 1).dump());
    EXPECT_EQ(names("coco:" + one + "," + two), (Names{first, train_folder + "/3.jpg", last}));
    EXPECT_EQ(source_.validation, std::vector<std::uint32_t>{2});
    const bool beside = train_folder == std::filesystem::path(train).parent_path();
    EXPECT_EQ(source_.description.find("Images are in") == std::string::npos, beside)
        << source_.description;
  }
  // Where no image is found, they are said to be beside the file, as ever.
  const std::string lost = write("h/annotations/train.json", plain_annotations(2, 2).dump());
  EXPECT_EQ(names("coco:" + lost).front(), "h/annotations/2.jpg");
}

TEST_F(AnnotationPlaces, WhoNamesTheFolderIsToldTheFiles) {
  add("annotations/instances_val2017.json"), add("annotations/captions_train2017.json");
  add("annotations/instances_train2017.json");
  for (const int id : {2, 3}) {
    add("train2017/" + std::to_string(id) + ".jpg"), add("val2017/" + std::to_string(id) + ".jpg");
  }
  const std::string inner = path() + "/annotations/instances_";
  const std::string use = "coco:" + inner + "train2017.json," + inner + "val2017.json";
  for (const std::string& spec : {path(), path() + "/", path() + "/annotations",
                                  path() + "/train2017", "coco:" + path(), "inat:" + path()}) {
    EXPECT_NE(message(spec).find(use), std::string::npos) << spec << ": " << message(spec);
  }
  const std::string file = inner + "train2017.json";
  EXPECT_NE(message(file).find("--data coco:" + file), std::string::npos) << message(file);
}

TEST_F(AnnotationPlaces, CategoriesWithoutImagesAreSaid) {
  Json json = plain_annotations(2, 4);
  json["categories"].push_back({{"id", 9}, {"name", "cow"}});
  const std::string file = write("train.json", json.dump());
  using Names = std::vector<std::string>;
  const data::DataSource dropped = open_data({.spec = "coco:" + file});
  EXPECT_EQ(dropped.dataset->classes(), (Names{"cat", "dog"}));
  ASSERT_EQ(dropped.warnings.size(), 1u);
  EXPECT_NE(dropped.warnings[0].find("category 'cow': it is no output"), std::string::npos);
  EXPECT_NE(dropped.warnings[0].find("--allow-empty-classes"), std::string::npos);
  const data::DataSource kept = open_data({.spec = "coco:" + file, .allow_empty_classes = true});
  EXPECT_EQ(kept.dataset->classes(), (Names{"cat", "cow", "dog"}));
  EXPECT_EQ(kept.empty_classes, Names{"cow"});
  ASSERT_EQ(kept.warnings.size(), 1u);
  EXPECT_NE(kept.warnings[0].find("'cow'"), std::string::npos);
  for (const auto sample : kept.train) EXPECT_NE(kept.dataset->label(sample), 1);
  EXPECT_TRUE(open_data({.spec = "coco:" + file, .to_evaluate = true}).warnings.empty());
  // To weights that know the class it is the data that they were trained on.
  const data::DataSource known =
      open_data({.spec = "coco:" + file, .to_evaluate = true, .known_classes = {"cow", "x"}});
  EXPECT_TRUE(known.warnings.empty());
  EXPECT_EQ(known.dataset->fingerprint(), kept.dataset->fingerprint());
  EXPECT_TRUE(open_data({.spec = "coco:" + write("two.json", plain_annotations(2, 4).dump())})
                  .warnings.empty());
  // An image for validation of such a class.
  Json other = json;
  other["annotations"][1]["category_id"] = 9;
  const std::string both = "coco:" + file + "," + write("val.json", other.dump());
  EXPECT_NE(message(both).find("or keep the class with --allow-empty-classes"), std::string::npos);
  EXPECT_EQ(open_data({.spec = both, .allow_empty_classes = true}).validation.size(), 4u);
  EXPECT_EQ(
      open_data({.spec = both, .to_evaluate = true, .known_classes = {"cow"}}).dataset->classes(),
      (Names{"cat", "cow", "dog"}));
}

TEST_F(AnnotationPlaces, NamesOfCategoriesThatAreOrLookAlike) {
  Json json = plain_annotations(2, 4);
  json["categories"].push_back({{"id", 9}, {"name", "cat"}});
  json["annotations"][0]["category_id"] = 9;
  data::DataSource source = open_data({.spec = "coco:" + write("a.json", json.dump())});
  EXPECT_EQ(source.dataset->classes().size(), 2u);
  EXPECT_NE(source.warnings.at(0).find("several categories of one name: cat"), std::string::npos);
  json["categories"][2]["name"] = "Cat\u00a0";
  source = open_data({.spec = "coco:" + write("a.json", json.dump())});
  EXPECT_EQ(source.dataset->classes().size(), 3u);
  EXPECT_NE(source.warnings.at(0).find("'Cat\\u00a0' and 'cat'"), std::string::npos)
      << source.warnings[0];
  Json other = plain_annotations(9, 2);
  other["categories"][0]["name"] = "CAT";
  const std::string train = write("train.json", plain_annotations(2, 4).dump());
  source = open_data({.spec = "coco:" + train + "," + write("val.json", other.dump())});
  EXPECT_EQ(source.dataset->classes().size(), 2u);
  EXPECT_NE(source.warnings.at(0).find("'CAT' as 'cat'"), std::string::npos) << source.warnings[0];
}

}  // namespace
}  // namespace cputrain::datasets
