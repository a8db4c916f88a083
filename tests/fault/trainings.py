"""Trainings that somebody kills: starting them, finding their processes, comparing their ends."""
import glob
import json
import os
import shutil
import signal
import subprocess
import time

from program import PROGRAM, mpirun
from tiny import TINY, TinyTest

LONG = bool(os.environ.get("FAULT_LONG"))
WORDS = ["--model", "tiny.json", "--data", "data", "--threads", "1", "--batch", "10", "--epochs", "30", "--log-every",
         "1", "--optimizer", "adam", "--augment", "flip", "--checkpoint-every", "7", "--no-winograd",
         "--no-skip-zeros", "--out", "run"]
# Figures of a line that are not the same in two trainings that end alike: times and memory.
VARYING = ("seconds", "budget", "settled", "straggler", "stolen", "cpu_wait", "images_per_second", "val_seconds", "from_features",
         "training_seconds", "weights", "program", "trying", "density", "peak_rank_bytes", "peak_node_bytes",
         "checkpoint_seconds")


def why_no_trace():
    """Why strace cannot break calls here; empty where it can."""
    if not shutil.which("strace"):
        return "strace is missing"
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else "strace cannot trace here"


class FaultTest(TinyTest):
    layers = TINY["layers"]

    def setUp(self):
        super().setUp()
        self.write("tiny.json", {**TINY, "layers": self.layers})
        self.make("data", cat=35, dog=35)
        self.jobs = []
        self.addCleanup(self.end_all)

    def start(self, *words, out="run", **options):
        return self.start_program(*WORDS[:-1], out, *words, **options)

    def start_program(self, *words, ranks=0, launch=(), **environment):
        log = open(self.path(f"log-{len(self.jobs)}"), "w+")
        process = subprocess.Popen([*launch, *(mpirun(ranks) if ranks else ()), PROGRAM, *words],
                                   cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   env={**os.environ, **environment})
        process.log = log
        self.jobs.append(process)
        return process

    def said(self, process):
        with open(process.log.name) as f:
            return f.read()

    def end_all(self):
        for process in self.jobs:
            for pid in (process.pid, *self.programs()):
                self.send(signal.SIGKILL, pid)
            process.wait()
            process.log.close()

    @staticmethod
    def send(number, pid):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def writer(self, process):
        """The thread that writes checkpoints, once it has begun."""
        found = []

        def is_there():
            for task in os.listdir(f"/proc/{process.pid}/task"):
                with open(f"/proc/{process.pid}/task/{task}/comm") as f:
                    if f.read().strip() == "checkpoints":
                        found.append(task)
            return found

        self.until(process, is_there)
        return found[0]

    def wait(self, process, code=None):
        """Until the job and all of its ranks have ended."""
        process.wait(300)
        end = time.time() + 60
        while self.programs():
            self.assertLess(time.time(), end, "ranks outlive their job")
            time.sleep(0.02)
        if code is not None:
            self.assertEqual(process.returncode, code, self.said(process)[-2000:])
        return self.said(process)

    def until(self, process, happens):
        end = time.time() + 240
        while not happens():
            self.assertIsNone(process.poll(), self.said(process)[-2000:])
            self.assertLess(time.time(), end, self.said(process)[-2000:])
            time.sleep(0.01)

    def lines(self, run, kind):
        """Whole lines: the last may be half written."""
        if not os.path.exists(self.path(run, "metrics.jsonl")):
            return []
        with open(self.path(run, "metrics.jsonl")) as f:
            return [m for m in map(json.loads, f.read().split("\n")[:-1]) if m["type"] == kind]

    def points(self, run="run"):
        return sorted(int(os.path.basename(os.path.dirname(f))[5:])
                      for f in glob.glob(self.path(run, "ckpt-*/MANIFEST")))

    def litter(self, run="run"):
        return [f for _, folders, files in os.walk(self.path(run)) for f in folders + files if "tmp" in f]

    def assert_same_end(self, run, whole):
        for kind in ("step", "epoch", "summary"):
            here, there = ([{k: v for k, v in m.items() if k not in VARYING} for m in self.lines(r, kind)]
                           for r in (run, whole))
            self.assertEqual(here, there)
        self.assertEqual(self.litter(run), [])
