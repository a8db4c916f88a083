"""Counts of the house: how much there is to hold in mind. Who exceeds one raises it here and says why in the commit."""
import collections
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import modules

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUDGET = {
    "lines of src": 74955,
    "files of src": 522,
    "files of src with at most 40 lines": 65,
    "types per 1,000 lines of src": 10.4,
    "percent of lines of src that are includes and namespaces": 8.5,
    "percent of functions in headers of src that one other file names": 23.8,
    "casts per 1,000 lines of backends": 17,
    "casts per 1,000 lines of datasets": 16,
    "lines of src/README.md": 300,
    "words of guides": 53975,
}
FUNCTION = r"^(?:[\w:<>,&*\s\[\]]+?)\b([a-z_]\w{3,})\s*\([^;{}]*\)\s*(?:const)?\s*;"
TYPE = r"\b(?:struct|class|enum class)\s+\w+(?:\s+final)?\s*(?::[^;{]*)?\{"
CAST = r"(?:static|reinterpret|const|dynamic)_cast\s*<"
FRAME = r"^(?:#include|#pragma once|namespace|\}  // namespace)"


def code_of(text):
    """Without comments and texts."""
    return re.sub(r'R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', " ", text, flags=re.S)


def counts(tree):
    texts = {path: tree.text(path) for path in tree.sources}
    code = {path: code_of(text) for path, text in texts.items()}
    src = [path for path in texts if path.startswith("src/")]

    def lines(paths):
        return sum(texts[path].count("\n") for path in paths)

    def found(what, where, paths):
        return sum(len(re.findall(what, where[path], re.M)) for path in paths)

    places = collections.defaultdict(set)
    for path, text in code.items():
        for word in re.findall(r"\b[a-z_]\w{3,}\b", text):
            places[word].add(os.path.splitext(path)[0])
    declared = [(os.path.splitext(path)[0], name) for path in src if path.endswith(".h")
                for name in re.findall(FUNCTION, code[path], re.M)]
    one = sum(len(places[name] - {place}) == 1 for place, name in declared)
    result = {
        "lines of src": lines(src),
        "files of src": len(src),
        "files of src with at most 40 lines": sum(texts[path].count("\n") <= 40 for path in src),
        "types per 1,000 lines of src": 1000 * found(TYPE, code, src) / lines(src),
        "percent of lines of src that are includes and namespaces": 100 * found(FRAME, texts, src) / lines(src),
        "percent of functions in headers of src that one other file names": 100 * one / max(len(declared), 1),
        "lines of src/README.md": tree.text("src/README.md").count("\n"),
        "words of guides": sum(len(tree.text(path).split()) for path in tree.files
                               if path.endswith(".md") and not path.startswith("results/")),
    }
    for top in ("backends", "datasets"):
        own = [path for path in texts if path.startswith(top + "/")]
        result[f"casts per 1,000 lines of {top}"] = 1000 * found(CAST, code, own) / lines(own)
    return result


class Budget(unittest.TestCase):
    def test_nothing_has_grown_unsaid(self):
        for what, count in counts(modules.Tree(ROOT)).items():
            with self.subTest(what):
                self.assertLessEqual(round(count, 1), BUDGET[what],
                                     "make it smaller, or raise the budget and say why in the commit")

    def test_what_is_counted(self):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("src/README.md", "# A\n"), ("src/core/a.h", "struct A {\n};\nint only_there(int);\n"),
                               ("src/core/b.cpp", "// struct B {\nint b = only_there(1);\n"),
                               ("backends/cpu/c.h", "static_cast<int>(1) // static_cast<\n"), ("datasets/d.h", "\n")):
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w") as file:
                    file.write(text)
            found = counts(modules.Tree(root))
        self.assertEqual(found["types per 1,000 lines of src"], 200)
        self.assertEqual(found["percent of functions in headers of src that one other file names"], 100)
        self.assertEqual(found["casts per 1,000 lines of backends"], 1000)


if __name__ == "__main__":
    unittest.main()
