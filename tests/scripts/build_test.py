"""scripts/build from outside, with stand-ins for CMake and what it starts: what it asks for, and what it says."""
import os
import pty
import shutil
import subprocess
import unittest

from program import ProgramTest, ROOT

TOOLS = ("bash", "awk", "sed", "dirname", "basename", "cat", "env", "grep", "sort", "mkdir", "cksum", "cut", "tail", "sleep",
         "touch")
# Words of the last configuration go to `configured`; `ninja` has what a build says.
CMAKE = """case $1 in
  --version) echo "cmake version 3.25.1" ;;
  --build) echo "$*" >built; . ./ninja ;;
  *) printf '%s\n' "$@" >configured; touch "$FOLDER/build.ninja" ;;
esac
"""
FAILS = """for i in {1..99}; do echo "[$i/200] Building $i"; done
echo "FAILED: src/a.o"
echo "a.cpp:3:1: error: x was not declared"
for i in {1..99}; do echo "[1$i/200] Building"; done
exit 1
"""
SLOW = "echo '[1/20] Building a.o'; sleep 6; for i in {2..20}; do echo \"[$i/20] Building $i.o\"; done\n"


class Build(ProgramTest):
    def setUp(self):
        super().setUp()
        for folder in ("scripts", "tools"):
            os.mkdir(self.path(folder))
        for name in ("build", "help.sh"):
            shutil.copy(os.path.join(ROOT, "scripts", name), self.path("scripts"))
        shutil.copy(os.path.join(ROOT, "CMakePresets.json"), self.folder)
        for name in TOOLS:
            os.symlink(shutil.which(name), self.path("tools", name))
        self.tool(self.path("scripts", "setup"), '#!/bin/bash\necho "$*" >asked\n')
        self.tool(self.path("tools", "cmake"), "#!/bin/bash\n" + CMAKE)
        self.write("ninja", "echo 'ninja: no work to do.'\n")

    def build(self, *words, folder="build", **streams):
        if os.path.exists(self.path("configured")):
            os.remove(self.path("configured"))
        return subprocess.run([self.path("scripts", "build"), *words], cwd=self.folder, text=True, timeout=60,
                              env={"PATH": self.path("tools"), "FOLDER": folder}, stdin=subprocess.DEVNULL,
                              **(streams or {"capture_output": True}))

    def configured(self, *words, folder="build"):
        """The options of CMake with which a build was configured, none where it was not; and its packages."""
        done = self.build(*words, folder=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        options = self.text_of("configured").split() if os.path.exists(self.path("configured")) else []
        return [o for o in options if o.startswith("-DCPUTRAIN")], self.text_of("asked").split()

    def test_the_program_alone_needs_neither_tests_nor_simulator(self):
        without = ["-DCPUTRAIN_TESTS=OFF", "-DCPUTRAIN_SMPI=OFF"]
        self.assertEqual(self.configured(), (without, ["build"]))
        self.assertEqual(self.configured(), ([], ["build"]))  # as it was
        self.assertEqual(self.configured("--no-cuda", "dev", folder="build-dev"),
                         (["-DCPUTRAIN_CUDA=OFF", *without], ["build"]))
        self.tool(self.path("tools", "smpirun"), "#!/bin/bash\n")  # as after `scripts/setup simulator`
        self.assertEqual(self.configured(), (["-DCPUTRAIN_TESTS=OFF"], ["build"]))

    def test_other_targets_have_tests_and_simulator_and_a_folder_keeps_its_tests(self):
        self.tool(self.path("tools", "smpirun"), "#!/bin/bash\n")
        self.configured()
        self.assertEqual(self.configured("release", "all"), ([], ["build", "tests", "simulator"]))
        self.assertEqual(self.text_of("built"), "--build build --target all\n")
        self.assertTrue(os.path.exists(self.path("configured")))  # anew, since the options are others
        self.write("build/CMakeCache.txt", "CPUTRAIN_TESTS:BOOL=ON\n")
        self.assertEqual(self.configured(), ([], ["build"]))
        self.assertFalse(os.path.exists(self.path("configured")))

    def test_a_failure_shows_its_first_error_and_where_the_rest_is(self):
        self.write("ninja", FAILS)
        done = self.build()
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: x was not declared", done.stderr)
        self.assertIn(os.path.join(self.folder, "build", "build.log"), done.stderr)
        self.assertLess(len((done.stdout + done.stderr).splitlines()), 50)
        self.assertIn("[50/200] Building 50\n", self.text_of("build", "build.log"))

    def test_says_how_far_it_is_in_a_few_lines(self):
        self.write("ninja", SLOW)
        done = self.build()
        self.assertRegex(done.stderr, r"\Abuild: 5 of 20 steps, about (18|21|24|27) s left\n"
                                      r"build: 10 of 20 steps, about [6-9] s left\n"
                                      r"build: 15 of 20 steps, about [23] s left\n\Z")
        self.assertRegex(done.stdout, r"build: made cputrain in ([6-9]|1\d) s\n")

    def test_on_a_terminal_one_line_is_overwritten(self):
        self.write("ninja", SLOW)
        ours, theirs = pty.openpty()
        done = self.build(stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        said = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertEqual(done.returncode, 0)
        self.assertIn(" of 20 steps, about ", said)
        self.assertNotIn("\n", said)
        self.assertTrue(said.startswith("\r") and said.endswith("\r\x1b[K"), repr(said))


if __name__ == "__main__":
    unittest.main()
