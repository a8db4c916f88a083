"""How the Dockerfile and the Apptainer definition are read, and that they name what there is."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "scripts", "package")
sys.path.insert(0, PACKAGE)
import recipes  # noqa: E402


def text_of(name):
    with open(os.path.join(PACKAGE, name)) as file:
        return file.read()


class Reading(unittest.TestCase):
    def test_dockerfile(self):
        stages = recipes.read_dockerfile(
            "# a comment\nFROM debian:12-slim AS build\nCOPY . /src\nRUN one && \\\n    two\n\nFROM debian:12-slim\n"
            'COPY --from=build /a /b\nUSER me\nCMD ["--help"]\n')
        self.assertEqual(stages, [
            {"base": "debian:12-slim", "name": "build", "steps": [("COPY", ". /src"), ("RUN", "one && two")]},
            {"base": "debian:12-slim", "name": "",
             "steps": [("COPY", "--from=build /a /b"), ("USER", "me"), ("CMD", '["--help"]')]}])

    def test_definition(self):
        stages = recipes.read_definition(
            "# a comment\nBootstrap: docker\nFrom: debian:12\nStage: build\n\n%files\n    a /b\n\n%post\n    one\n"
            "    two\n"
            "Bootstrap: docker\nFrom: debian:12\n%files from build\n    /x /y\n%help\n    From: words\n")
        self.assertEqual([s["header"] for s in stages],
                         [{"Bootstrap": "docker", "From": "debian:12", "Stage": "build"},
                          {"Bootstrap": "docker", "From": "debian:12"}])
        self.assertEqual(stages[0]["sections"], [("files", "", "    a /b\n\n"), ("post", "", "    one\n    two\n")])
        self.assertEqual(stages[1]["sections"], [("files", "from build", "    /x /y\n"),
                                                 ("help", "", "    From: words\n")])

    def test_what_is_not_known_is_refused(self):
        for text in ("FROM x\nADD a b\n", "RUN x\n"):
            with self.assertRaises(ValueError):
                recipes.read_dockerfile(text)
        for text in ("Bootstrap: docker\n%setup\n", "words\n"):
            with self.assertRaises(ValueError):
                recipes.read_definition(text)


class OurRecipes(unittest.TestCase):
    def test_sources_that_they_copy_exist(self):
        for stage in recipes.read_dockerfile(text_of("Dockerfile")):
            for word, value in stage["steps"]:
                if word == "COPY" and not value.startswith("--from"):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, value.split()[0])), value)
        first, last = recipes.read_definition(text_of("cputrain.def"))
        sections = {name: text for name, _, text in first["sections"]}
        for line in filter(str.strip, sections["files"].splitlines()):
            source, target = line.split()
            self.assertEqual(target, "/src/" + source)
            self.assertTrue(source == ".git" or os.path.exists(os.path.join(ROOT, source)), source)
        self.assertEqual([name for name, _, _ in last["sections"]],
                         ["files", "post", "environment", "runscript", "test", "labels", "help"])

    def test_everything_that_the_build_includes_is_copied(self):
        [files] = [text for name, _, text in recipes.read_definition(text_of("cputrain.def"))[0]["sections"]
                   if name == "files"]
        copied = [line.split()[0] for line in files.splitlines() if line.strip()]
        with open(os.path.join(ROOT, "scripts", "cmake", "CputrainPackage.cmake")) as file:
            paths = re.findall(r"\$\{PROJECT_SOURCE_DIR\}/([\w./-]+)", file.read())
        self.assertGreater(len(paths), 4)
        for path in paths:
            self.assertTrue(any(path == c or path.startswith(c + "/") for c in copied), path)

    def test_entrypoint(self):
        entrypoint = os.path.join(PACKAGE, "entrypoint.sh")
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        program = os.path.join(holder.name, "cputrain")
        with open(program, "w") as file:
            file.write('#!/bin/sh\necho "cputrain: $*"\n')
        os.chmod(program, 0o755)
        environment = {**os.environ, "PATH": holder.name + ":" + os.environ["PATH"]}
        for words, answer in (([], "cputrain: "), (["--help"], "cputrain: --help"),
                              (["eval", "--weights", "a b"], "cputrain: eval --weights a b"),
                              (["cputrain", "info"], "cputrain: info"), (["sh", "-c", "echo shell"], "shell"),
                              (["/bin/echo", "x"], "x")):
            with self.subTest(words=words):
                done = subprocess.run(["sh", entrypoint, *words], text=True, capture_output=True, env=environment,
                                      timeout=30)
                self.assertEqual((done.stdout.strip("\n"), done.stderr), (answer, ""))


if __name__ == "__main__":
    unittest.main()
