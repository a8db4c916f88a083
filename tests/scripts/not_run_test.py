"""scripts/not_run, and what skips look like in the logs that it reads."""
import os
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TILES = """[ RUN      ] Tiles/A.Adds/hardware
/a/each_tiles.h:23: Skipped
this CPU cannot run the tiles hardware

[  SKIPPED ] Tiles/A.Adds/hardware (0 ms)
[ RUN      ] B.Counts
/a folder/b_test.cpp:9: Skipped
no seccomp here
in two lines

[  SKIPPED ] B.Counts (0 ms)
[ RUN      ] B.Ends
[  SKIPPED ] B.Ends (0 ms)
[ RUN      ] B.Goes
[       OK ] B.Goes (1 ms)
[  SKIPPED ] 3 tests, listed below:
[  SKIPPED ] B.Counts
"""
# Made by Python itself; its last word is where this file has it.
SKIPS = """import unittest
class C(unittest.TestCase):
    @unittest.skip("it's for two")
    def test_a(self): pass
    def test_a_passes(self): print("it said: 3 images skipped 'x'")
    def test_b(self):
        \"\"\"With words of its own.\"\"\"
        print("said meanwhile")
        self.skipTest("no GPU")
    def test_c(self): pass
unittest.main()
"""


class NotRun(unittest.TestCase):
    def line(self, *tests):
        with tempfile.TemporaryDirectory(prefix="cputrain-test-") as folder:
            path = os.path.join(folder, "junit.xml")
            with open(path, "w") as file:
                rows = "".join(f'<testcase name="{name}" status="{status}"><system-out>{escape(said)}</system-out>'
                               "</testcase>" for name, status, said in tests)
                file.write(f"<testsuite>{rows}</testsuite>")
            return subprocess.run([os.path.join(ROOT, "scripts", "not_run"), path], check=True, text=True,
                                  capture_output=True).stdout

    def test_names_tests_and_cases_by_what_they_lack(self):
        python = subprocess.run([sys.executable, "-c", SKIPS, "-v"], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT).stdout
        self.assertEqual(
            self.line(("x_device", "notrun", "skipped: no CUDA-capable device\n"), ("x", "notrun", "no GPU here\n"),
                      ("hosts_ssh", "notrun", "two_hosts: skipped: sshd is not here\n\n"), ("cpu_tiles", "run", TILES),
                      ("cli_python", "run", python)),
            "not run here: GPU (2 tests), sshd is not here (1 test), AMX (1 case), no seccomp here (1 case), "
            "no reason given (1 case), it's for two (1 case), GPU (1 case)\n")

    def test_leaves_out_what_passed_elsewhere(self):
        passed = "".join(f"[       OK ] {name} (3 ms)\n" for name in ("Tiles/A.Adds/hardware", "B.Counts"))
        self.assertEqual(self.line(("cpu_tiles", "run", TILES), ("cpu_tiles_avx2", "run", passed)),
                         "not run here: no reason given (1 case)\n")
        self.assertEqual(self.line(("a", "run", "")), "not run here: nothing; all cases of these tests ran\n")


if __name__ == "__main__":
    unittest.main()
