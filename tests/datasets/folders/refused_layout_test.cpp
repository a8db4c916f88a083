// Folders of which nobody can tell what is a part and what is a class: refused, with their names.
#include <gtest/gtest.h>

#include "tests/datasets/folders/layout_fixture.h"

namespace cputrain::datasets {
namespace {

using Names = std::vector<std::string>;
namespace fs = std::filesystem;

class RefusedLayout : public Layout {};

/// Each is a folder with these files, and words of the message.
struct Refused {
  Names files, words;
};

TEST_F(RefusedLayout, WhatIsMostLikelyNoClassIsRefused) {
  const std::vector<Refused> cases{
      // A copy of the data beside its classes.
      {{"no/1", "yes/1", "brain_tumor_dataset/no/1", "brain_tumor_dataset/yes/1"},
       {"'brain_tumor_dataset'", "'no'", "copy"}},
      {{"daisy/1", "rose/1", "flowers/flowers/Daisy/1", "flowers/flowers/Rose/1"},
       {"'flowers'", "'Daisy'", "copy"}},
      {{"cat/1", "dog/1", "old/2019/cat/1"}, {"'old'", "'cat'", "copy"}},
      {{"cat/1", "dog/1", "more/0", "more/dog/1"}, {"'more'", "'dog'", "copy"}},
      {{"cat/1", "dog/1", "split/train/1", "split/val/1"}, {"'split'", "'train', 'val'"}},
      {{"cat/1", "dog/1", "cnn/cnn/training_set/a/1", "cnn/cnn/test_set/a/1"},
       {"'cnn'", "'test_set', 'training_set'"}},
      {{"fold1/Cat/1", "fold1/Dog/1", "fold2/cat/1", "fold2/dog/1"}, {"'fold1' and 'fold2'"}},
      // Pieces of one set.
      {{"images_001/images/1", "images_002/images/2", "images_003/images/3"},
       {"'images_001', 'images_002', 'images_003' look like pieces"}},
      {{"HAM10000_images_part_1/1", "HAM10000_images_part_2/2"}, {"look like pieces"}},
      {{"batch_1/1", "batch_2/2"}, {"look like pieces"}},
      {{"fold1/1", "fold2/2", "fold10/3"}, {"'fold1', 'fold10', 'fold2' look like pieces"}},
      {{"Part A/1", "Part B/2"}, {"look like pieces"}},
      {{"train/chunk0/1", "train/chunk1/2", "val/chunk0/3", "val/chunk1/4"}, {"look like pieces"}},
      // Images beside what belongs to them.
      {{"images/1", "masks/1"}, {"'images'", "'masks'"}},
      {{"images/1", "annotations/trimaps/1"}, {"'images'", "'annotations'"}},
      {{"JPEGImages/1", "SegmentationClass/1"}, {"'JPEGImages'", "'SegmentationClass'"}},
      {{"pictures/1", "masks/1"}, {"'pictures'", "'masks'"}},
      {{"imgs/1", "gt/1", "overlays/1"}, {"'imgs'", "'gt', 'overlays'"}},
      {{"train/images/1", "train/masks/1", "val/images/2", "val/masks/2"}, {"'images'", "'masks'"}},
      // `train` and `valid` that are no classes.
      {{"train/1", "train_masks/1"}, {"'train'", "'train_masks'"}},
      {{"train/1", "extra_images/1"}, {"'train'", "'extra_images'"}},
      {{"train/1", "extra_images/1", "cat/1"}, {"'train'", "'extra_images'"}},
      {{"train/1", "ship/1"}, {"'train'", "'ship'"}},
      {{"valid/1", "images/1"}, {"'valid'", "'images'"}},
      {{"valid/1", "cat/1", "dog/1"}, {"'valid'", "'cat', 'dog'"}},
      // One class in two parts.
      {{"train_cat/1", "train_dog/1", "val_cat/1", "val_dog/1"}, {"'train_cat' and 'val_cat'"}},
      {{"cat_train/1", "cat_test/1"}, {"'cat_test' and 'cat_train'"}},
      {{"Cat/1", "dog/1", "cat-test/1"}, {"'Cat' and 'cat-test'"}}};
  for (const auto& [files, words] : cases) {
    for (const std::string& file : files) add(file + ".png");
    SCOPED_TRACE(files.front());
    expect_refused(words);
    clear();
  }
}

TEST_F(RefusedLayout, TwoFoldersForOnePartAreRefused) {
  for (const auto& [one, other] :
       std::vector<std::pair<std::string, std::string>>{{"train", "training"},
                                                        {"val", "valid"},
                                                        {"test", "testing"},
                                                        {"val", "dev"},
                                                        {"train2014", "train2017"}}) {
    add_part("train"), add_part("val"), add_part("test"), add_part(one), add_part(other);
    expect_refused({"'" + one + "'", "'" + other + "'"});
    clear();
  }
  for (const std::string part : {"train", "val", "eval", "test"}) add_part(part);
  expect_refused({"'eval'", "'test'"});
}

TEST_F(RefusedLayout, PartsWithoutOneForTrainingAreRefused) {
  add_part("val"), add_part("test");
  expect_refused({"'test', 'val'", "--data " + path("test")});
  fs::remove_all(folder_.path() / "test");
  add_part("other");
  expect_refused({"'val'"});
}

TEST_F(RefusedLayout, WhatLiesBesidePartsIsRefusedUnlessItHoldsNoImage) {
  add_part("train"), add_part("val"), add_text("labels/a.txt", "x");
  EXPECT_EQ(classes(), (Names{"cat", "dog"}));
  add("cow/1.png");
  expect_refused({"'cow'", "'train'"});
  fs::remove_all(folder_.path() / "cow");
  add_part("extra");
  expect_refused({"'extra'", "'train'"});
  fs::remove_all(folder_.path() / "extra");
  add("train_images/1.png");
  expect_refused({"'train'", "'train_images'"});
}

TEST_F(RefusedLayout, PartOrClassIsRefused) {
  for (const std::string name : {"test", "val", "training", "dev", "prediction"}) {
    add("cat/1.png"), add("dog/1.png"), add(name + "/1.png");
    expect_refused({"'" + name + "'", "'cat', 'dog'", "rename"});
    fs::remove_all(folder_.path() / name);
  }
}

TEST_F(RefusedLayout, PartsWhoseImagesHaveNoLabelsAreRefused) {
  add("train/1.png"), add("valid/1.png"), add("test/1.png");
  expect_refused({"'test', 'train', 'valid'", "no labels"});
  for (const std::string part : {"train", "valid", "test"}) {  // as detectors have them
    fs::remove_all(folder_.path() / part);
    add(part + "/images/1.png"), add_text(part + "/labels/1.txt", "0 0.5 0.5 1 1");
  }
  expect_refused({"'test', 'train', 'valid'", "no labels"});
  fs::remove_all(folder_.path() / "train");
  add_part("train");
  expect_refused({"'valid'", "no labels"});
}

TEST_F(RefusedLayout, CopiesOfOneDataSetAreNoClasses) {
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"fold1", "fold2"}, {"amazon/images", "webcam/images"}, {"a", "b"}}) {
    add_part(one), add_part(other);
    expect_refused({"'" + one.substr(0, one.find('/')) + "'",
                    "'" + other.substr(0, other.find('/')) + "'", "'cat', 'dog'"});
    clear();
  }
  add("cat/train/1.png"), add("cat/val/1.png"), add("dog/train/1.png"), add("dog/val/1.png");
  expect_refused({"'cat'", "'dog'", "'train', 'val'"});
}

TEST_F(RefusedLayout, PartsInPartsAreRefused) {
  add_part("train/train"), add_part("train/val"), add_part("val");
  expect_refused({"'train'", path("train")});
}

TEST_F(RefusedLayout, OneFolderAroundAllIsNamed) {
  add_part("archive");
  expect_refused({"one class, 'archive'", "--data " + path("archive")});
}

}  // namespace
}  // namespace cputrain::datasets
