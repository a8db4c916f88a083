"""scripts/build_cost in a small project: it builds two commits, says what each took, and leaves nothing behind."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class BuildCost(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.root = os.path.join(holder.name, "small")
        os.makedirs(os.path.join(self.root, "scripts"))
        os.makedirs(os.path.join(self.root, "src", "core"))
        shutil.copy(os.path.join(ROOT, "scripts", "build_cost"), os.path.join(self.root, "scripts"))
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(small LANGUAGES CXX)\n"
                                     "add_subdirectory(src/core)\n")
        self.write("src/core/CMakeLists.txt", "add_executable(cputrain main.cpp)\n")
        self.commit("int main() {}\n")
        self.commit("#include <regex>\nint main() { return std::regex_match(\"a\", std::regex(\"b\")); }\n")

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_here(self, *words):
        return subprocess.run(words, cwd=self.root, text=True, capture_output=True, timeout=240, check=False,
                              env={**os.environ, "TMPDIR": os.path.dirname(self.root)})

    def commit(self, text):
        self.write("src/core/main.cpp", text)
        for words in (["init", "-q"], ["add", "-A"],
                      ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
            done = self.run_here("git", *words)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_says_what_two_commits_take(self):
        done = self.run_here("scripts/build_cost", "HEAD~1", "HEAD")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        ratio = re.search(r"^cputrain: \d+ of \d+ CPU-seconds, ([\d.]+) of it", done.stdout, re.M)
        self.assertGreater(float(ratio[1]), 1, done.stdout)
        self.assertRegex(done.stdout, r"\| src/core \| \d+ \| \d+ \|")
        self.assertEqual(os.listdir(os.path.dirname(self.root)), ["small"])
        self.assertEqual(len(self.run_here("git", "worktree", "list").stdout.splitlines()), 1)

    def test_a_commit_that_does_not_build_is_shown(self):
        self.commit("int main() { return nothing; }\n")
        done = self.run_here("scripts/build_cost", "HEAD~1", "HEAD")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing", done.stderr)
        self.assertEqual(os.listdir(os.path.dirname(self.root)), ["small"])


if __name__ == "__main__":
    unittest.main()
