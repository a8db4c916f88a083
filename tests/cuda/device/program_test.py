"""The program that people have, on the GPU of this machine: 77 where there is none."""
import json
import subprocess
import sys
import time
import unittest

from cuda_cases import CUDA, CudaCases, CudaTest
from program import PROGRAM, mpirun, needs_mpi

SKIPPED = 77


def why_no_gpu():
    info = subprocess.run([PROGRAM, "info", "--json", "-"], text=True, capture_output=True, check=True).stdout
    cuda = json.loads(info)["cuda"]
    return "" if cuda["available"] else cuda["reason"]


class Gpu(CudaCases, CudaTest):
    def test_times_of_it_are_measured(self):
        done = self.expect(0, "bench", "step", "--model", "odd.json", "--image-size", "21", "--batch", "10", *CUDA,
                           "--json", "-")
        self.assertGreater(json.loads(done.stdout)["images_per_second"]["median"], 0)

    @needs_mpi
    def test_ranks_end_with_one_that_is_killed(self):
        job = subprocess.Popen([*mpirun(2), PROGRAM, *self.words, "--out", "killed", "--epochs", "100000", *CUDA],
                               cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        try:
            ranks = self.ranks_of(job)
            subprocess.run(["kill", "-KILL", ranks[-1]], check=True)
            self.assertNotEqual(job.wait(timeout=60), 0)
        finally:
            job.kill()
            job.wait()
        self.assertFalse(self.alive(ranks), "a rank outlived the job")

    def ranks_of(self, job):
        """Process numbers of the job's ranks, once they train."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = subprocess.run(["pgrep", "-P", str(job.pid)], text=True, capture_output=True).stdout.split()
            if len(found) == 2 and self.has_lines("killed"):
                return found
            time.sleep(0.2)
        self.fail("two ranks never began to train")

    def has_lines(self, run):
        try:
            return len(self.metrics(run, "step")) > 2
        except (OSError, ValueError):
            return False

    @staticmethod
    def alive(processes):
        until = time.monotonic() + 10
        left = processes
        while left and time.monotonic() < until:
            left = [p for p in left if subprocess.run(["kill", "-0", p], capture_output=True).returncode == 0]
            time.sleep(0.2)
        return left


if __name__ == "__main__":
    if why := why_no_gpu():
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    unittest.main()
