"""Files of images that are gone when they are to be decoded again: a training stops after its last whole step, also in
its first epoch, and goes on when they are back."""
import os
import shutil
import subprocess
import unittest

from program import PROGRAM, mpirun, needs_mpi, wait_until
from tiny import TinyTest

# An epoch has 81 steps: each of 108 images is used six times.
WORDS = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--log-every", "1", "--reproducible", "--epochs",
         "2", "--expand", "six", "--cache", "none", "--prefetch", "0", "--resume", "auto"]


class VanishedFiles(TinyTest):
    def setUp(self):
        super().setUp()
        self.make("data", cat=60, dog=60)

    def train_and_move(self, launch=()):
        """What a training said under which images vanish in its step 70, which is slow: all were read before."""
        fault = ",".join(f"slow:0:70:{phase}" for phase in ("input", "forward", "backward"))
        with open(self.path("log"), "w+") as log, subprocess.Popen(
                [*launch, PROGRAM, *WORDS, "--out", "run"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env={**os.environ, "CPUTRAIN_FAULT": fault}) as process:
            self.addCleanup(process.kill)
            wait_until(lambda: len(self.lines()) >= 67, process, pause=0.02)
            os.mkdir(self.path("gone"))
            for i in range(40):
                shutil.move(self.path("data/dog", f"{i}.bmp"), self.path("gone"))
            code = process.wait(60)
            log.seek(0)
            text = log.read()
        self.assertEqual(code, 65, text)
        return text

    def expect_stop(self, text, ranks=0):
        self.assertIn("cannot be read: unreadable", text)
        self.assertNotIn("begins anew", text)
        steps = [m["step"] for m in self.metrics("run", "step")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertTrue(67 <= len(steps) < 81, steps)
        self.assertIn(f"Stopped after step {len(steps)}", text)
        for name in os.listdir(self.path("gone")):
            shutil.move(self.path("gone", name), self.path("data/dog"))
        for run in ("run", "whole"):
            self.expect(0, *WORDS, "--out", run, ranks=ranks)
        self.assertEqual(*(self.metrics(run, "summary")[0]["weights_hash"] for run in ("run", "whole")))
        self.assertEqual(*([m["loss"] for m in self.metrics(run, "step")] for run in ("run", "whole")))

    def test_in_the_first_epoch(self):
        self.expect_stop(self.train_and_move())

    @needs_mpi
    def test_under_several_ranks(self):
        self.expect_stop(self.train_and_move(mpirun(2)), ranks=2)


if __name__ == "__main__":
    unittest.main()
