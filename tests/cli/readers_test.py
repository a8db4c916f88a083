"""Nobody reads what is printed, for a while or for ever: a pager, a terminal that Ctrl-S holds, an ssh client that
sleeps. Steps go on, results are whole when they are read, and signals end it."""
import fcntl
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from program import PROGRAM, wait_until
from tiny import TinyTest

ENDLESS = ["--model", "tiny.json", "--data", "synthetic:24", "--threads", "1", "--verbose", "2", "--epochs", "1000000",
           "--log-every", "1", "--out", "run"]


class Readers(TinyTest):
    def pipe(self):
        """Its ends; it holds a page."""
        ends = os.pipe()
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
        return ends

    def start(self, *words, stdout, stderr):
        job = subprocess.Popen([PROGRAM, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=stdout,
                               stderr=stderr)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def steps_go_on(self, job, count=200):
        before = len(self.lines())
        wait_until(lambda: len(self.lines()) > before + count, job)

    def unread(self, both=True):
        """A training whose standard output, and perhaps error, nobody reads, when it has printed more than the pipe
        holds; with the end to read from."""
        ours, theirs = self.pipe()
        self.addCleanup(os.close, ours)
        job = self.start(*ENDLESS, stdout=theirs, stderr=theirs if both else subprocess.DEVNULL)
        os.close(theirs)
        self.steps_go_on(job, 400)  # a hundred epochs of two lines
        return job, ours

    def test_steps_go_on_and_no_line_is_lost(self):
        job, ours = self.unread()
        self.steps_go_on(job)
        job.send_signal(signal.SIGUSR1)
        text = b""
        while more := os.read(ours, 65536):
            text += more
        self.assertEqual(job.wait(60), 75)
        epochs = [int(n) for n in re.findall(rb"^Epoch (\d+)/1000000$", text, re.M)]
        self.assertEqual(epochs, list(range(1, len(epochs) + 1)))
        self.assertGreaterEqual(len(epochs), len(self.metrics("run", "epoch")))
        self.assertIn(b"Run folder: run", text)

    def test_signals_end_it_where_nobody_reads(self):
        for number, code, both in ((signal.SIGINT, 130, False), (signal.SIGINT, 130, True), (signal.SIGTERM, 75, True),
                                   (signal.SIGUSR1, 75, False), (signal.SIGHUP, 75, True)):
            with self.subTest(number, both=both):
                job, _ = self.unread(both)
                job.send_signal(number)
                self.assertEqual(job.wait(60), code)
                self.evaluate("synthetic:24")
                os.rename(self.path("run"), self.path(f"run-{number}-{both}"))

    def test_a_terminal_that_is_held_keeps_no_step(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        job = self.start(*ENDLESS, stdout=theirs, stderr=theirs)
        wait_until(lambda: len(self.lines()) > 10)
        os.write(ours, b"\x13")  # Ctrl-S
        os.close(theirs)
        for _ in range(3):
            self.steps_go_on(job)
        os.write(ours, b"\x11")  # Ctrl-Q
        last = self.metrics("run", "epoch")[-1]["epoch"]
        text = b""
        while f"Epoch {last}/1000000\r\n".encode() not in text:
            text += os.read(ours, 65536)

    def test_results_wait_for_their_reader(self):
        self.make("photos", cat=12, dog=12)
        self.tiny(0, "run", "photos")
        names = [f"photos/cat/{i % 12}.bmp" for i in range(3000)]
        jobs = []
        for words in (["predict", "--weights", "run", "--csv", "-", *names],
                      ["predict", "--weights", "run", "--json", "-", *names],
                      ["predict", "--weights", "run", *names]):
            whole = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, check=True).stdout
            self.assertGreater(len(whole), 4096)
            ours, theirs = self.pipe()
            jobs.append((words[:4], self.start(*words, stdout=theirs, stderr=subprocess.DEVNULL), ours, whole))
            os.close(theirs)
        time.sleep(3)
        for words, job, ours, whole in jobs:
            with self.subTest(words):
                self.assertIsNone(job.poll())
                with os.fdopen(ours, "rb") as reader:
                    self.assertEqual(reader.read(), whole)
                self.assertEqual(job.wait(60), 0)

    def test_the_end_of_a_training_waits_for_its_reader(self):
        words = ["--model", "tiny.json", "--data", "synthetic:24", "--threads", "1", "--verbose", "2", "--epochs",
                 "200", "--out", "run"]
        ours, theirs = self.pipe()
        job = self.start(*words, stdout=theirs, stderr=theirs)
        os.close(theirs)
        wait_until(lambda: os.path.exists(self.path("run/weights.safetensors")))
        with os.fdopen(ours) as reader:
            text = reader.read()
        self.assertEqual(job.wait(60), 0)
        self.assertEqual(text.count("\nEpoch "), 200)
        self.assertIn("Run folder: run", text)


if __name__ == "__main__":
    unittest.main()
