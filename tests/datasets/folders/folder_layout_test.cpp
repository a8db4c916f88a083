// Which folders are parts of a split and which are classes.
#include <gtest/gtest.h>

#include "datasets/folders/folder_names.h"
#include "tests/datasets/folders/layout_fixture.h"

namespace cputrain::datasets {
namespace {

using Names = std::vector<std::string>;
namespace fs = std::filesystem;

TEST(PartName, IsToldByWordsInAnyCase) {
  const std::vector<std::pair<Part, Names>> forms{
      {Part::train,
       {"train", "Train", "TRAIN_SET", "training", "training_set", "seg_train", "train_images",
        "TrainImages", "trainset", "train2017", "data-train", "Training Data", "trainval",
        "train_val", "train.256"}},
      {Part::validation,
       {"val", "valid", "Validation", "validation_set", "seg_val", "dev", "valset", "val2017",
        "VALID_IMAGES", "dev-set"}},
      {Part::evaluation, {"eval", "evaluation", "Eval_Set"}},
      {Part::test,
       {"test", "testing", "test_images", "Testing Set", "test1", "testData", "TEST-SET",
        "holdout"}},
      {Part::prediction, {"seg_pred", "single_prediction", "unlabeled", "predict"}}};
  for (const auto& [part, names] : forms) {
    for (const std::string& name : names) {
      EXPECT_EQ(part_name(name).part, part) << name;
      EXPECT_TRUE(part_name(name).alone) << name;
    }
  }
  for (const char* name : {"test_tube", "train_station", "chest_val", "cats_train"}) {
    EXPECT_NE(part_name(name).part, Part::none) << name;
    EXPECT_FALSE(part_name(name).alone) << name;
  }
  for (const char* name : {"trains", "attest", "invalid", "validity", "strain", "device", "cat",
                           "tested", "images", "train_test_split", "", "42"}) {
    EXPECT_EQ(part_name(name).part, Part::none) << name;
    EXPECT_FALSE(part_name(name).alone) << name;
  }
}

TEST_F(Layout, TwoPartsTrainAndValidate) {
  const std::vector<std::pair<std::string, std::string>> pairs{{"train", "valid"},
                                                               {"training", "validation"},
                                                               {"train", "dev"},
                                                               {"Train", "Test"},
                                                               {"TRAIN_SET", "TEST_SET"},
                                                               {"seg_train", "seg_val"},
                                                               {"train_images", "test_images"},
                                                               {"train2017", "val2017"},
                                                               {"dataset_train", "dataset_val"},
                                                               {"training_set", "test_set"},
                                                               {"train", "eval"},
                                                               {"chest_train", "chest_test"},
                                                               {"trainval", "test"},
                                                               {"Training Data", "Testing Data"}};
  for (const auto& [train, other] : pairs) {
    add_part(train), add_part(other), add(other + "/dog/2.png");
    const data::DataSource source = open_here();
    EXPECT_EQ(source.dataset->classes(), (Names{"cat", "dog"})) << train;
    EXPECT_EQ(part(source, source.train), (Names{train + "/cat/1.png", train + "/dog/1.png"}));
    EXPECT_EQ(part(source, source.validation),
              (Names{other + "/cat/1.png", other + "/dog/1.png", other + "/dog/2.png"}));
    EXPECT_EQ(source.validation_name, "its '" + other + "' folder");
    EXPECT_TRUE(source.test.empty());
    fs::remove_all(folder_.path() / train), fs::remove_all(folder_.path() / other);
  }
}

TEST_F(Layout, ThreePartsTrainValidateAndTest) {
  const std::vector<Names> triples{{"train", "val", "test"},
                                   {"train", "valid", "eval"},
                                   {"training", "eval", "testing"},
                                   {"TRAIN", "DEV", "TEST"},
                                   {"seg_train", "seg_validation", "seg_test"}};
  for (const Names& names : triples) {
    for (const std::string& name : names) add_part(name);
    add(names[1] + "/cat/3.png"), add(names[2] + "/dog/3.png"), add(names[2] + "/dog/4.png");
    const data::DataSource source = open_here();
    EXPECT_EQ(source.train.size(), 2u) << names[0];
    EXPECT_EQ(source.validation.size(), 3u) << names[1];
    ASSERT_EQ(source.test.size(), 4u) << names[2];
    EXPECT_EQ(part(source, source.test)[0], names[2] + "/cat/1.png");
    EXPECT_EQ(source.test_name, "its '" + names[2] + "' folder");
    EXPECT_NE(source.description.find("Using 2 for training, 3 for validation (its '" + names[1] +
                                      "' folder) and 4 for test (its '" + names[2] + "' folder)."),
              std::string::npos)
        << source.description;
    for (const std::string& name : names) fs::remove_all(folder_.path() / name);
  }
}

TEST_F(Layout, FoldersThatHoldImagesAreClasses) {
  add("test_tube/1.png"), add("train_station/1.png");
  EXPECT_EQ(classes(), (Names{"test_tube", "train_station"}));
  fs::remove_all(folder_.path() / "test_tube"), fs::remove_all(folder_.path() / "train_station");
  add("train/1.png"), add("ship/1.png"), add("car/1.png");
  EXPECT_EQ(classes(), (Names{"car", "ship", "train"}));
}

TEST_F(Layout, NamesLikeThoseMayBeClasses) {
  const std::vector<Names> cases{{"raw", "cooked"},
                                 {"clean", "dirty"},
                                 {"original", "fake"},
                                 {"class1", "class2"},
                                 {"1", "2"},
                                 {"valid", "Invalid", "expired"},
                                 {"train", "bus", "plane"},
                                 {"test_tube", "flask"},
                                 {"type_1", "type_2"},
                                 {"test_pilot", "train_driver"}};
  for (Names names : cases) {
    for (const std::string& name : names) add(name + "/1.png");
    std::ranges::sort(names);
    EXPECT_EQ(classes(), names);
    clear();
  }
}

/// What lies in folders around a part.
struct Packed {
  Names files, train, validation, unread;
};

TEST_F(Layout, PartsAreFoundInTheFoldersThatTheyArePackedInto) {
  const std::vector<Packed> cases{
      {{"asl_train/asl_train/A/1", "asl_train/asl_train/B/1", "asl_test/asl_test/A_test"},
       {"asl_train/asl_train/A/1.png", "asl_train/asl_train/B/1.png"},
       {},
       {"asl_test/asl_test/A_test.png: in a folder that is not used"}},
      {{"train/images/cat/1", "train/images/dog/1", "val/images/cat/2"},
       {"train/images/cat/1.png", "train/images/dog/1.png"},
       {"val/images/cat/2.png"},
       {}},
      {{"x_train/data/X_Train/cat/1", "x_train/data/X_Train/dog/1", "test/cat/2"},
       {"x_train/data/X_Train/cat/1.png", "x_train/data/X_Train/dog/1.png"},
       {"test/cat/2.png"},
       {}},
      {{"Training/fig/1", "Training/nut/1", "Test/nut/2", "test-multiple_fruits/3"},
       {"Training/fig/1.png", "Training/nut/1.png"},
       {"Test/nut/2.png"},
       {"test-multiple_fruits/3.png: in a folder that is not used"}},
      {{"train/fig/1", "train/nut/1", "val/fig/1", "to_predict/3"},
       {"train/fig/1.png", "train/nut/1.png"},
       {"val/fig/1.png"},
       {"to_predict/3.png: in a folder that is not used"}}};
  for (const auto& [files, train, validation, rest] : cases) {
    for (const std::string& file : files) add(file + ".png");
    const data::DataSource source = open_here(0);
    EXPECT_EQ(part(source, source.train), train);
    EXPECT_EQ(part(source, source.validation), validation);
    EXPECT_EQ(unread(source), rest);
    clear();
  }
  add("train/images/cat/1.png"), add("train/images/dog/1.png"), add_text("train/labels/1.txt", "");
  EXPECT_EQ(unread(open_here(0)), Names{"train/labels/1.txt: text"});
}

TEST_F(Layout, ValidBesideInvalidIsAClass) {
  add("valid/1.png"), add("invalid/1.png");
  EXPECT_EQ(classes(), (Names{"invalid", "valid"}));
}

TEST_F(Layout, ClassesMayHaveFoldersOfTheirOwn) {
  add("Aves/heron/1.png"), add("Aves/stork/1.png"), add("Insecta/bee/1.png");
  add("Insecta/wasp/deep/1.png"), add("Reptilia/images/1.png"), add("Fungi/1.png");
  EXPECT_EQ(classes(), (Names{"Aves", "Fungi", "Insecta", "Reptilia"}));
}

TEST_F(Layout, ClassesInPartsMayHaveFoldersOfTheirOwn) {
  for (const std::string part : {"train", "val"}) {
    add(part + "/n01/images/1.JPEG"), add(part + "/n02/images/1.JPEG");
  }
  const data::DataSource source = open_here();
  EXPECT_EQ(source.dataset->classes(), (Names{"n01", "n02"}));
  EXPECT_EQ(source.validation.size(), 2u);
}

TEST_F(Layout, APartPackedIntoAFolderOfItsNameIsThatPart) {
  add_part("seg_train/seg_train"), add_part("seg_test/seg_test"), add("seg_pred/seg_pred/1.jpg");
  const data::DataSource source = open_here();
  EXPECT_EQ(part(source, source.train),
            (Names{"seg_train/seg_train/cat/1.png", "seg_train/seg_train/dog/1.png"}));
  EXPECT_EQ(source.validation.size(), 2u);
  EXPECT_NE(source.description.find("Not used: 'seg_pred/seg_pred' (it is for prediction)"),
            std::string::npos)
      << source.description;
  EXPECT_EQ(unread(source), (Names{"seg_pred/seg_pred/1.jpg: in a folder that is not used"}));
}

TEST_F(Layout, FlatNamesOfOnePartBesideClassFoldersOfTheOther) {
  for (const std::string part : {"val", "validation", "test", "Test"}) {
    add_part("train"), add(part + "/cat.9.png");
    const data::DataSource source = open_here();
    EXPECT_EQ(source.train, (std::vector<std::uint32_t>{0, 1}));
    EXPECT_EQ(source.validation, (std::vector<std::uint32_t>{2}));
    EXPECT_EQ(source.dataset->label(2), 0);
    EXPECT_EQ(source.dataset->name(2), path(part + "/cat.9.png"));
    fs::remove_all(folder_.path() / part);
  }
}

TEST_F(Layout, UnlabelledImagesForTestingStayOut) {
  add_class("train/cat", 10), add_class("train/dog", 10), add("test1/1.png"), add("test/2.png");
  const data::DataSource source = open_here(0.1);
  EXPECT_EQ(source.train.size(), 18u);
  EXPECT_EQ(source.validation.size(), 2u);
  EXPECT_TRUE(source.test.empty());
  EXPECT_NE(source.description.find("'test' (its images have no labels)"), std::string::npos);
  fs::remove_all(folder_.path() / "train");
  for (int i = 0; i < 4; ++i) {
    add("train/cat." + std::to_string(i) + ".jpg"), add("train/dog." + std::to_string(i) + ".jpg");
  }
  EXPECT_EQ(classes(), (Names{"cat", "dog"}));
  EXPECT_EQ(open_here(0).train.size(), 8u);
}

TEST_F(Layout, UnlabelledImagesBesideFlatNamesStayOut) {
  add("cat.0.jpg"), add("dog.0.jpg"), add("test1/1.jpg");
  const data::DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat.0.jpg cat", "dog.0.jpg dog"}));
  EXPECT_EQ(unread(source), (Names{"test1/1.jpg: in a folder that is not used"}));
}

TEST_F(Layout, ATestPartOfOtherClassesIsLeftOutWhereAnotherPartValidates) {
  add_part("train"), add_part("val"), add("test/unknown/1.png");
  const data::DataSource source = open_here();
  EXPECT_TRUE(source.test.empty());
  ASSERT_EQ(source.warnings.size(), 1u);
  EXPECT_NE(source.warnings[0].find("'unknown'"), std::string::npos) << source.warnings[0];
  fs::remove_all(folder_.path() / "val");
  expect_refused({"test/unknown/1.png", "'unknown'"});
}

TEST_F(Layout, EmptyParts) {
  add_part("train"), add_folder("val");
  expect_refused({path("val"), "nothing"});
  fs::remove_all(folder_.path() / "val");
  add_text("test/sampleSubmission.csv", "id,label");
  EXPECT_EQ(open_here(0.5).train.size(), 2u) << "each class keeps an image";
  fs::remove_all(folder_.path() / "train");
  add("cat/1.png"), add("dog/1.png"), add_folder("train"), add_folder("validation");
  expect_refused({"'test' (its folder holds text 1)"});
  fs::remove_all(folder_.path() / "test");
  const data::DataSource source = open_here();
  EXPECT_EQ(source.dataset->classes(), (Names{"cat", "dog"}));
  EXPECT_NE(source.description.find("'train' (it holds no images)"), std::string::npos);
}

TEST_F(Layout, FoldersOfSystemsAreNoClasses) {
  add("cat/1.png"), add("dog/1.png");
  for (const std::string name :
       {"@eaDir", "#recycle", "$RECYCLE.BIN", "$Recycle.Bin", "System Volume Information",
        "lost+found", "__MACOSX", ".Trashes", ".Spotlight-V100", "@Recycle", "#snapshot",
        "~snapshot", "FOUND.000", "__pycache__", ".ipynb_checkpoints"}) {
    add(name + "/1.png"), add("cat/" + name + "/2.png"), add(name + "/cat/1.png");
  }
  add_text(".DS_Store", "x"), add_text("cat/.DS_Store", "x"), add("cat/._1.png");
  const data::DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat/1.png cat", "dog/1.png dog"}));
  EXPECT_EQ(source.ignored, 0u);
}

TEST_F(Layout, FoldersOfSystemsAreNoParts) {
  add_part("train"), add_part("@eaDir"), add_part("__MACOSX/train"), add_part("val");
  EXPECT_EQ(classes(), (Names{"cat", "dog"}));
}

TEST_F(Layout, OutputOfTrainingInTheDataIsNoClass) {
  add("cat/1.png"), add("dog/1.png");
  add_text("config.json", "{}"), add_text("metrics.jsonl", ""), add_text("weights.safetensors", "");
  add_text("train/events.out.tfevents.1.host", ""),
      add_text("validation/events.out.tfevents.2", "");
  add_text("ckpt-20/MANIFEST", "");
  add_text("runs/20261121-dogcat/metrics.jsonl", ""), add_text("runs/b/environment.json", "");
  add_text("runs/b/train/events.out.tfevents.3", "");
  add_text("sweep/cells.json", "{}");
  const data::DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat/1.png cat", "dog/1.png dog"}));
  EXPECT_EQ(source.ignored, 3u) << "the files beside the class folders";
}

TEST_F(Layout, OutputOfTrainingBesidePartsLeavesThemAsTheyAre) {
  add_part("train"), add_part("test"), add_text("train/events.out.tfevents.1.host", "");
  add_text("validation/events.out.tfevents.2.host", ""), add_text("run/metrics.jsonl", "");
  const data::DataSource source = open_here();
  EXPECT_EQ(source.validation_name, "its 'test' folder");
  EXPECT_EQ(source.dataset->classes(), (Names{"cat", "dog"}));
}

}  // namespace
}  // namespace cputrain::datasets
