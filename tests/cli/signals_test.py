"""Ctrl-C and termination: no completed step is lost."""
import json
import os
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, mpirun, needs_mpi

LONG = ["--image-size", "64", "--data", "synthetic:60", "--batch", "20", "--threads", "1", "--epochs",
        "100000", "--limit-val", "0", "--log-every", "1", "--out", "run"]


class Signals(ProgramTest):
    def start(self, launch=()):
        """Starts a training without end; returns once it has done a few steps."""
        self.process = subprocess.Popen([*launch, PROGRAM, *LONG], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.process.stderr.close)
        self.addCleanup(self.process.kill)
        end = time.time() + 60
        while self.lines() < 4:
            self.assertIsNone(self.process.poll(), "it ended by itself")
            self.assertLess(time.time(), end, "no step was made")
            time.sleep(0.05)

    def lines(self):
        path = self.path("run/metrics.jsonl")
        if not os.path.exists(path):
            return 0
        with open(path) as metrics:
            return len(metrics.readlines())

    def check_weights(self):
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data",
                           "synthetic:60", "--json", "-")
        self.assertGreater(json.loads(done.stdout)["images"], 0)

    def test_ctrl_c_finishes_the_step_and_saves(self):
        self.start()
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(30), 130)
        self.assertEqual(self.metrics("run", "summary")[0]["outcome"], "interrupted")
        self.check_weights()

    def test_sigterm_saves_the_last_completed_step(self):
        self.start()
        self.process.terminate()
        self.assertEqual(self.process.wait(30), 75)
        self.check_weights()

    @needs_mpi
    def test_under_mpirun_the_last_second_is_enough(self):
        self.start(mpirun(2))
        self.process.terminate()  # mpirun: ranks get SIGTERM a second later, SIGKILL after another
        self.assertNotEqual(self.process.wait(30), 0)
        self.check_weights()


if __name__ == "__main__":
    unittest.main()
