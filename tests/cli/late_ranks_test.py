"""Late is who arrives last: the rank for which the others wait is named, wherever in a step it lost its time."""
import os
import signal
import subprocess
import time
import unittest

from program import PROGRAM, SMALL, ProgramTest, mpirun, needs_mpi, wait_until


@needs_mpi
class LateRanks(ProgramTest):
    def stragglers(self, run):
        return [epoch["straggler"] for epoch in self.metrics(run, "epoch")]

    def test_one_that_is_slow_within_the_exchange(self):
        """Seconds between two meetings of the exchange, in each of the four ways to exchange."""
        for way in (["--allreduce", "shm"], ["--allreduce", "ring"], ["--allreduce", "ps"], ["--reproducible"]):
            late = 0 if "ps" in way else 1  # with a server the others own no weights
            with self.subTest(way=way):
                self.expect(0, *SMALL, "--limit-val", "0", "--epochs", "2", "--out", "run", "--overwrite", *way, ranks=2,
                            CPUTRAIN_FAULT=f"slow:{late}:4:update,slow:{late}:5:update", says=[f"for rank {late} on "])
                found = self.stragglers("run")[1]
                self.assertEqual(found["rank"], late)
                self.assertGreater(found["seconds"], 0.5)

    def test_one_that_is_slow_before_it(self):
        slow = ",".join(f"slow:0:{place}" for place in ("4:forward", "5:forward", "5:exchange", "6:exchange"))
        self.expect(0, *SMALL, "--limit-val", "0", "--epochs", "2", "--out", "run", ranks=2, CPUTRAIN_FAULT=slow,
                    says=["for rank 0 on "])
        self.assertGreater(self.stragglers("run")[1]["seconds"], 2.2)  # two of either kind are 2 at most

    def test_one_that_is_stopped_while_it_waits_itself(self):
        """For rank 0, which is slow in step 5: by its own clock the stopped rank has waited longest."""
        words = [*SMALL, "--data", "synthetic:600", "--out", "late", "--epochs", "1", "--limit-val", "0", "--log-every",
                 "1"]
        job = subprocess.Popen([*mpirun(2), PROGRAM, *words], cwd=self.folder, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.STDOUT, env={**os.environ, "CPUTRAIN_FAULT": "slow:0:5:forward"})
        self.addCleanup(job.kill)
        wait_until(lambda: self.rank_of(1), job)
        # The line of step 3 comes with step 4.
        wait_until(lambda: len(self.lines("late")) >= 3, job, pause=0.02)
        time.sleep(0.3)
        os.kill(self.rank_of(1), signal.SIGSTOP)
        time.sleep(3)
        os.kill(self.rank_of(1), signal.SIGCONT)
        said = job.communicate(timeout=240)[0]
        self.assertEqual(job.returncode, 0, said)
        self.assertRegex(said, r"waited [1-9]\d*\.\d s .* for rank 1 on ")
        (epoch,) = self.metrics("late", "epoch")
        self.assertEqual(epoch["straggler"]["rank"], 1)
        self.assertGreater(epoch["straggler"]["seconds"], 1)
        self.assertTrue(0 <= epoch["stolen"] <= 1, epoch)
        self.assertTrue(epoch["cpu_wait"] is None or 0 <= epoch["cpu_wait"] < 1, epoch)


if __name__ == "__main__":
    unittest.main()
