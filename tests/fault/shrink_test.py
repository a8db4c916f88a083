"""Ranks that are lost under scripts/supervise: the others go on, to the end of a training that was never hurt."""
import os
import signal
import unittest

from program import OPEN_MPI, ROOT, mpirun, needs_mpi
from trainings import FaultTest

RANKS = 3
# Long enough for a busy disk, and for ranks of MPICH that keep the cores while they wait.
WORDS = ["--reproducible", "--epochs", "12", "--stall", "end=15"]


@needs_mpi
class Shrink(FaultTest):
    def lose(self, number, rank, out):
        """A training of whose ranks one gets the signal, as soon as there is a checkpoint."""
        supervise = [os.path.join(ROOT, "scripts", "supervise"), "--watch", "none", "--", *mpirun(RANKS)]
        process = self.start(*WORDS, out=out, launch=supervise)
        self.until(process, lambda: self.rank_of(rank))
        pid = self.rank_of(rank)
        self.until(process, lambda: self.points(out))
        self.send(number, pid)
        return process

    def assert_goes_on(self, process, out, left):
        text = self.wait(process, 0)
        if left < RANKS:
            self.assertIn(f"ranks lost: {RANKS - left}; {left} of {RANKS} ranks go on", text)
        else:
            self.assertNotIn("ranks lost", text)
        self.assertIn("restart 1 in 1 s", text)
        self.assertRegex(text, f"Batch 10 over {left} ranks")
        self.assert_same_end(out, "whole")

    def test_the_others_go_on_without_a_rank_that_is_lost(self):
        self.wait(self.start(*WORDS, out="whole", ranks=RANKS), 0)
        with self.subTest("stopped"):
            stopped = self.lose(signal.SIGSTOP, RANKS - 1, "stopped")
            self.assert_goes_on(stopped, "stopped", RANKS - 1)
        with self.subTest("killed"):
            killed = self.lose(signal.SIGKILL, 0, "killed")
            # MPICH's launcher does not tell a rank that was killed from those that it then kills.
            self.assert_goes_on(killed, "killed", RANKS - 1 if OPEN_MPI else RANKS)


if __name__ == "__main__":
    unittest.main()
