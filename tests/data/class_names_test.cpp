#include "data/classes/class_names.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace cputrain::data {
namespace {

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
  EXPECT_TRUE(are_names_of_nameless(std::vector<std::string>{"class 0", "class 1"}));
  EXPECT_FALSE(are_names_of_nameless(std::vector<std::string>{"class 1", "class 0"}));
  EXPECT_FALSE(are_names_of_nameless(std::vector<std::string>{"class 0", "dog"}));
  for (const char* name : {"class 1", "class 1 (no name)", "class 1 (no name) (no name)"}) {
    EXPECT_TRUE(is_name_of_nameless(name, 1)) << name;
  }
  for (const char* name : {"class 2", "class 1 ", "class 1(no name)", " (no name)", "", "cat"}) {
    EXPECT_FALSE(is_name_of_nameless(name, 1)) << name;
  }
  EXPECT_EQ(name_of_nameless(std::vector<std::string>{"class 1", "class 1 (no name)"}, 1),
            "class 1 (no name) (no name)");
}

}  // namespace
}  // namespace cputrain::data
