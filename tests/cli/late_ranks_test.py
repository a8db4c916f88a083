"""Late is who arrives last: the rank for which the others wait is named, wherever in a step it lost its time."""
import os
import re
import signal
import subprocess
import time
import unittest

from program import OPEN_MPI, PROGRAM, SMALL, ProgramTest, mpirun, needs_mpi


@needs_mpi
class LateRanks(ProgramTest):
    def stragglers(self, run):
        return [epoch["straggler"] for epoch in self.metrics(run, "epoch")]

    def test_one_that_is_slow_within_the_exchange(self):
        """A second between two meetings of the exchange, in each of the four ways to exchange."""
        for way in (["--allreduce", "shm"], ["--allreduce", "ring"], ["--allreduce", "ps"], ["--reproducible"]):
            late = 0 if "ps" in way else 1  # with a server the others own no weights
            with self.subTest(way=way):
                self.expect(0, *SMALL, "--limit-val", "0", "--epochs", "2", "--out", "run", "--overwrite", *way, ranks=2,
                            CPUTRAIN_FAULT=f"slow:{late}:5:update", says=[f"for rank {late} on "])
                found = self.stragglers("run")[1]
                self.assertEqual(found["rank"], late)
                self.assertGreater(found["seconds"], 0.5)

    def test_one_that_is_slow_before_it(self):
        self.expect(0, *SMALL, "--limit-val", "0", "--epochs", "2", "--out", "run", ranks=2,
                    CPUTRAIN_FAULT="slow:0:5:forward,slow:0:6:exchange", says=["for rank 0 on "])
        self.assertGreater(self.stragglers("run")[1]["seconds"], 1.5)

    def test_one_that_is_stopped_anywhere(self):
        """At a moment that nobody chose: most are ones in which the rank waits for others itself."""
        words = [*SMALL, "--data", "synthetic:600", "--out", "late", "--steps", "400000", "--limit-val", "0", "--log-every", "0"]
        job = subprocess.Popen([*mpirun(3), PROGRAM, *words], cwd=self.folder, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        try:
            late = self.rank_of(job.pid, 1)
            self.lines_of_epochs(job, 2)
            for _ in range(3):
                os.kill(late, signal.SIGSTOP)
                time.sleep(2)
                os.kill(late, signal.SIGCONT)
                said = self.lines_of_epochs(job, 3).decode()
                self.assertTrue(re.search(r"waited [1-9]\d*\.\d s .* for rank 1 on ", said), said)
        finally:
            job.terminate()
            job.wait()
            job.stdout.close()
        epochs = self.metrics("late", "epoch")
        worst = max(epochs, key=lambda epoch: epoch["straggler"]["seconds"])
        self.assertEqual(worst["straggler"]["rank"], 1)
        self.assertGreater(worst["straggler"]["seconds"], 1)
        self.assertTrue(all(0 <= epoch["stolen"] <= 1 for epoch in epochs), epochs)
        self.assertTrue(all(epoch["cpu_wait"] is None or 0 <= epoch["cpu_wait"] < 1 for epoch in epochs), epochs)

    def rank_of(self, launcher, rank):
        """The process of a rank: its environment says it."""
        name = b"OMPI_COMM_WORLD_RANK=%d\0" % rank if OPEN_MPI else b"PMI_RANK=%d\0" % rank
        end = time.time() + 30
        while time.time() < end:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    here = os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(self.folder)
                    with open(f"/proc/{pid}/environ", "rb") as f:
                        variables = f.read()
                except OSError:
                    continue
                if here and name in variables and os.path.realpath(f"/proc/{pid}/exe") == \
                        os.path.realpath(PROGRAM):
                    return int(pid)
            time.sleep(0.05)
        self.fail(f"no process of rank {rank}")

    def lines_of_epochs(self, job, count):
        """What the job says until it has begun so many more epochs."""
        lines = b""
        for line in job.stdout:
            lines += line
            count -= line.startswith(b"Epoch ")
            if count == 0:
                return lines
        self.fail(f"the training ended: {lines}")


if __name__ == "__main__":
    unittest.main()
