"""SIGKILL at every system call with which a checkpoint is written, and errors that such calls may return: strace
injects them into the thread that writes."""
import re
import shutil
import signal
import subprocess
import unittest

from trainings import LONG, FaultTest, why_no_trace

CALLS = ["openat", "write", "pwrite64", "fsync", "rename", "renameat2", "mkdir", "link", "linkat", "unlink", "unlinkat",
         "rmdir", "close", "ftruncate", "fcntl", "getdents64"]
# Far behind the steps that are made until the thread is traced, which a busy machine may be slow with. No checkpoints on
# the way: a disk may take seconds for each.
END = ("--epochs", "300", "--checkpoint-every", "1000000")


@unittest.skipIf(why_no_trace(), why_no_trace())
class Calls(FaultTest):
    words = ("--reproducible", "--keep", "1", "--no-save-best")  # so that checkpoints alone are written

    def setUp(self):
        super().setUp()
        self.wait(self.start(*self.words, "--steps", "20", out="seed"), 0)
        self.wait(self.start(*self.words, *END, out="whole"), 0)

    def stop_while(self, inject):
        """A training that goes on from step 20 and is told to stop, while `inject` watches what its thread writes."""
        shutil.rmtree(self.path("run"), ignore_errors=True)
        shutil.copytree(self.path("seed"), self.path("run"))
        process = self.start(*self.words, "--resume", "auto", "--checkpoint-every", "1000000", "--epochs", "1000000")
        self.until(process, lambda: self.lines("run", "step") and self.lines("run", "step")[-1]["step"] > 20)
        trace = subprocess.Popen(["strace", "-o", self.path("trace"), "-p", self.writer(process), "-e",
                                  "trace=" + ",".join(CALLS), *inject], stderr=subprocess.PIPE, text=True)
        self.addCleanup(trace.wait)
        self.addCleanup(trace.kill)
        self.assertIn("attached", trace.stderr.readline())
        self.send(signal.SIGUSR1, process.pid)
        process.wait(60)
        trace.wait(60)
        trace.stderr.close()
        with open(self.path("trace")) as f:
            return process, [re.match(r"\w+", line)[0] for line in f if re.match(r"\w+\(", line)]

    def goes_on(self):
        """The run, whatever happened to it, comes to the end that it would have had."""
        text = self.wait(self.start(*self.words, *END, "--resume", "auto"), 0)
        self.assertIn("Going on from", text)
        self.assert_same_end("run", "whole")

    def test_killed_at_every_call(self):
        process, calls = self.stop_while([])
        self.assertEqual(process.returncode, 75)
        self.assertGreater(len(calls), 30, calls)
        places = []
        for call in sorted(set(calls)):
            places += [(call, n + 1) for n in range(calls.count(call))]
        for call, n in places if LONG else places[5::16]:
            with self.subTest(call=call, n=n):
                process, _ = self.stop_while(["-e", f"inject={call}:signal=SIGKILL:when={n}"])
                self.assertEqual(process.returncode, -signal.SIGKILL)
                self.goes_on()

    def test_an_error_of_every_kind_of_call(self):
        for call, error, when in (("fsync", "EIO", "2"), ("rename", "EIO", "1"), ("write", "ENOSPC", "3+"),
                                  ("close", "EIO", "4"), ("mkdir", "EROFS", "1+"), ("openat", "EMFILE", "2+")):
            if not LONG and call in ("close", "openat"):
                continue
            with self.subTest(call=call, error=error):
                process, _ = self.stop_while(["-e", f"inject={call}:error={error}:when={when}"])
                if call == "close" and process.returncode == 75:  # of a file that was only read
                    self.assertGreater(self.points()[-1], 20)
                else:
                    self.assertEqual(process.returncode, 74, self.said(process))
                    self.assertIn("last state could not be written", self.said(process))
                    self.assertEqual(self.points(), [20])
                self.goes_on()


if __name__ == "__main__":
    unittest.main()
