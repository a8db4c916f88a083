"""tests/bench/two_builds.py: order of turns, verdicts and messages, with stand-ins for both programs."""
import os
import subprocess
import unittest

from program import ProgramTest, ROOT

SCRIPT = os.path.join(ROOT, "tests", "bench", "two_builds.py")
# A figure for each of its turns.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys
name, rates = {name!r}, {rates}
with open("turns", "a") as f:
    f.write(name + " " + " ".join(sys.argv[1:]) + chr(10))
with open("turns") as f:
    rate = rates[sum(line.startswith(name + " ") for line in f) - 1]
print(json.dumps({{"images_per_second": {{"median": rate}}, "cpu_seconds_per_image": {{"median": 1 / rate}},
                  "limit": {{"fma_gflops": rate, "triad_gbs": 2}}}}))
"""


class TwoBuilds(ProgramTest):
    def compare(self, old, new, *words):
        for name, rates in (("old", old), ("new", new)):
            self.tool(name, STAND_IN.format(name=name, rates=list(rates)))
        if os.path.exists(self.path("turns")):
            os.remove(self.path("turns"))
        done = subprocess.run([SCRIPT, "./old", "./new", "--rounds", str(len(old)), *words], cwd=self.folder, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_builds_take_turns_and_the_order_is_reversed(self):
        said = self.compare([10, 20, 30], [20, 40, 60], "--", "--model", "chips")
        turns = self.text_of("turns").splitlines()
        self.assertEqual([turn.split()[0] for turn in turns], ["old", "new", "new", "old", "old", "new"])
        self.assertEqual(set(turn.split(" ", 1)[1] for turn in turns),
                         {"bench step --threads 1 --model chips --json -"})
        self.assertIn("round 2: old 20.0 images/s, new 40.0", said)
        self.assertIn("images/s: old 20.00, new 40.00; new by old 2.000 (too few rounds", said)
        self.assertIn("limits: 60 GFLOP/s", said)

    def test_a_difference_is_one_that_the_interval_tells(self):
        said = self.compare([100] * 7, [101, 102, 103, 104, 105, 106, 107])
        self.assertIn("images/s: old 100.00, new 104.00; new by old 1.040 (1.010 to 1.070: better)", said)
        self.assertIn("CPU per image: old 10.00, new 9.62; new by old 0.962 (0.935 to 0.990: better)", said)
        said = self.compare([100] * 7, [90] * 7)
        self.assertEqual(said.count(": worse)"), 2)
        said = self.compare([100] * 7, [99, 102, 103, 104, 105, 106, 107])
        self.assertEqual(said.count(": no difference)"), 2)

    def test_a_program_that_fails_is_named_with_its_message(self):
        self.tool("fails", "#!/bin/sh\necho no such model >&2\nexit 2\n")
        done = subprocess.run([SCRIPT, "./fails", "./fails"], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (1, "./fails: no such model\n"))
        for words, says in ((["--rounds", "0"], "from 1"), (["--threads", "99999"], "CPUs")):
            done = subprocess.run([SCRIPT, "a", "b", *words], text=True, capture_output=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
