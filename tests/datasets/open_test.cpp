// What --data may name, how it is split, and what is said when it is not usable.
#include "datasets/open.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "data/classes/class_names.h"
#include "tests/datasets/made_files.h"
#include "tests/datasets/open_fixture.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

class Open : public OpenTest {};

using Names = std::vector<std::string>;

TEST_F(Open, ClassFolders) {
  for (const char* name :
       {"dog/b.PNG", "dog/a.jpeg", "cat/with space \xC3\xA9.jpg", "cat/deep/1.gif", "cat/Thumbs.db",
        "cat/notes.txt", ".hidden/1.png", "dog/.2.png", "dog/._a.jpeg"}) {
    add(name);
  }
  const data::DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat/with space \xC3\xA9.jpg cat", "cat/deep/1.gif cat",
                                  "dog/a.jpeg dog", "dog/b.PNG dog"}));
  EXPECT_EQ(unread(source), (Names{"cat/Thumbs.db: file of a system", "cat/notes.txt: text",
                                   "dog/.2.png: hidden"}));
  EXPECT_EQ(source.ignored, 3u);
  EXPECT_EQ(source.train.size(), 4u);
  EXPECT_TRUE(source.validation.empty());
  EXPECT_EQ(
      source.description,
      "Found 4 files belonging to 2 classes. Using 4 for training. Not read: file of a system "
      "1, hidden 1, text 1.");
  EXPECT_TRUE(source.description.starts_with("Found 4 files belonging to 2 classes."))
      << source.description;
}

TEST_F(Open, OneClassIsEnoughToEvaluate) {
  add_class("only", 3);
  EXPECT_NE(error(path()).find("one class, 'only'"), std::string::npos);
  data::DataSource source = open_data({.spec = path(), .validation_split = 0, .to_evaluate = true});
  EXPECT_EQ(source.train.size(), 3u);
  EXPECT_EQ(source.description, "Found 3 files belonging to 1 class.");
  EXPECT_FALSE(source.own_validation);
}

TEST_F(Open, LabelsAreTranslatedByName) {
  for (const char* name : {"b", "d", "a"}) add_class(name, name[0] - 'a' + 1);
  add_folder("unsorted");  // no image is of it, so that nobody asks what it means
  allow_empty_classes_ = true;
  const std::uint64_t fingerprint = open_here().dataset->fingerprint();
  const std::vector<std::string> classes{"d", "c", "b", "a"};
  data::DataSource source = open_here();
  data::give_classes(source, classes);
  const data::Dataset* data = source.dataset.get();
  EXPECT_EQ(data->classes(), classes);
  EXPECT_EQ(data->fingerprint(), fingerprint);
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < data->size(); ++i) {
    const std::string folder = fs::path(data->name(i)).parent_path().filename();
    EXPECT_EQ(classes[static_cast<std::size_t>(data->label(i))], folder);
    ++counts[folder];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"a", 1}, {"b", 2}, {"d", 4}}));
  const std::string text = testing::refused(ExitCode::data, [&] {
    data::DataSource other = open_here();
    data::give_classes(other, {"a", "c"});
  });
  EXPECT_NE(text.find("the classes b, d, which"), std::string::npos) << text;
}

TEST_F(Open, NamelessClassesAreTakenByOrder) {
  for (const char* name : {"a", "b"}) add_class(name, 2);
  data::DataSource source = open_here();
  const std::size_t warnings = source.warnings.size();
  data::give_classes(source, {"class 0", "class 1"});
  EXPECT_EQ(source.dataset->classes(), (Names{"a", "b"}));
  ASSERT_EQ(source.warnings.size(), warnings + 1);
  EXPECT_NE(source.warnings.back().find("in this order: a, b"), std::string::npos);
  for (const Names& others :
       {Names{"class 0", "class 1", "class 2"}, Names{"class 1", "class 0"}}) {
    data::DataSource other = open_here();
    EXPECT_THROW(data::give_classes(other, others), Error);
  }
}

TEST_F(Open, KaggleNames) {
  for (const char* name :
       {"dog.10.jpg", "cat.2.jpg", "cat.0.jpg", "big.dog.3.JPG", "7.jpg", "x.txt"}) {
    add(name);
  }
  const data::DataSource source = open_here(0);
  EXPECT_EQ(names(source),
            (Names{"big.dog.3.JPG big.dog", "cat.0.jpg cat", "cat.2.jpg cat", "dog.10.jpg dog"}));
  EXPECT_EQ(source.ignored, 2u) << "7.jpg has no label, x.txt is no image";
}

TEST_F(Open, ValidationMustNotHaveClassesOfItsOwn) {
  add("train/cat/1.png"), add("train/dog/1.png"), add("val/cow/1.png");
  EXPECT_NE(error(path()).find("cow"), std::string::npos);
}

TEST_F(Open, WhatIsNotThereIsNamed) {
  EXPECT_NE(error(path("none")).find("'" + path("none") + "' does not exist"), std::string::npos);
  EXPECT_NE(error("idx:" + path("none")).find(path("none")), std::string::npos);
  add("image.png");
  EXPECT_NE(error(path("image.png")).find("image.png"), std::string::npos);
}

TEST_F(Open, UnreadableFolder) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  add("cat/1.png"), add("dog/1.png");
  fs::permissions(folder_.path() / "dog", fs::perms::none);
  EXPECT_NE(error(path()).find("dog' cannot be read"), std::string::npos);
  fs::permissions(folder_.path() / "dog", fs::perms::owner_all);
}

TEST_F(Open, FingerprintChangesWithNamesSizesAndLabelsOnly) {
  add("cat/1.png"), add("dog/1.png");
  const auto first = open_here().dataset->fingerprint();
  EXPECT_EQ(open_here().dataset->fingerprint(), first);
  testing::TemporaryFolder elsewhere;
  fs::copy(folder_.path(), elsewhere.path(), fs::copy_options::recursive);
  EXPECT_EQ(open(elsewhere.path().string()).dataset->fingerprint(), first);
  std::set<std::uint64_t> seen{first};
  fs::rename(folder_.path() / "dog/1.png", folder_.path() / "dog/2.png");
  EXPECT_TRUE(seen.insert(open_here().dataset->fingerprint()).second);
  write_bytes(folder_.path() / "dog/2.png", bytes_of("shorter"));
  EXPECT_TRUE(seen.insert(open_here().dataset->fingerprint()).second);
  fs::rename(folder_.path() / "dog", folder_.path() / "cow");
  EXPECT_TRUE(seen.insert(open_here().dataset->fingerprint()).second);
}

TEST(OpenSynthetic, Sizes) {
  const data::DataSource paper = open_data({.spec = "synthetic"});
  EXPECT_EQ(paper.train.size(), 22'500u);
  EXPECT_EQ(paper.validation.size(), 2'500u);
  EXPECT_EQ(open_data({.spec = "synthetic:64"}).dataset->size(), 64u);
  for (const char* spec : {"synthetic:", "synthetic:1", "synthetic:-4", "synthetic:4x"}) {
    const std::string text = testing::refused(ExitCode::usage, [&] { open_data({.spec = spec}); });
    EXPECT_NE(text.find(spec), std::string::npos);
  }
}

std::map<int, std::size_t> by_class(const data::DataSource& source,
                                    const std::vector<std::uint32_t>& part) {
  std::map<int, std::size_t> counts;
  for (const std::uint32_t sample : part) ++counts[source.dataset->label(sample)];
  return counts;
}

TEST(OpenSynthetic, LimitsKeepTheClassesProportionsAndAreChosenBySeed) {
  const auto open = [](std::size_t train, std::size_t validation, std::uint64_t seed) {
    return open_data({.spec = "synthetic:1000",
                      .validation_split = 0.2,
                      .seed = seed,
                      .limit_train = train,
                      .limit_validation = validation});
  };
  const data::DataSource source = open(300, 50, 7), again = open(300, 50, 7),
                         other = open(300, 50, 8);
  using Counts = std::map<int, std::size_t>;
  EXPECT_EQ(by_class(source, source.train), (Counts{{0, 150}, {1, 150}}));
  EXPECT_EQ(by_class(source, source.validation), (Counts{{0, 25}, {1, 25}}));
  EXPECT_EQ(source.train, again.train);
  EXPECT_NE(source.train, other.train);
  EXPECT_TRUE(open(300, 0, 7).validation.empty());
  EXPECT_EQ(open(5000, 5000, 7).train.size(), 800u) << "a limit above what is there is none";
  std::set<std::uint32_t> both(source.train.begin(), source.train.end());
  both.insert(source.validation.begin(), source.validation.end());
  EXPECT_EQ(both.size(), 350u) << "no sample in both parts";
}

TEST(OpenSynthetic, ALimitIsToBlameForClassesThatThePartHas) {
  const auto last = [](std::size_t train, std::size_t validation) {
    return open_data({.spec = "synthetic:20",
                      .validation_split = 0.5,
                      .limit_train = train,
                      .limit_validation = validation})
        .warnings.at(0);
  };
  EXPECT_TRUE(last(10, 1).ends_with("; a larger --limit-val has more classes")) << last(10, 1);
  EXPECT_TRUE(last(1, 10).ends_with("; a larger --limit-train has more classes")) << last(1, 10);
}

}  // namespace
}  // namespace cputrain::datasets
