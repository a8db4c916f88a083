"""Sweeps that end early go on, and leave nobody behind."""
import glob
import os
import random
import signal
import time
import unittest

from program import MPIRUN
from sweeps import CELL, GRID, LONG, SweepTest, needs_mpirun


@needs_mpirun
class Endings(SweepTest):
    @staticmethod
    def is_whole(name):
        with open(name) as lines:
            return '"summary"' in lines.read()

    def test_killed_at_any_moment_it_goes_on_and_no_rank_is_left(self):
        random.seed(3)
        hits = 0
        for _ in range(3):
            sweep = self.start(*GRID, "--out", "s")
            time.sleep(random.uniform(0.3, 3))
            if sweep.poll() is None:
                os.killpg(sweep.pid, signal.SIGKILL)
                hits += 1
            sweep.wait()
            self.until("ranks outlive the sweep", lambda: not self.ranks(), 60)
        self.assertGreater(hits, 0)
        whole = {n: t for n, t in self.files().items() if n.endswith("metrics.jsonl") and
                 self.is_whole(n)}
        self.expect(0, *GRID, "--out", "s")
        self.assertEqual({c["status"] for c in self.cells().values()}, {"scaled"})
        self.assertLessEqual(whole.items(), self.files().items())  # finished ones were kept

    def test_ranks_end_with_a_sweep_that_is_killed_alone(self):
        self.tool("launch", f'#!/bin/bash\n{" ".join(MPIRUN)} "$@" &\nwait\n')
        sweep = self.start(*LONG, "--launcher", "./launch", "--out", "s")
        self.until("no step was made", self.steps)
        self.assertGreaterEqual(len(self.ranks()), 2)
        sweep.kill()
        self.until("ranks outlive the sweep", lambda: not self.ranks(), 60)

    def test_signals_end_it_and_keep_what_is_finished(self):
        self.expect(0, *CELL, "--np", "1", "--batch", "8", "--out", "other")  # another folder's sweep
        for sent, code in ((signal.SIGUSR1, 75), (signal.SIGINT, 130), (signal.SIGTERM, 75)):
            sweep = self.start(*LONG, "--out", "s")
            self.until("no step was made", self.steps)
            sweep.send_signal(sent)
            self.assertEqual(sweep.wait(120), code, sweep.stderr.read())
            self.assertEqual(self.ranks(), [])
            self.assertEqual([c["reason"] for c in self.table()["cells"]], ["not measured yet"])
            for name in glob.glob(self.path("s", "cells", "*", "repeat-1", "metrics.jsonl")):
                os.remove(name)

    def test_under_nohup_it_outlives_the_terminal(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # handed on, as nohup does
        sweep = self.start(*LONG, "--out", "s")
        signal.signal(signal.SIGHUP, before)
        self.until("no step was made", self.steps)
        os.killpg(sweep.pid, signal.SIGHUP)
        steps = self.steps()
        time.sleep(3)  # mpirun ends its ranks in two
        self.assertIsNone(sweep.poll())
        self.until("ranks do not go on", lambda: self.steps() > steps)
        self.assertEqual(len(self.table()["cells"]), 1)
        sweep.send_signal(signal.SIGUSR1)
        self.assertEqual(sweep.wait(120), 75, sweep.stderr.read())
        self.assertEqual([c["reason"] for c in self.table()["cells"]], ["not measured yet"])

    def test_two_do_not_work_in_one_folder(self):
        sweep = self.start(*LONG, "--out", "s")
        self.until("no step was made", self.steps)
        self.expect(2, *LONG, "--out", "s", says=["another sweep is at work"])
        self.expect(2, *LONG, "--out", "s", "--task", "1", says=["another sweep is at work"])
        sweep.send_signal(signal.SIGUSR1)
        self.assertEqual(sweep.wait(120), 75)


if __name__ == "__main__":
    unittest.main()
