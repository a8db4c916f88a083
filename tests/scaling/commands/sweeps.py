"""What tests of `sweep` share: small grids, the table that one leaves, and the ranks at work."""
import glob
import os
import subprocess
import time
import unittest

from program import MPIRUN, OPEN_MPI, PROGRAM, ProgramTest

CELL = ["sweep", "--image-size", "64", "--data", "synthetic:50", "--steps", "2", "--repeat", "1"]
GRID = [*CELL, "--np", "1,2", "--batch", "8,16"]
LONG = [*CELL, "--np", "2", "--batch", "16", "--steps", "100000"]


def needs_mpirun(test):
    return unittest.skipUnless(MPIRUN and OPEN_MPI, "needs a build with Open MPI")(test)


class SweepTest(ProgramTest):
    def table(self, folder="s"):
        return self.json_of(folder, "cells.json")

    def cells(self, folder="s"):
        return {(c["cpus"], c["batch"]): c for c in self.table(folder)["cells"]}

    def files(self):
        names = glob.glob(self.path("s", "**"), recursive=True)
        return {n: os.stat(n).st_mtime_ns for n in names if os.path.isfile(n) and not n.endswith("lock")}

    def start(self, *words):
        process = subprocess.Popen([PROGRAM, *words], cwd=self.folder, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def ranks(self):
        """Ids of the processes that train in this test's folder."""
        found = []
        for p in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{p}/cmdline") as f:
                    line = f.read().split("\0")
                if "train" in line and os.readlink(f"/proc/{p}/cwd") == self.folder:
                    found.append(int(p))
            except OSError:
                pass
        return found

    def until(self, what, true, seconds=120):
        end = time.time() + seconds
        while not true():
            self.assertLess(time.time(), end, what)
            time.sleep(0.05)

    def steps(self):
        names = glob.glob(self.path("s", "cells", "*", "repeat-1", "metrics.jsonl"))
        return sum(os.path.getsize(n) for n in names)
