"""The project's documents keep the rules, and each rule finds what breaks it."""
import os
import tempfile
import unittest

import documents
import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class OurDocuments(unittest.TestCase):
    def test_they_keep_the_rules(self):
        flags = rules.all_flags(os.environ["CPUTRAIN"], ROOT)
        paths = documents.documents(ROOT)
        self.assertLessEqual({"README.md", "src/README.md"}, set(paths))
        for path in paths:
            with self.subTest(path):
                found = rules.check(documents.Document(path, ROOT), flags)
                self.assertFalse(found, "\n" + "\n".join(map(str, found)))


class MadeUp(unittest.TestCase):
    """A folder with documents that are written for a test."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.root = holder.name

    def write(self, path, text=""):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w") as file:
            file.write(text)

    def document(self, text, path="guide.md"):
        self.write(path, text)
        return documents.Document(path, self.root)

    def found(self, text, path="guide.md"):
        return [str(f) for f in rules.check(self.document(text, path), {"--batch", "--out"})]


class Rules(MadeUp):
    def test_a_sound_document(self):
        self.write("src/loop.cpp")
        text = ("# Guide\n\nIt trains, e.g. on images. See [the loop](src/loop.cpp) and [above](#guide).\n\n"
                "1. First `--batch 3` is read.\n\n   ```sh\n   ./cputrain --out a\n   ```\n2. Then more.\n\n"
                "```sh\n./cputrain\n```\n\n<!-- not run: it needs Slurm -->\n```sh\nsbatch x\n```\n")
        self.assertEqual(self.found(text), [])

    def test_long_sentences(self):
        long = " ".join(["w"] * 30)
        self.assertEqual(self.found(f"Short.\nA {long}.\n"),
                         ["guide.md:2: a sentence of 31 words, more than 29: A w w w w w w w ..."])
        self.assertEqual(self.found(f"{' '.join(['w'] * 29)}.\n"), [])
        self.assertIn("guide.md:3: a sentence of 30 words", self.found(f"- Short.\n- Short, too.\n- {long}\n")[0])

    def test_what_is_no_sentence(self):
        long = " ".join(["w"] * 35)
        for text in (f"```text\n{long}\n```", f"| {long} |", f"# {long}", f"<!-- {long} -->", f"`{long}` is one word.",
                     f"[one]({'x' * 9}) two.", "<!--\n" + long + "\n-->"):
            self.write("x" * 9)
            self.assertEqual(self.found(text + "\n"), [], text)

    def test_where_sentences_end(self):
        document = self.document("[one](x) is here. [two](y), **too.** **Three** ends.\n")
        self.assertEqual([s.words for s in documents.sentences(document)], [3, 2, 2])
        document = self.document("One is `a. B` here. `Code` begins the second, e.g. One. (A third.) It has 3.5 of x.y."
                                 "\nLast one? Yes!\n\nNew paragraph\n- item\n- item two\n")
        self.assertEqual([(s.line, s.words) for s in documents.sentences(document)],
                         [(1, 4), (1, 6), (1, 2), (1, 5), (2, 2), (2, 1), (4, 2), (5, 1), (6, 2)])

    def test_links(self):
        self.write("docs/other.md", "# A `name`, and more\n## Twice\n## Twice\n")
        sound = "[a](docs/other.md#a-name-and-more) [b](docs/other.md#twice-1) [c](http://x.y)\n"
        self.assertEqual(self.found(sound), [])
        self.assertEqual(self.found("[a](../other.md) ![b](no.svg)\n[c](docs/other.md#none) [d](#none)\n`[e](no)`\n"
                                    '<img src="no.png" alt="no">\n'),
                         ["guide.md:1: a link out of the project: ../other.md",
                          "guide.md:1: a dead link: there is no no.svg",
                          "guide.md:2: a dead link: docs/other.md has no heading #none",
                          "guide.md:2: a dead link: guide.md has no heading #none",
                          "guide.md:4: a dead link: there is no no.png"])
        self.assertEqual(self.found("[a](other.md#twice)\n", "docs/guide.md"), [])

    def test_flags(self):
        self.assertEqual(self.found("`--batch 3`, `./cputrain --out=x --bach 3`\n"),
                         ["guide.md:1: no command has a flag --bach"])
        self.assertEqual(self.found("<!-- not run: needs a GPU -->\n```sh\n./cputrain --none  # --any\n```\n"),
                         ["guide.md:3: no command has a flag --none"])

    def test_flags_of_a_help(self):
        self.assertEqual(rules.flags_in("  --batch N   images\n  --[no-]bind   binds (see --out-x)"),
                         {"--batch", "--bind", "--no-bind", "--out-x"})

    def test_words_and_paths(self):
        home = "/ho" + "me/me"
        self.assertEqual([f.split(": ")[1] for f in self.found(f"A picture hangs on it.\n`pictures/cat` {home}/x\n")],
                         ['"picture"', '"hangs on"', "a path of somebody's machine"])

    def test_form(self):
        self.assertEqual(self.found("```\ntext\n```\n"),
                         ["guide.md:1: a fence without a language (```sh is run, ```text is not)"])
        self.assertEqual(self.found("```text\nopen\n"), ["guide.md:1: a fence that is never closed"])
        self.assertEqual(self.found("Text:\n\n    ./cputrain\n    more\n"),
                         ["guide.md:3: an indented block: write a fence (```sh, ```text)"])
        self.assertEqual(self.found("one\n=======\nanother\n"), ["guide.md:2: a mark of a merge that was not finished"])
        self.assertEqual(self.found("- item\n\n    goes on\n\n    and on\n"), [])
        self.assertEqual(self.found(f"{'x' * 121}\n| {'x' * 121} |\n"), ["guide.md:1: 121 characters, more than 120"])
        self.assertEqual(self.found("\n" * 131, "README.md"), ["README.md:131: 131 lines, more than 130"])
        self.assertEqual(self.found("\n" * 131), [])
        row = f"| {'x' * 120} | {'x' * 121} |\n"
        self.assertEqual(self.found(row, "README.md"), ["README.md:1: a cell of 121 characters, more than 120"])
        self.assertEqual(self.found(row), [])

    def test_readme_leads_to_every_guide(self):
        for guide in ("src/zoo/README.md", "datasets/README.md", "datasets/tutorial.md", "backends/cuda/README.md",
                      "src/README.md", "results/README.md"):
            self.write(guide, "# Guide\n")
        row = "| to | [guide](datasets/tutorial.md) [a](results/README.md) |\n"
        self.assertEqual(self.found(f"[zoo](src/zoo/README.md)\n\n{row}{row}", "README.md"),
                         ["README.md:1: its tables lead 0 times to datasets/README.md, not once",
                          "README.md:1: its tables lead 2 times to datasets/tutorial.md, not once",
                          "README.md:1: its tables lead 0 times to src/zoo/README.md, not once"])

    def test_marks(self):
        block, mark = "```sh\ntrue\n```\n", "<!-- not run: it needs Slurm -->\n"
        self.assertEqual(self.found(mark + "\nText.\n" + block),
                         ["guide.md:1: `not run:` stands on the line above a fence"])
        self.assertEqual(self.found("<!-- not run: minutes -->\n" + block),
                         ["guide.md:1: `not run:` needs a reason in words"])
        self.assertEqual(self.found("<!-- not run -->\n" + block),
                         ["guide.md:1: write <!-- not run: REASON --> or <!-- before: COMMAND --> on one line"])
        spans = "Write `<!-- not run: REASON -->` above, `<!--` begins it. <!-- A picture\n-->\n"
        self.assertEqual(self.found(spans), [])
        self.assertEqual(self.found((mark + block) * 2 + block * 4), [])
        self.assertEqual(self.found((mark + block) * 2 + block * 3),
                         ["guide.md:7: 2 of 5 blocks are marked `not run`, more than a third"])

    def test_what_is_generated(self):
        self.write("results/a/report.md", "# Table\n")
        self.write("results/a/report.csv")
        self.write("b.md", "<!-- Generated by a script -->\n")
        self.write("c.md", "# By hand\n")
        self.write("report.md", "# By hand\n")
        self.assertEqual(documents.documents(self.root), ["c.md", "report.md"])


if __name__ == "__main__":
    unittest.main()
