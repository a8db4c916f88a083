// List files as people and their programs write them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "datasets/lists/list_file.h"
#include "tests/datasets/open_fixture.h"

namespace cputrain::datasets {
namespace {

using Names = std::vector<std::string>;
namespace fs = std::filesystem;

class List : public OpenTest {
 protected:
  void SetUp() override { add("a.png"), add("b.png"), add("with, comma.png"); }

  Names rows(const std::string& name, const std::string& text) {
    add_text(name, text);
    Names rows;
    const ImageFiles files = read_list(path(name)).files;
    for (std::size_t i = 0; i < files.size(); ++i)
      rows.push_back(std::string(files.path(i)) + "|" + files.label(i));
    return rows;
  }
  /// Most memory so far, in KiB.
  static long peak() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
  }
  void expect_list_refused(const std::string& name, const std::string& text, const Names& words) {
    add_text(name, text);
    const std::string message = error(path(name));
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << word << " is not in: " << message;
    }
  }
};

const Names kTwo{"a.png|zebra", "b.png|ant"};

TEST_F(List, SeparatorsBlanksQuotesAndEndsOfLines) {
  const std::vector<std::pair<std::string, std::string>> forms{
      {"1.tsv", "a.png\tzebra\nb.png\tant\n"},
      {"2.tsv", "\xEF\xBB\xBFpath\tlabel\r\na.png\tzebra\r\n\r\nb.png\tant"},
      {"3.tsv", "  a.png \t zebra  \n\t\n   \nb.png\tant \n"},
      {"4.txt", "a.png\tzebra\rb.png\tant\r"},
      {"5.tsv", "\"a.png\"\t\"zebra\"\nb.png\tant\n"},
      {"1.csv", "a.png,zebra\nb.png,ant\n"},
      {"2.csv", "a.png, zebra\nb.png , ant \n"},
      {"3.csv", "\"a.png\",\"zebra\"\r\n\"b.png\",\"ant\"\r\n"},
      {"4.csv", "\"a.png\" , \" zebra \"\nb.png,ant\xC2\xA0\n"},
      {"5.CSV", "a.png;zebra\nb.png;ant\n"},
      {"6.csv", "a.png\tzebra\nb.png\tant\n"},
      {"7.csv", "# made by hand\n\na.png,zebra\nb.png,ant"}};
  for (const auto& [name, text] : forms) EXPECT_EQ(rows(name, text), kTwo) << name;
}

TEST_F(List, QuotesKeepSeparatorsQuotesAndLines) {
  EXPECT_EQ(rows("q.csv", "\"with, comma.png\",\"big \"\"cat\"\"\"\n\"two\nlines.png\",ant\n"),
            (Names{"with, comma.png|big \"cat\"", "two\nlines.png|ant"}));
  EXPECT_EQ(rows("q.tsv", "5\" disk.png\tzebra\nwith, comma.png\tant\n"),
            (Names{"5\" disk.png|zebra", "with, comma.png|ant"}));
}

TEST_F(List, HeadersNameTheColumns) {
  for (const std::string header : {"path,label", "filename,class", "image,label", "picture,label",
                                   "image_path,label", "File Name,Class Name", "img,target",
                                   "id,breed", "FILEPATH,CATEGORY", "image_id,class_id"}) {
    EXPECT_EQ(rows("h.csv", header + "\na.png,zebra\nb.png,ant\n"), kTwo) << header;
  }
  EXPECT_EQ(rows("i.csv", ",filename,width,label\n0,a.png,5,zebra\n1,b.png,6,ant\n"), kTwo);
  EXPECT_EQ(rows("j.csv", "label,path\nzebra,a.png\nant,b.png\n"), kTwo);
  EXPECT_EQ(rows("k.tsv", "class_id\tclass\tid\tpath\n3\tzebra\t7\ta.png\n4\tant\t8\tb.png\n"),
            kTwo);
}

TEST_F(List, OnlyWhatStandsAboveTheRowsIsAComment) {
  EXPECT_EQ(rows("a.csv", "a.png,zebra\n#1.png,ant\n"), (Names{"a.png|zebra", "#1.png|ant"}));
  EXPECT_EQ(rows("b.csv", "#1.png,ant\na.png,zebra\n"), (Names{"#1.png|ant", "a.png|zebra"}));
  EXPECT_EQ(rows("c.csv", "#made, by hand\n# old.png,x\na.png,zebra\nb.png,ant\n"), kTwo);
  EXPECT_EQ(rows("d.tsv", "path\tlabel\n#a/2.png\tant\n"), Names{"#a/2.png|ant"});
  expect_list_refused("e.csv", "a.png,zebra\n# a comment\nb.png,ant\n", {"line 2", "1 field"});
}

TEST_F(List, AColumnOfPartsDividesTheRows) {
  add("c.png"), add("d.png");
  struct Case {
    std::string header, train, validation, test;
  };
  const std::vector<Case> cases{{"filepaths,labels,data set", "train", "valid", "test"},
                                {"path,label,split", "Training", "val", "eval"},
                                {"image,class,Usage", "Training", "PublicEval", "PrivateTest"},
                                {"path,label,whatever", "train_set", "dev", "testing"}};
  for (const auto& [header, train, validation, test] : cases) {
    SCOPED_TRACE(header);
    add_text("p.csv", header + "\na.png,x," + test + "\nb.png,y," + train + "\nc.png,x," + train +
                          "\nd.png,y," + validation + "\n");
    const data::DataSource source = open(path("p.csv"));
    EXPECT_EQ(source.dataset->classes(), (Names{"x", "y"}));
    EXPECT_EQ(part(source, source.train), (Names{"b.png", "c.png"}));
    EXPECT_EQ(part(source, source.validation), Names{"d.png"});
    EXPECT_EQ(part(source, source.test), Names{"a.png"});
  }
  add_text("q.csv", "split,path,label\ntrain,a.png,x\ntrain,b.png,y\ntest,c.png,x\n");
  const data::DataSource source = open(path("q.csv"));
  EXPECT_EQ(part(source, source.validation), Names{"c.png"})
      << "test validates where none else does";
  EXPECT_EQ(source.validation_name, "by its column 'split'");
  EXPECT_TRUE(source.own_validation);
  add_text("r.csv", "path,label,set\na.png,x,train\nb.png,y,train\nc.png,x,val\nd.png,z,test\n");
  const data::DataSource other = open(path("r.csv"));
  EXPECT_EQ(other.dataset->classes(), (Names{"x", "y"}));
  ASSERT_EQ(other.warnings.size(), 2u);
  EXPECT_NE(other.warnings[1].find("(y) is for validation"), std::string::npos);
  EXPECT_NE(other.warnings[0].find("'z' of 'd.png'"), std::string::npos) << other.warnings[0];
}

TEST_F(List, ColumnsThatSeemToSayThePartAreRefused) {
  const std::string names = "path,label,";
  expect_list_refused("a.csv", names + "split\na.png,x,train\nb.png,y,other\n",
                      {"line 3", "'split'", "'other'"});
  expect_list_refused("b.csv", names + "is_train\na.png,x,1\nb.png,y,0\n", {"'is_train'", "'1'"});
  expect_list_refused("c.csv", names + "split\na.png,x,val\nb.png,y,test\n",
                      {"'split'", "for training"});
  expect_list_refused("d.csv", names + "split\na.png,x,train\nb.png,y,train\na.png,z,val\n",
                      {"'split'", "'z'"});
  expect_list_refused("e.csv", names + "split,part\na.png,x,train,test\nb.png,y,test,train\n",
                      {"'split' and 'part'"});
  expect_list_refused("f.csv",
                      names + "set\na.png,x,train\nb.png,y,val\na.png,x,eval\nb.png,x,test\n",
                      {"'set'", "evaluation"});
  const std::string rest = "\na.png,zebra,a\nb.png,ant,train\n";
  EXPECT_EQ(rows("g.csv", names + "toy" + rest), kTwo) << "neither by its name nor by all values";
  EXPECT_EQ(rows("h.csv", names + "dataset\na.png,zebra,ISIC\nb.png,ant,HAM\n"), kTwo);
}

TEST_F(List, WhatMayBeAHeaderIsRefused) {
  expect_list_refused("h.csv", "bild,art\na.png,zebra\nb.png,ant\n",
                      {"line 1", "header", "'bild'"});
  expect_list_refused("h.csv", "path,label,class\na.png,zebra,x\n",
                      {"header", "'label' and 'class'"});
  // A missing image is none: it is left out when images are read.
  EXPECT_EQ(rows("m.csv", "gone.png,zebra\na.png,zebra\nb.png,ant\n").size(), 3u);
  EXPECT_EQ(rows("n.csv", "gone,zebra\na.png,zebra\nb.png,ant\n").size(), 3u)
      << "its class comes up again";
}

TEST_F(List, RowsThatDoNotFitAreRefusedWithTheirLine) {
  expect_list_refused("a.tsv", "a.png\tx\nb.png x\n",
                      {"a.tsv' line 2", "1 field where line 1 has 2"});
  expect_list_refused("b.csv", "a.png,x\n\nwith, comma.png,y\n", {"line 3", "3 fields", "quotes"});
  expect_list_refused("c.csv", "a.png,1,x\nb.png,2,y\n", {"line 1", "3 fields", "header"});
  expect_list_refused("d.csv", "a.png,\nb.png,x\n", {"line 1", "class name is empty"});
  expect_list_refused("e.csv", "a.png,x\n ,y\n", {"line 2", "path is empty"});
  expect_list_refused("f.txt", "a.png x\nb.png y\n", {"line 1", "tab"});
  expect_list_refused("g.csv", "zebra,a.png\nant,b.png\n",
                      {"line 1", "'zebra'", "path comes first"});
  expect_list_refused("h.csv", "a.png,x\n\"b.png,y\n", {"line 2", "quote"});
  expect_list_refused("i.csv", "a.png,x\nb\"c.png,y\n", {"line 2", "quote"});
  expect_list_refused("j.txt", "", {"j.txt", "names no images"});
  expect_list_refused("k.csv", "path,label\n", {"k.csv", "names no images"});
}

/// More than `bytes` of text in one piece is refused with its line, before memory is spent on it.
TEST_F(List, PiecesHaveLimits) {
  const std::string row = "a.png,zebra\n";
  const std::string long_text(70'000, 'x');
  expect_list_refused("a.csv", row + std::string(20'000, ',') + "\n", {"line 2", "10,000 fields"});
  expect_list_refused("b.csv", std::string(20'000, ',') + "\n", {"line 1", "10,000 fields"});
  expect_list_refused("c.tsv", std::string(20'000, '\t') + "x\n", {"line 1", "10,000 fields"});
  expect_list_refused("d.csv", row + long_text + ",ant\n", {"line 2", "field", "65,536 bytes"});
  expect_list_refused("e.csv", row + "b.png," + long_text + "\n", {"line 2", "65,536 bytes"});
  expect_list_refused("f.csv", "path,label,note\na.png,zebra," + long_text + "\n",
                      {"line 2", "65,536 bytes"});
  const std::string million(1'100'000, 'x');
  expect_list_refused("g.csv", row + million + ",ant\n", {"line 2", "row", "1,048,576 bytes"});
  std::string lines = row + "\"b.png";
  for (int i = 0; i < 40'000; ++i) lines += "\n" + std::string(30, 'x');
  expect_list_refused("h.csv", lines, {"line 2", "1,048,576 bytes", "quotes have an end"});
  // Such rows as published lists have.
  std::string header = "path,label", values = "a.png,zebra";
  for (int i = 0; i < 5'000; ++i) {
    header += ",column" + std::to_string(i);
    values += ",0.123456789";
  }
  EXPECT_EQ(rows("i.csv", header + "\n" + values + "\n"), Names{"a.png|zebra"});
  EXPECT_EQ(rows("j.csv", row + "b.png,\"" + std::string(60'000, 'y') + "\"\n").size(), 2u);
}

/// Only what names images is kept of rows with many fields: 8 MB of commas would else be 256 MB of
/// fields.
TEST_F(List, FieldsThatAreNotUsedTakeNoMemory) {
  std::string text = "path,label" + std::string(4'000, ',') + "\n";
  for (int i = 0; i < 2'000; ++i) text += "a.png,x" + std::string(4'000, ',') + "\n";
  add_text("many.csv", text);
  const long before = peak();
  EXPECT_EQ(read_list(path("many.csv")).files.size(), 2'000u);
  EXPECT_LT(peak() - before, 7'000) << "the file itself has 8,000 of these";
}

/// FNV-1a over the names of classes, and for each row over its path, the file's bytes, and the
/// label; before a text its length.
TEST_F(List, RowsOfOneFileHaveAFingerprintOfTheirOwn) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  const auto add_number = [&](std::uint64_t number) {
    for (int i = 0; i < 8; ++i) hash = (hash ^ (number >> 8 * i & 0xFF)) * 0x100000001B3u;
  };
  const auto add_name = [&](const std::string& name) {
    add_number(name.size());
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  };
  add_name("x"), add_name("y");
  std::string text;
  for (std::size_t row = 0; row < 60; ++row) {
    const std::size_t file = row * 7 % 20, label = file % 2;
    const std::string name = "file" + std::to_string(file) + ".png";
    add_text(name, std::string(file + 1, '.'));
    text += name + (label == 0 ? ",x\n" : ",y\n");
    add_name(name), add_number(file + 1), add_number(label);
  }
  add_text("list.csv", text);
  EXPECT_EQ(open(path("list.csv")).dataset->fingerprint(), hash);
}

TEST_F(List, AFileThatIsNoListIsRefusedUnread) {
  add_text("sparse.csv", "");
  fs::resize_file(path("sparse.csv"), std::uintmax_t{3} << 30);
  EXPECT_NE(error(path("sparse.csv")).find("2 GiB"), std::string::npos);
}

TEST_F(List, OtherEncodingsAreNamed) {
  const std::string text = "a.png,zebra\nb.png,ant\n";
  std::string little = "\xFF\xFE", big = "\xFE\xFF", bare, wide;
  for (const char c : text) {
    little += c, little += '\0';
    big += '\0', big += c;
    bare += c, bare += '\0';
    wide += c, wide += std::string(3, '\0');
  }
  for (const std::string& bytes : {little, big, bare, wide}) {
    expect_list_refused("u.csv", bytes, {"UTF-16", "iconv"});
  }
  expect_list_refused("z.csv", text + std::string("a\0.png,ant\n", 11), {"line 3", "zero byte"});
}

TEST_F(List, AFileUnderTwoLabelsIsTold) {
  fs::create_symlink(path("b.png"), path("c.png"));
  add_text("one.csv", "a.png,x\nb.png,y\na.png,x\n");
  EXPECT_TRUE(open(path("one.csv")).warnings.empty()) << "twice under one label";
  for (const std::string& again : Names{"a.png,y", "./a.png,y", path("a.png") + ",y"}) {
    add_text("two.csv", "a.png,x\nb.png,y\n" + again + "\n");
    const data::DataSource source = open(path("two.csv"));
    ASSERT_EQ(source.warnings.size(), 1u) << again;
    EXPECT_NE(source.warnings[0].find("1 file has two labels (first: 'a.png' of 'x'"),
              std::string::npos)
        << source.warnings[0];
  }
  add_text("two.csv", "a.png,x\nb.png,y\nc.png,x\na.png,y\n");
  EXPECT_NE(open(path("two.csv")).warnings.at(0).find("2 files have two labels"),
            std::string::npos);
}

TEST_F(List, ImagesAreReadFromTheFolderOfTheList) {
  add("images/c.png");
  add_text("list.csv", "images/c.png,zebra\n" + path("b.png") + ",ant\n");
  const data::DataSource source = open(path("list.csv"), 0);
  EXPECT_EQ(names(source), (Names{"images/c.png zebra", "b.png ant"}));
  std::vector<std::uint8_t> pixels(48);
  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(source.dataset->read(i, {4, 4, 3}, data::Resize::bilinear, pixels).status,
              data::ReadStatus::ok);
  }
}

}  // namespace
}  // namespace cputrain::datasets
