"""A run that is to replace another, and ends before it has: what lies in the folder then."""
import os
import subprocess
import unittest

from program import PROGRAM, SMALL, ProgramTest, wait_until


class OverwrittenRun(ProgramTest):
    WORDS = [*SMALL, "--overwrite", "--out", "run", "--epochs", "10000", "--limit-val", "0", "--log-every", "1"]

    def start(self):
        """A run that overwrites, until its third step."""
        before = os.stat(self.path("run/metrics.jsonl")).st_mtime_ns
        running = subprocess.Popen([PROGRAM, *self.WORDS], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(running.kill)

        def trains():
            try:
                changed = os.stat(self.path("run/metrics.jsonl")).st_mtime_ns != before
                return changed and len(self.metrics("run", "step")) > 2
            except (OSError, ValueError):
                return False
        wait_until(trains)
        return running

    def digest(self, name):
        return hash(self.bytes_of("run", name))

    def test_killed_runs_leave_the_earlier_weights_and_no_temporary_file(self):
        self.train("run", "--steps", "2")
        first = self.digest("weights.safetensors")
        for _ in range(2):
            running = self.start()
            running.kill()
            running.wait()
            self.assertEqual(self.digest("weights.safetensors"), first)
            self.assertEqual(self.metrics("run", "summary"), [])  # the folder's figures are of no whole run
        self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "synthetic:60")
        self.expect(2, *SMALL, "--steps", "1", "--out", "run", says=["holds a run"])
        # As of a process that was killed while it saved.
        self.write("run/weights.safetensors.tmp123-456", "half")
        self.write("run/history.json.tmp7-8", "half")
        done = self.expect(0, *SMALL, "--steps", "1", "--out", "run", "--overwrite")
        self.assertIn("Weights of an earlier run stay in run/weights.safetensors until", done.stderr)
        self.assertNotEqual(self.digest("weights.safetensors"), first)
        self.assertEqual([n for n in os.listdir(self.path("run")) if "tmp" in n], [])

    def test_a_run_that_fails_says_whose_weights_are_there(self):
        bad = [*SMALL, "--steps", "20", "--optimizer", "sgd", "--lr", "1e6", "--out", "run"]
        done = self.expect(1, *bad, says=["Invalid"])
        self.assertNotIn("run before", done.stderr)
        self.train("run", "--steps", "2", "--overwrite")
        first = self.digest("weights.safetensors")
        self.expect(1, *bad, "--overwrite", says=["Invalid", "run/weights.safetensors is still of the run before"])
        self.assertEqual(self.digest("weights.safetensors"), first)
        self.assertEqual(self.metrics("run", "summary"), [])

    def test_a_terminated_run_leaves_its_own_weights(self):
        self.train("run", "--steps", "2")
        first = self.digest("weights.safetensors")
        running = self.start()
        running.terminate()
        self.assertEqual(running.wait(60), 75)
        self.assertNotEqual(self.digest("weights.safetensors"), first)

    def test_a_run_that_does_not_start_changes_nothing(self):
        self.train("run", "--steps", "2")
        before = {name: self.digest(name) for name in os.listdir(self.path("run"))
                  if os.path.isfile(self.path("run", name))}
        os.mkdir(self.path("bad"))
        for name in ("a", "b"):
            os.mkdir(self.path("bad", name))
            for i in range(5):
                self.write(self.path("bad", name, f"{i}.jpg"), "no image")
        self.expect(65, "--data", "bad", "--image-size", "64", "--threads", "1", "--out", "run", "--overwrite")
        after = {name: self.digest(name) for name in before}
        self.assertEqual(after, before)
        self.assertEqual(sorted(os.listdir(self.path("run"))),
                         sorted([*before, "ckpt-000000002", "train", "validation"]))


if __name__ == "__main__":
    unittest.main()
