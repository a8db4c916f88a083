// What --data may name, how it is split, and what is said when it is not usable.
#include "datasets/open.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "data/made_files.h"
#include "data/relabelled.h"
#include "support/temporary_folder.h"

namespace cputrain {
namespace {

namespace fs = std::filesystem;

class Open : public testing::Test {
 protected:
  void add(const std::string& path) { write_bytes(folder_.path() / path, picture_); }
  void add_class(const std::string& path, int count) {
    for (int i = 0; i < count; ++i) add(path + "/" + std::to_string(i) + ".png");
  }
  std::string path(const std::string& below = "") const {
    return below.empty() ? folder_.path().string() : (folder_.path() / below).string();
  }
  DataSource open(const std::string& spec, double split = 0.1) const {
    return open_data({.spec = spec, .validation_split = split, .seed = 5});
  }
  DataSource open_here(double split = 0.1) const { return open(path(), split); }

  /// Opens and returns the message of the error, which must have this exit code.
  std::string error(const std::string& spec, ExitCode code = ExitCode::data) const {
    try {
      open(spec);
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), code) << caught.what();
      return caught.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  std::vector<std::string> names(const DataSource& source) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < source.dataset->size(); ++i) {
      names.push_back(
          fs::relative(source.dataset->name(i), folder_.path()).string() + " " +
          source.dataset->classes()[static_cast<std::size_t>(source.dataset->label(i))]);
    }
    return names;
  }

  TemporaryFolder folder_;
  Bytes picture_ = png_of(smooth_picture(4, 4));
};

using Names = std::vector<std::string>;

TEST_F(Open, class_folders) {
  for (const char* name :
       {"dog/b.PNG", "dog/a.jpeg", "cat/with space \xC3\xA9.jpg", "cat/deep/1.gif", "cat/Thumbs.db",
        "cat/notes.txt", ".hidden/1.png", "dog/.2.png"}) {
    add(name);
  }
  const DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat/with space \xC3\xA9.jpg cat", "cat/deep/1.gif cat",
                                  "dog/a.jpeg dog", "dog/b.PNG dog"}));
  EXPECT_EQ(source.ignored, 2u);
  EXPECT_EQ(source.train.size(), 4u);
  EXPECT_TRUE(source.validation.empty());
  EXPECT_EQ(source.description,
            "Found 4 files belonging to 2 classes. Using 4 for training. Ignored 2 other files.");
  EXPECT_TRUE(source.description.starts_with("Found 4 files belonging to 2 classes."))
      << source.description;
}

TEST_F(Open, one_class_is_enough_to_evaluate) {
  add_class("only", 3);
  EXPECT_NE(error(path()).find("one class, 'only'"), std::string::npos);
  DataSource source = open_data({.spec = path(), .validation_split = 0, .to_evaluate = true});
  EXPECT_EQ(source.train.size(), 3u);
  EXPECT_EQ(source.description, "Found 3 files belonging to 1 class.");
  EXPECT_FALSE(source.own_validation);
}

TEST_F(Open, labels_are_translated_by_name) {
  for (const char* name : {"b", "d", "a"}) add_class(name, name[0] - 'a' + 1);
  const std::uint64_t fingerprint = open_here().dataset->fingerprint();
  const std::vector<std::string> classes{"d", "c", "b", "a"};
  const auto data = with_classes(open_here().dataset, classes);
  EXPECT_EQ(data->classes(), classes);
  EXPECT_EQ(data->fingerprint(), fingerprint);
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < data->size(); ++i) {
    const std::string folder = fs::path(data->name(i)).parent_path().filename();
    EXPECT_EQ(classes[static_cast<std::size_t>(data->label(i))], folder);
    ++counts[folder];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"a", 1}, {"b", 2}, {"d", 4}}));
  try {
    with_classes(open_here().dataset, {"a", "B"});
    FAIL() << "labels that mean nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("the classes b, d, which"), std::string::npos)
        << error.what();
  }
}

TEST_F(Open, kaggle_names) {
  for (const char* name :
       {"dog.10.jpg", "cat.2.jpg", "cat.0.jpg", "big.dog.3.JPG", "7.jpg", "x.txt"}) {
    add(name);
  }
  const DataSource source = open_here(0);
  EXPECT_EQ(names(source),
            (Names{"big.dog.3.JPG big.dog", "cat.0.jpg cat", "cat.2.jpg cat", "dog.10.jpg dog"}));
  EXPECT_EQ(source.ignored, 2u) << "7.jpg has no label, x.txt is no picture";
}

TEST_F(Open, list_file) {
  add("pictures/a.png"), add("b.png");
  write_bytes(path("list.tsv"),
              bytes_of("\xEF\xBB\xBFpath\tlabel\r\npictures/a.png\tzebra\r\n\n# a comment\n" +
                       path("b.png") + "\tant"));
  write_bytes(path("list.csv"), bytes_of("pictures/a.png,zebra\nb.png,ant\n"));
  for (const char* list : {"list.tsv", "list.csv"}) {
    const DataSource source = open(path(list), 0);
    EXPECT_EQ(names(source), (Names{"pictures/a.png zebra", "b.png ant"})) << list;
    std::vector<std::uint8_t> pixels(48);
    EXPECT_EQ(source.dataset->read(0, {4, 4, 3}, Resize::bilinear, pixels).status, ReadStatus::ok);
    EXPECT_EQ(source.dataset->read(1, {4, 4, 3}, Resize::bilinear, pixels).status, ReadStatus::ok);
  }
  write_bytes(path("bad.tsv"), bytes_of("a.png\tx\nb.png x\n"));
  EXPECT_NE(error(path("bad.tsv")).find("line 2"), std::string::npos);
  write_bytes(path("empty.txt"), {});
  EXPECT_NE(error(path("empty.txt")).find("empty.txt"), std::string::npos);
}

TEST_F(Open, own_validation_part) {
  for (const char* part : {"val", "validation", "test", "Test"}) {
    TemporaryFolder folder;
    const auto write = [&](const std::string& name) {
      write_bytes(folder.path() / name, picture_);
    };
    write("train/cat/1.png"), write("train/dog/1.png");
    write(std::string(part) + "/cat.9.png");  // one part flat, one in class folders
    const DataSource source = open(folder.path().string());
    EXPECT_EQ(source.train, (std::vector<std::uint32_t>{0, 1}));
    EXPECT_EQ(source.validation, (std::vector<std::uint32_t>{2}));
    EXPECT_EQ(source.dataset->label(2), 0);
    EXPECT_EQ(source.dataset->name(2), (folder.path() / part / "cat.9.png").string());
  }
}

TEST_F(Open, train_without_labelled_test_is_split) {
  add_class("train/cat", 10), add_class("train/dog", 10), add("test1/1.png"), add("test/2.png");
  const DataSource source = open_here(0.1);
  EXPECT_EQ(source.train.size(), 18u);
  EXPECT_EQ(source.validation.size(), 2u);
}

TEST_F(Open, train_may_be_a_class) {
  add("train/1.png"), add("ship/1.png"), add("car/1.png");
  EXPECT_EQ(open_here().dataset->classes(), (Names{"car", "ship", "train"}));
}

TEST_F(Open, validation_must_not_have_classes_of_its_own) {
  add("train/cat/1.png"), add("train/dog/1.png"), add("val/cow/1.png");
  EXPECT_NE(error(path()).find("cow"), std::string::npos);
}

TEST_F(Open, an_empty_class_is_skipped_while_two_are_left) {
  add("cat/1.png"), add("dog/1.png");
  fs::create_directory(folder_.path() / "cow");
  EXPECT_EQ(open_here().dataset->classes(), (Names{"cat", "dog"}));
  fs::remove(folder_.path() / "dog/1.png");
  const std::string message = error(path());
  EXPECT_NE(message.find("two classes"), std::string::npos) << message;
  EXPECT_NE(message.find("'cow', 'dog'"), std::string::npos) << message;
  fs::remove(folder_.path() / "cat/1.png");
  EXPECT_NE(error(path()).find("no images in '" + path()), std::string::npos);
}

TEST_F(Open, links_are_not_followed) {
  add("cat/1.png"), add("dog/1.png");
  fs::create_symlink(folder_.path() / "cat/1.png", folder_.path() / "dog/2.png");
  fs::create_directory_symlink(folder_.path() / "cat", folder_.path() / "cow");
  const DataSource source = open_here(0);
  EXPECT_EQ(names(source), (Names{"cat/1.png cat", "dog/1.png dog"}));
  EXPECT_EQ(source.ignored, 2u);
}

TEST_F(Open, what_is_not_there_is_named) {
  EXPECT_NE(error(path("none")).find("'" + path("none") + "' does not exist"), std::string::npos);
  EXPECT_NE(error("idx:" + path("none")).find(path("none")), std::string::npos);
  add("picture.png");
  EXPECT_NE(error(path("picture.png")).find("picture.png"), std::string::npos);
}

TEST_F(Open, unreadable_folder) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  add("cat/1.png"), add("dog/1.png");
  fs::permissions(folder_.path() / "dog", fs::perms::none);
  EXPECT_NE(error(path()).find("dog' cannot be read"), std::string::npos);
  fs::permissions(folder_.path() / "dog", fs::perms::owner_all);
}

TEST_F(Open, fingerprint_changes_with_names_sizes_and_labels_only) {
  add("cat/1.png"), add("dog/1.png");
  const auto first = open_here().dataset->fingerprint();
  EXPECT_EQ(open_here().dataset->fingerprint(), first);
  TemporaryFolder elsewhere;
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

TEST(OpenSynthetic, sizes) {
  const DataSource paper = open_data({.spec = "synthetic"});
  EXPECT_EQ(paper.train.size(), 22'500u);
  EXPECT_EQ(paper.validation.size(), 2'500u);
  EXPECT_EQ(open_data({.spec = "synthetic:64"}).dataset->size(), 64u);
  for (const char* spec : {"synthetic:", "synthetic:1", "synthetic:-4", "synthetic:4x"}) {
    try {
      open_data({.spec = spec});
      ADD_FAILURE() << spec;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(spec), std::string::npos);
    }
  }
}

std::map<int, std::size_t> by_class(const DataSource& source,
                                    const std::vector<std::uint32_t>& part) {
  std::map<int, std::size_t> counts;
  for (const std::uint32_t sample : part) ++counts[source.dataset->label(sample)];
  return counts;
}

TEST(OpenSynthetic, limits_keep_the_classes_proportions_and_are_chosen_by_seed) {
  const auto open = [](std::size_t train, std::size_t validation, std::uint64_t seed) {
    return open_data({.spec = "synthetic:1000",
                      .validation_split = 0.2,
                      .seed = seed,
                      .limit_train = train,
                      .limit_validation = validation});
  };
  const DataSource source = open(300, 50, 7), again = open(300, 50, 7), other = open(300, 50, 8);
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

}  // namespace
}  // namespace cputrain
