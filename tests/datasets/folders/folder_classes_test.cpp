// No class vanishes: links, endings, and class folders of which nothing is read.
#include <gtest/gtest.h>

#include <functional>

#include "comm/communicator.h"
#include "datasets/datasets.h"
#include "datasets/folders/folder_names.h"
#include "tests/datasets/open_fixture.h"
#include "tests/support/refusal.h"

namespace cputrain::datasets {
namespace {

using Names = std::vector<std::string>;
namespace fs = std::filesystem;

class Classes : public OpenTest {
 protected:
  void link(const std::string& target, const std::string& name) {
    fs::create_symlink(target, folder_.path() / name);
  }
};

TEST(ImageNames, EndingsInAnyCase) {
  for (const char* name : {"a.jpg", "a.JPEG", "a.jfif", "a.JPE", "a.png", "a.bmp", "a.gif",
                           "a.WebP", "a.tif", "a.TIFF", "b.c.jpg", "a.heic", "a.HIF", "a.avif"}) {
    EXPECT_TRUE(is_image_file_name(name)) << name;
    const std::string listed = " " + image_endings() + " ";
    std::string ending = fs::path(name).extension().string();
    for (char& c : ending) c = static_cast<char>(std::tolower(c));
    EXPECT_NE(listed.find(" " + ending + " "), std::string::npos) << listed;
  }
  for (const char* name : {"a.svg", "a.txt", "jpg", "a.jpg.txt", "a.", "a.jpg/b", ""}) {
    EXPECT_FALSE(is_image_file_name(name)) << name;
  }
}

TEST(ImageNames, SayWhatElseAFileIs) {
  const auto kind = [](const char* name) { return kind_of_name(name).reason; };
  for (const auto& [name, one] :
       std::vector<std::pair<const char*, std::string_view>>{{"a/b.SVG", "SVG"},
                                                             {"a.cr2", "RAW photograph"},
                                                             {"a.b.DNG", "RAW photograph"},
                                                             {"IMG_1.MOV", "video"},
                                                             {"photos.zip", "archive"},
                                                             {"labels.csv.gz", "archive"},
                                                             {"README", "text"},
                                                             {"sub/labels", "text"},
                                                             {"IMG_1.AAE", "text"},
                                                             {"Thumbs.db", "file of a system"},
                                                             {"other.db", "file of a program"},
                                                             {"a.foo", "no image by its name"},
                                                             {"readme.foo", "no image by its name"},
                                                             {".svg", "SVG"},
                                                             {"", "no image by its name"}}) {
    EXPECT_EQ(kind(name).one, one) << name;
  }
  EXPECT_TRUE(kind("a.svg").missed && kind("a.mp4").missed && kind("a.foo").missed);
  EXPECT_FALSE(kind("README").missed || kind("Thumbs.db").missed || kind("a.pdf").missed);
  EXPECT_EQ(kind_of_name("a.JPE").format, Format::jpeg);
  EXPECT_EQ(kind_of_name("a.heif").format, Format::heic);
  EXPECT_EQ(kind_of_name("a.avif").format, Format::avif);
}

TEST(ImageNames, AreCountedByKind) {
  std::vector<data::UnreadFile> files;
  EXPECT_EQ(data::unread_by_kind(files), "");
  for (const char* name : {"1.svg", "1.cr2", "a/2.CR2", "3.dng", "1.mp4", "x.foo", "x", "y.foo"}) {
    files.push_back({name, &kind_of_name(name).reason});
  }
  EXPECT_EQ(data::unread_by_kind(files),
            "RAW photographs (.cr2, .dng) 3, no image by its name (.foo, without an ending) 3, "
            "SVG 1, video 1");
  for (int i = 0; i < 1200; ++i) files.push_back({"2.mov", &kind_of_name("2.mov").reason});
  EXPECT_TRUE(data::unread_by_kind(files).starts_with("videos 1,201, RAW"));
}

TEST_F(Classes, AnEmptyClassIsAnErrorThatSaysWhatLiesInIt) {
  add("cat/1.png"), add("dog/1.png"), add_folder("third");
  expect_refused({"'third' (its folder holds nothing)", "--allow-empty-classes"});
  for (int i = 0; i < 3; ++i) add_text("third/" + std::to_string(i) + ".SVG", "x");
  add_text("third/deep/notes.txt", "x"), add_text("third/README", "x"), add("third/.4.png");
  link("nowhere.png", "third/5.png");
  add_folder("fourth");
  expect_refused({"SVG 3", "texts 2", "hidden 1", "broken link 1", "classes 'fourth'"});
}

TEST_F(Classes, AnEmptyClassThatIsAllowedStaysAClass) {
  add_class("cat", 4), add_class("emu", 4), add_text("cow/1.svg", "x");
  allow_empty_classes_ = true;
  const data::DataSource source = open_here(0.25);
  EXPECT_EQ(source.dataset->classes(), (Names{"cat", "cow", "emu"}));
  EXPECT_EQ(source.dataset->label(source.train.front()), 0);
  EXPECT_EQ(source.dataset->label(source.train.back()), 2);
  EXPECT_EQ(source.train.size(), 6u);
  ASSERT_EQ(source.warnings.size(), 1u);
  EXPECT_NE(source.warnings[0].find("'cow' (its folder holds SVG 1)"), std::string::npos);
  EXPECT_EQ(source.empty_classes, Names{"cow"});
}

TEST_F(Classes, NamesOfPartsDoNotHideAnEmptyClass) {
  struct Case {
    Names images, unread;
    std::string word;
  };
  const std::vector<Case> cases{
      {{"cat/1", "train_station/1"}, {"test_tube/1.svg"}, "'test_tube' (its folder holds SVG 1)"},
      {{"cat/1", "train_station/1"}, {"valid/1.svg"}, "'valid' (its folder holds SVG 1)"},
      {{"train/car/1", "train/ship/1"},
       {"train/train/deep/1.svg"},
       "'train' (its folder 'train/train' holds SVG 1)"},
      {{"car/1", "ship/1"}, {"train/1.svg", "train/MANIFEST"}, "'train' (its folder holds SVG 1"},
      {{"car/1", "ship/1"}, {"bus/1.svg", "bus/cells.json"}, "'bus'"},
      {{"car/1", "ship/1"}, {"bus/a/1.jxl", "bus/b.safetensors"}, "'bus'"},
      {{"paper/1", "glass/1"}, {"Recycled/1.svg"}, "'Recycled'"}};
  for (const auto& [images, unread, word] : cases) {
    for (const std::string& name : images) add(name + ".png");
    for (const std::string& name : unread) add_text(name, "x");
    SCOPED_TRACE(word);
    expect_refused({word});
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry.path());
  }
  add("paper/1.png"), add("Recycled/1.png"), add("recycler/1.png");
  EXPECT_EQ(classes(), (Names{"Recycled", "paper", "recycler"}));
}

TEST_F(Classes, AnEmptyFolderWithTheNameOfAPartIsNone) {
  add("train/cat/1.png"), add("train/dog/1.png"), add_folder("train/val/deep");
  const data::DataSource source = open_here(0);
  EXPECT_EQ(source.dataset->classes(), (Names{"cat", "dog"}));
  EXPECT_NE(source.description.find("'train/val' (it holds no images)"), std::string::npos);
}

TEST_F(Classes, AtLeastTwoHaveImages) {
  add("cat/1.png"), add_folder("cow"), add_folder("dog");
  allow_empty_classes_ = true;
  expect_refused({"one class, 'cat'", "'cow'"});
  fs::remove(folder_.path() / "cat/1.png");
  expect_refused({"no images in '" + path() + "'"});
}

TEST_F(Classes, AFolderOfImagesAloneIsToldWhatItLacks) {
  add("photo.png");
  expect_refused({"holds 1 image, but", "'photo.png'", "folder of its own", "cat.1.jpg", ".csv"});
  add("IMG_1.png"), add("IMG_2.png"), add_text("notes.md", "x"), add_folder("empty");
  expect_refused({"holds 3 images", "class", "'IMG_1.png'"});
  EXPECT_EQ(error(path()).find("holds nothing"), std::string::npos);
  add_text("labels.csv", "photo.png,cat\n");
  expect_refused({"'labels.csv'", "--data " + path("labels.csv")});
}

TEST_F(Classes, PartsFindNamesThatLookAlike) {
  add("train/cat/1.png"), add("train/dog/1.png"), add("val/Cat/1.png"), add_folder("val/DOG ");
  add("test/cat /1.png"), add_folder("test/Dog");
  const data::DataSource source = open_here();
  EXPECT_EQ(source.dataset->classes(), (Names{"cat", "dog"}));
  EXPECT_EQ(part(source, source.validation), Names{"val/Cat/1.png"});
  EXPECT_EQ(part(source, source.test), Names{"test/cat /1.png"});
  ASSERT_EQ(source.warnings.size(), 3u);
  EXPECT_TRUE(source.warnings[2].starts_with("no image of 1 of 2 classes (dog) is for validation"));
  add("val/cat/2.png");
  expect_refused({"'Cat'", "no training images"});
}

TEST_F(Classes, APartBesideTrainingMayLackClasses) {
  add("train/cat/1.png"), add("train/dog/1.png"), add("val/cat/1.png"), add_folder("val/dog");
  EXPECT_EQ(classes(), (Names{"cat", "dog"}));
  add_folder("val/emu");
  expect_refused({"'emu' (its folder 'val/emu' holds nothing)"});
  fs::remove(folder_.path() / "val/emu");
  add("test/cat/1.png"), add_text("test/emu/1.svg", "x");
  const data::DataSource source = open_here();
  EXPECT_EQ(source.dataset->classes(), (Names{"cat", "dog"}));
  EXPECT_EQ(part(source, source.test), Names{"test/cat/1.png"});
  ASSERT_EQ(source.warnings.size(), 2u);
  EXPECT_NE(source.warnings[0].find("'" + path("test/emu") + "'"), std::string::npos);
  EXPECT_EQ(source.warnings[1],
            "no image of 1 of 2 classes (dog) is for validation (its accuracy does not show them); "
            "give the validation part images of them");
  add_folder("train/emu"), add("val/emu/1.png");
  expect_refused({"'emu'"});
  allow_empty_classes_ = true;
  EXPECT_EQ(classes(), (Names{"cat", "dog", "emu"}));
}

TEST_F(Classes, LinksAreFollowed) {
  add("cat/1.png"), add("dog/1.png"), add("elsewhere/a.png"), add("elsewhere/deep/b.png");
  fs::rename(folder_.path() / "elsewhere", folder_.path() / ".elsewhere");
  add_folder("cow");
  link(path(".elsewhere/a.png"), "cow/1.png");
  link("../.elsewhere/deep", "cow/more");
  link(".elsewhere/deep", "emu");
  const data::DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat/1.png cat", "cow/1.png cow", "cow/more/b.png cow",
                                  "dog/1.png dog", "emu/b.png emu"}));
  ASSERT_EQ(source.warnings.size(), 1u) << "b.png is a cow and an emu";
  EXPECT_NE(source.warnings[0].find("1 file has two labels (first: 'cow/more/b.png' of 'cow' is "
                                    "'emu/b.png' of 'emu')"),
            std::string::npos)
      << source.warnings[0];
}

TEST_F(Classes, LinksThatLeadNowhereOrBackAreCounted) {
  add("cat/1.png"), add("dog/1.png");
  link("..", "cat/up"), link(".", "cat/self"), link("none.png", "dog/gone.png");
  link("loop.png", "dog/loop.png"), link("../cat", "dog/other");
  link("../dog", "cat/other");
  const data::DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat/1.png cat", "cat/other/1.png cat", "dog/1.png dog",
                                  "dog/other/1.png dog"}));
  EXPECT_EQ(
      unread(source),
      (Names{"cat/other/gone.png: broken link", "cat/other/loop.png: broken link",
             "cat/other/other: link to a folder above it", "cat/self: link to a folder above it",
             "cat/up: link to a folder above it", "dog/gone.png: broken link",
             "dog/loop.png: broken link", "dog/other/other: link to a folder above it",
             "dog/other/self: link to a folder above it",
             "dog/other/up: link to a folder above it"}));
}

TEST_F(Classes, AClassFolderOfBrokenLinksIsEmpty) {
  add("cat/1.png"), add("dog/1.png"), add_folder("cow");
  link("/nowhere/1.png", "cow/1.png"), link("/nowhere/2.png", "cow/2.png");
  expect_refused({"'cow' (its folder holds broken links 2)"});
}

TEST_F(Classes, PredictListsWhatLinksLeadTo) {
  add("a/1.png"), add("b/2.webp"), add_folder("@eaDir");
  add("@eaDir/3.png"), link("../b", "a/b"), link("..", "a/up");
  EXPECT_EQ(make_data_pipeline().list_images(path("a")).first,
            (Names{path("a/1.png"), path("a/b/2.webp")}));
}

TEST_F(Classes, HardLinksUnderTwoLabelsAreTold) {
  add("cat/1.png"), add("cat/2.png"), add("dog/1.png");
  fs::create_hard_link(folder_.path() / "cat/1.png", folder_.path() / "cat/copy.png");
  EXPECT_TRUE(open_here().warnings.empty()) << "one label";
  fs::create_hard_link(folder_.path() / "cat/1.png", folder_.path() / "dog/2.png");
  fs::create_hard_link(folder_.path() / "cat/2.png", folder_.path() / "dog/3.png");
  const data::DataSource source = open_here();
  ASSERT_EQ(source.warnings.size(), 2u);  // and one image validates two classes
  EXPECT_NE(source.warnings[0].find("2 files have two labels"), std::string::npos);
  EXPECT_NE(source.warnings[0].find("'cat/1.png' of 'cat'"), std::string::npos);
}

TEST_F(Classes, AClassThatCannotBeDecodedIsAnErrorUnlessItIsAllowed) {
  const data::DataPipeline pipeline = make_data_pipeline();
  add_class("cat", 3), add_class("dog", 3);
  for (int i = 0; i < 3; ++i) add_text("third/" + std::to_string(i) + ".webp", "garbage");
  const auto decode = [&] {
    const data::DataSource source = open_here(0);
    const auto comm = comm::make_solo();
    return pipeline.decode(source, {{4, 4, 3}, 1, {}}, comm->node_memory()).empty_classes;
  };
  const auto pack = [&] {
    const data::DataSource source = open_here(0);
    return pipeline.pack(source, path("p.ctpack"), {{4, 4, 3}, 1, {}, data::Resize::bilinear})
        .empty_classes;
  };
  const std::vector<std::function<std::string()>> ways{decode, pack};
  EXPECT_EQ(pipeline.check(open_here(0), 1, {}).empty_classes, Names{"third"});
  for (const auto& go : ways) {
    allow_empty_classes_ = false;
    const std::string message = testing::refused(ExitCode::data, [&] { go(); });
    EXPECT_NE(message.find("'third' (none of its 3 training images; first '" +
                           path("third/0.webp") + "'"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("--allow-empty-classes"), std::string::npos) << message;
    EXPECT_FALSE(fs::exists(path("p.ctpack")));
    allow_empty_classes_ = true;
    EXPECT_NE(go().find("'third'"), std::string::npos);
    fs::remove(path("p.ctpack"));
  }
}

TEST_F(Classes, OnlyTrainingImagesTeachAClass) {
  for (const std::string name : {"train/cat", "train/dog", "val/emu"}) add(name + "/1.png");
  add_text("train/emu/1.png", "garbage");
  EXPECT_EQ(make_data_pipeline().check(open_here(), 1, {}).empty_classes, Names{"emu"});
}

TEST_F(Classes, APackedFileKeepsTheTestPart) {
  const data::DataPipeline pipeline = make_data_pipeline();
  for (const std::string part : {"train", "val", "test"}) {
    add("d/" + part + "/cat/1.png"), add("d/" + part + "/dog/1.png");
  }
  add("d/test/dog/2.png");
  pipeline.pack(open(path("d")), path("p.ctpack"), {{4, 4, 3}, 1, {}, data::Resize::bilinear});
  const data::DataSource packed = open(path("p.ctpack"));
  EXPECT_EQ(part(packed, packed.test),
            (Names{"d/test/cat/1.png", "d/test/dog/1.png", "d/test/dog/2.png"}));
  EXPECT_EQ(packed.test_name, "as packed");
  EXPECT_EQ(packed.validation.size(), 2u);
}

}  // namespace
}  // namespace cputrain::datasets
