"""A day's summary names what a wrong kernel computes: the day's own steps, with a bug of tests/cuda/bugs."""
import os
import shutil
import sys
import tempfile
import time
import unittest
from unittest import mock

from program import PROGRAM

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "gpu", "day"))
import bundle
import context
import day as days
import processes
import results
import summary

BUILD = os.path.dirname(PROGRAM)
PLUGIN = os.path.join(BUILD, "tests", "cuda", "bugs", "swapped_fragment", "libcputrain_cuda_emulated.so")


@unittest.skipUnless(os.path.exists(PLUGIN), "this build has no kernels with bugs")
@unittest.skipUnless(os.path.exists(os.path.join(BUILD, "libcputrain_cuda.so")), "this build has no backend cuda")
class Bug(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        for name in ("bin", "emulated", "out"):
            os.mkdir(self.path(name))
        os.symlink(PROGRAM, self.path("bin", "cputrain"))
        shutil.copy(PLUGIN, self.path("emulated", "libcputrain_cuda.so"))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def test_the_summary_says_so(self):
        found = results.Results(self.path("out"))
        found.head = {"device": "a device", "quick": True, "pack": "abc", "date": "today", "seconds": 1.0, "budget": 2}
        commands = processes.Commands(self.path("out", "log.txt"), self.folder)
        day = context.Day(bundle.Bundle(self.folder), commands, found, 200, True, True, time.monotonic())
        with mock.patch.object(days, "say"):
            days.make_steps(day, found, only=["selftest"])
        steps = {step.name: step for step in found.steps}
        self.assertEqual(steps["selftest"].outcome, "failed", steps["selftest"].text)
        self.assertRegex(steps["selftest"].text, r"^\d+ of \d+ cases: convolution forward")
        self.assertEqual(steps["selftest again"].outcome, "ok", "a wrong kernel is wrong in the same way again")
        page = summary.text(found)
        self.assertTrue(page.endswith("FAILED: selftest\n"), page)
        self.assertRegex(page, "Details: selftest: .*convolution forward")


if __name__ == "__main__":
    unittest.main()
