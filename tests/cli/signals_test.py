"""Ctrl-C and termination: no completed step is lost."""
import json
import os
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, mpirun, needs_mpi

LONG = ["--image-size", "64", "--data", "synthetic:60", "--batch", "20", "--threads", "1", "--epochs",
        "100000", "--limit-val", "0", "--log-every", "1", "--optimizer", "sgd", "--out", "run"]


class Signals(ProgramTest):
    def start(self, launch=(), words=()):
        """Starts a training without end; returns once it has done a few steps."""
        self.process = subprocess.Popen([*launch, PROGRAM, *LONG, *words], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.process.stderr.close)
        self.addCleanup(self.process.kill)
        end = time.time() + 60
        while self.lines() < (1 if words else 4):
            self.assertIsNone(self.process.poll(), "it ended by itself")
            self.assertLess(time.time(), end, "no step was made")
            time.sleep(0.05)

    def lines(self):
        path = self.path("run/metrics.jsonl")
        if not os.path.exists(path):
            return 0
        with open(path) as metrics:
            return len(metrics.readlines())

    def loss_of(self, run):
        done = self.expect(0, "eval", "--weights", run + "/weights.safetensors", "--data",
                           "synthetic:60", "--json", "-", "--threads", "1")
        return json.loads(done.stdout)["loss"]

    def check_weights(self, tolerance=0):
        """The saved weights are those after the last step that was told, or after the next one."""
        told, losses = self.lines() - len(self.metrics("run", "summary")), []
        told -= len(self.metrics("run", "epoch"))
        for steps in (told, told + 1):
            words = [w for w in LONG if w not in ("--out", "run")]
            self.expect(0, *words, "--steps", str(steps), "--out", f"again{steps}")
            losses.append(self.loss_of(f"again{steps}"))
        loss = self.loss_of("run")
        self.assertLessEqual(min(abs(loss - x) for x in losses), tolerance * loss, (loss, losses))

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
        self.assertGreater(self.loss_of("run"), 0)

    def test_a_second_ctrl_c_ends_at_once(self):
        self.start(words=["--backend", "reference", "--batch", "54"])  # steps of some seconds
        self.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(30), 130)
        self.assertFalse(os.path.exists(self.path("run/weights.safetensors")))


if __name__ == "__main__":
    unittest.main()
