// Words that come from outside on their way to people, JSON and files.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "data/class_names.h"
#include "data/data_spec.h"
#include "support/temporary_folder.h"
#include "system/absolute_path.h"
#include "system/print.h"
#include "system/tell.h"

namespace cputrain {
namespace {

TEST(Outlets, EscapeWhatIsPutInAndKeepTheirOwnLines) {
  const std::string name = "x\nAll is well\x1b[2J";
  EXPECT_EQ(formatted("{}: {}\n", name, 3), "x\\nAll is well\\x1b[2J: 3\n");
  EXPECT_EQ(formatted("{:>6}|{:<4}|{:.2f}", "a\tb", std::string_view("\xe7\x8c\xab"), 1.5),
            "  a\\tb|\xe7\x8c\xab  |1.50");
  testing::internal::CaptureStdout();
  print("{}\n{}\n", name, "ok");
  print_lines("one\ntwo\x1b\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "x\\nAll is well\\x1b[2J\nok\none\ntwo\\x1b\n");
  testing::internal::CaptureStderr();
  tell("warning: " + name + std::string("\0z", 2));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: x\\nAll is well\\x1b[2J\\x00z\n");
}

TEST(JsonText, IsUtf8ThatSteersNoTerminalAndReadsBackTheSame) {
  for (const char* text : {"a\x1b[2J\n\t\x7f", "\xc2\x9b\xe2\x80\xae\xe2\x80\xa8",
                           "K\xc3\xa4se \xe7\x8c\xab \"q\" \\"}) {
    const nlohmann::ordered_json value{{text, {text, 1, nullptr}}};
    for (const int indent : {-1, 2}) {
      const std::string json = json_text(value, indent);
      EXPECT_EQ(escaped_lines(json), json);
      EXPECT_EQ(nlohmann::ordered_json::parse(json), value);
    }
  }
  EXPECT_EQ(json_text(nlohmann::json("\x7f\xc2\x9b")), "\"\\u007f\\u009b\"");
  EXPECT_EQ(json_text(nlohmann::json("K\xc3\xa4se")), "\"K\xc3\xa4se\"");
}

TEST(JsonText, TellsBytesThatAreNoUtf8Apart) {
  const nlohmann::json value{{"a\xff", {{"file", "caf\xe9"}, {"other", "caf\xea"}}}};
  EXPECT_EQ(json_text(value), R"({"a\\xff":{"file":"caf\\xe9","other":"caf\\xea"}})");
}

TEST(ClassNames, AnyTextOfUtf8WillDo) {
  const std::vector<std::string> fine{
      "tab\tname", "\n",  "\x1b[2J", " ", "..", "a,b", "\"", "\xe7\x8c\xab", std::string(1000, 'x'),
      "\xc2\x9b",  "Cat", "cat"};
  EXPECT_EQ(class_names_mistake(fine), "");
  for (const auto& [bad, says] :
       std::vector<std::pair<std::string, std::string>>{{"", "empty"},
                                                        {"caf\xe9", "caf\\xe9"},
                                                        {std::string("a\0", 2), "zero"},
                                                        {"Cat", "two classes"},
                                                        {std::string(1001, 'x'), "1000"}}) {
    auto names = fine;
    names.push_back(bad);
    EXPECT_NE(class_names_mistake(names).find(says), std::string::npos) << says;
    EXPECT_THROW(check_class_names("d", names), Error);
  }
  std::vector<std::string> many;
  for (int i = 0; i < 9000; ++i) many.push_back(std::to_string(i) + std::string(990, 'x'));
  EXPECT_NE(class_names_mistake(many), "");
}

TEST(ClassNames, NamelessOnesAreUnlikeTheOthers) {
  EXPECT_EQ(name_of_nameless(std::vector<std::string>{"a"}, 1), "class 1");
  for (const char* name : {"class 1", "class 1 (no name)", "class 1 (no name) (no name)"}) {
    EXPECT_TRUE(is_name_of_nameless(name, 1)) << name;
  }
  for (const char* name : {"class 2", "class 1 ", "class 1(no name)", " (no name)", "", "cat"}) {
    EXPECT_FALSE(is_name_of_nameless(name, 1)) << name;
  }
  EXPECT_EQ(name_of_nameless(std::vector<std::string>{"class 1", "class 1 (no name)"}, 1),
            "class 1 (no name) (no name)");
}

TEST(DataSpec, PathsBeginAtTheRootAndWordsStay) {
  const std::string here = std::filesystem::current_path().string();
  for (const auto& [spec, absolute] : std::vector<std::pair<std::string, std::string>>{
           {"synthetic", "synthetic"},
           {"synthetic:60", "synthetic:60"},
           {"d", here + "/d"},
           {"./d/../e", here + "/e"},
           {"/a/b", "/a/b"},
           {"list.csv", here + "/list.csv"},
           {"f.ctpack", here + "/f.ctpack"},
           {"cifar10:c", "cifar10:" + here + "/c"},
           {"cifar100:/c", "cifar100:/c"},
           {"idx:i", "idx:" + here + "/i"},
           {"inat:i", "inat:" + here + "/i"},
           {"coco:a.json", "coco:" + here + "/a.json"},
           {"coco:a.json,/b.json", "coco:" + here + "/a.json,/b.json"},
           {"other:d", here + "/other:d"},  // no word of ours: a folder's name
           {"a,b", here + "/a,b"}}) {
    EXPECT_EQ(absolute_data_spec(spec), absolute);
    EXPECT_EQ(absolute_data_spec(absolute), absolute) << "nothing to do a second time";
  }
}

/// The folder above a link is not the one above what the link names.
TEST(AbsolutePath, FollowsLinksBeforeItGoesUp) {
  const TemporaryFolder folder;
  const auto root = std::filesystem::canonical(folder.path());
  std::filesystem::create_directories(root / "far/away");
  std::filesystem::create_directory_symlink(root / "far/away", root / "link");
  std::filesystem::create_directory_symlink("loop", root / "loop");
  EXPECT_EQ(absolute_path((root / "link/../x").string()), (root / "far/x").string());
  EXPECT_EQ(absolute_path((root / "link").string()), (root / "far/away").string());
  EXPECT_EQ(absolute_path((root / "none/../x").string()), (root / "x").string());
  EXPECT_EQ(absolute_path((root / "loop/x").string()), (root / "loop/x").string());
  EXPECT_EQ(absolute_path(""), "");
  EXPECT_EQ(absolute_data_spec("coco:" + (root / "link/../a.json").string() + "," +
                               (root / "link/b.json").string()),
            "coco:" + (root / "far/a.json").string() + "," + (root / "far/away/b.json").string());
}

}  // namespace
}  // namespace cputrain
