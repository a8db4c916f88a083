"""GTEST_SKIP returns from the function that it stands in: a helper that skips leaves the test going on. So it stands in
tests and in SetUp() alone, and no SetUp() calls that of its base."""
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAY_SKIP = re.compile(r"\s*(TEST(_F|_P)?|TYPED_TEST(_P)?)\(|\s*void SetUp\(\) (override|final)\b")
NO_FUNCTION = re.compile(r"\s*(((\} )?else|if|for|while|do|switch|case|default|(\} )?catch|try)\b|\{|//)")


def indent(line):
    return len(line) - len(line.lstrip())


def function_around(lines, at, column):
    """The line with which the function begins that a word is in, by the indentation that clang-format gives."""
    if "{" in lines[at][:column] and not NO_FUNCTION.match(lines[at]):
        return lines[at]
    depth = indent(lines[at])
    for line in reversed(lines[:at]):
        if not line.strip() or line.startswith("#") or indent(line) >= depth:
            continue
        if not NO_FUNCTION.match(line):
            return line
        depth = indent(line)
    return ""


def wrong_skips(text):
    """The numbers of lines whose skip ends no test."""
    lines, found = text.splitlines(), []
    for number, line in enumerate(lines):
        skip = re.search(r"\bGTEST_SKIP\(", line)
        if skip and not MAY_SKIP.match(function_around(lines, number, skip.start())):
            found.append(number + 1)
        elif re.search(r"\w::SetUp\(\);", line):
            found.append(number + 1)
    return found


class Skips(unittest.TestCase):
    def test_end_the_test(self):
        wrong = []
        for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
            for path in (os.path.join(folder, name) for name in names if name.endswith((".cpp", ".h"))):
                with open(path, errors="replace") as file:
                    wrong += [f"{os.path.relpath(path, ROOT)}:{number}" for number in wrong_skips(file.read())]
        self.assertFalse(wrong, "\nThe test goes on behind these skips: " + ", ".join(wrong))

    def test_are_found_where_they_end_a_helper(self):
        for helper in ("void helper() {\n  if (!here) GTEST_SKIP();\n}",
                       "void helper(const Long& a,\n            const Long& b) {\n  GTEST_SKIP();\n}",
                       "void helper() { GTEST_SKIP(); }", "format::Done helper() {\n  GTEST_SKIP();\n}",
                       "class A : public Test {\n protected:\n  void check() {\n    GTEST_SKIP();\n  }\n};",
                       "TEST(A, B) {\n  each([&] {\n    if (!here) {\n      GTEST_SKIP();\n    }\n  });\n}",
                       "TEST(A, B) {\n  each([&] { GTEST_SKIP(); });\n}",
                       "void A::SetUp() {\n  Base::SetUp();\n}"):
            self.assertEqual(len(wrong_skips(helper)), 1, helper)

    def test_may_stand_in_blocks_of_a_test(self):
        for test in ("TEST(A, B) {\n  GTEST_SKIP();\n}", "TEST_P(A, B) { GTEST_SKIP(); }",
                     "TEST_F(ALongName,\n       ThatTakesTwoLines) {\n  GTEST_SKIP();\n}",
                     "TEST(A, B) {\n  for (int i : all) {\n    if (here) {\n    } else {\n      GTEST_SKIP();\n    }\n  }\n}",
                     "TEST(A, B) {\n  if (one &&\n      two) {\n    GTEST_SKIP();\n  }\n}",
                     "TEST(A, B) {\n#if X\n  GTEST_SKIP();\n#endif\n  {\n    GTEST_SKIP();\n  }\n}",
                     "class A : public Test {\n protected:\n  void SetUp() override {\n    if (x) GTEST_SKIP();\n  }\n};"):
            self.assertEqual(wrong_skips(test), [], test)


if __name__ == "__main__":
    unittest.main()
