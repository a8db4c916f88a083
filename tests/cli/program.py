"""Runs the program under test; shared by the tests of this folder. Python's standard library only."""
import json
import os
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ["CPUTRAIN"]
MPIRUN = os.environ.get("CPUTRAIN_MPIRUN", "").split()
OPEN_MPI = "--allow-run-as-root" in MPIRUN
RANK = "OMPI_COMM_WORLD_RANK" if OPEN_MPI else "PMI_RANK"
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

    def bytes_of(self, *parts):
        with open(self.path(*parts), "rb") as f:
            return f.read()

    def text_of(self, *parts):
        return self.bytes_of(*parts).decode()

    def json_of(self, *parts):
        return json.loads(self.bytes_of(*parts))

    def write(self, name, content):
        """A file of these bytes or this text, or of this value as JSON; returns its name."""
        if not isinstance(content, (bytes, str)):
            content = json.dumps(content)
        with open(self.path(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return name

    def tool(self, name, text):
        """A script of this text."""
        os.chmod(self.path(self.write(name, text)), 0o755)

    def run_program(self, *words, ranks=0, launch=(), timeout=300, **environment):
        """The program as the words of `launch` start it, or that many ranks."""
        launch = launch or (mpirun(ranks) if ranks else [])
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

    def lines(self, run="run"):
        """Those of its metrics; none where it has not begun to write them."""
        begun = os.path.exists(self.path(run, "metrics.jsonl"))
        return self.text_of(run, "metrics.jsonl").splitlines() if begun else []

    def assert_near(self, a, b, tolerance=1e-5):
        """Two curves, number by number."""
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLessEqual(abs(x - y), tolerance * min(abs(x), abs(y)), f"{a} {b}")

    def programs(self):
        """Processes of the program in this test's folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.path.realpath(f"/proc/{pid}/cwd") == os.path.realpath(self.folder) and \
                        os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(PROGRAM):
                    found.append(int(pid))
            except OSError:
                continue
        return found

    def rank_of(self, rank):
        """The process of a rank among them: its environment says it."""
        for pid in self.programs():
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if f"{RANK}={rank}".encode() in f.read().split(b"\0"):
                        return pid
            except OSError:
                continue
        return None

    def disturbed(self, words, ready, disturb):
        """What a training without end says, whose data `disturb` changes once it is ready; its exit code is 65."""
        with open(self.path("log"), "w") as log:
            process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until(ready, process)
            disturb()
            code = process.wait(240)
        finally:
            process.kill()
            process.wait()
        text = self.text_of("log")
        self.assertEqual(code, 65, text[-2000:])
        return text

    def train(self, run, *words, **options):
        self.expect(0, *SMALL, "--out", run, "--log-every", "1", *words, **options)
        return self.metrics(run, "step")


def wait_until(true, process=None, pause=0.05):
    end = time.time() + 240
    while not true():
        if process and process.poll() is not None:
            raise AssertionError("it ended by itself")
        if time.time() > end:
            raise AssertionError("nothing happened")
        time.sleep(pause)


def as_root(test):
    return unittest.skipUnless(os.geteuid() == 0, "needs root")(test)


def needs_mpi(test):
    return unittest.skipUnless(MPIRUN, "this build has no MPI")(test)
