"""Runs the program under test; shared by the tests of this folder. Python's standard library only."""
import json
import os
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["CPUTRAIN"]
MPIRUN = os.environ.get("CPUTRAIN_MPIRUN", "").split()
OPEN_MPI = "--allow-run-as-root" in MPIRUN
SMALL = ["--image-size", "64", "--data", "synthetic:60", "--batch", "20", "--threads", "1"]


def mpirun(ranks):
    return [*MPIRUN, "-np", str(ranks)]


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, which is the program's working directory, too."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        # What other trainings of this user found must not show.
        caches = tempfile.TemporaryDirectory(prefix="cputrain-test-")
        self.addCleanup(caches.cleanup)
        os.environ["XDG_CACHE_HOME"] = caches.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def run_program(self, *words, ranks=0, timeout=120, **environment):
        launch = mpirun(ranks) if ranks else []
        return subprocess.run([*launch, PROGRAM, *words], cwd=self.folder, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, **environment})

    def expect(self, code, *words, says=(), **options):
        """Runs; checks the exit code and that the output has all the words of `says`."""
        done = self.run_program(*words, **options)
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, code, text)
        for word in says:
            self.assertIn(word, text)
        return done

    def metrics(self, run, kind):
        with open(self.path(run, "metrics.jsonl")) as lines:
            return [m for m in map(json.loads, lines) if m["type"] == kind]

    def train(self, run, *words, **options):
        self.expect(0, *SMALL, "--out", run, "--log-every", "1", *words, **options)
        return self.metrics(run, "step")


def wait_until(true, seconds=60):
    end = time.time() + seconds
    while not true():
        if time.time() > end:
            raise AssertionError("nothing happened")
        time.sleep(0.05)


def as_root(test):
    return unittest.skipUnless(os.geteuid() == 0, "needs root")(test)


def needs_mpi(test):
    return unittest.skipUnless(MPIRUN, "this build has no MPI")(test)
