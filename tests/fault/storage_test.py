"""Storage that does not answer: steps go on, it is named, and signals end the job. A file system in a file is frozen,
as one is whose device or server has gone: who writes to it waits in the kernel, and no signal reaches it."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from program import OPEN_MPI, needs_mpi
from trainings import LONG, FaultTest, why_no_trace

NAMES_ITSELF = 30  # seconds that a busy machine may take for what is due at once
GRACE = 20         # seconds that a signal leaves storage


def why_no_freezing():
    """Why no file system can be frozen here; empty where one can."""
    if os.geteuid() != 0:
        return "only root may freeze a file system"
    missing = [tool for tool in ("mkfs.ext4", "fsfreeze", "losetup") if not shutil.which(tool)]
    if missing:
        return ", ".join(missing) + " is missing"
    found = subprocess.run(["losetup", "-f"], capture_output=True)
    return "" if found.returncode == 0 else "there is no loop device"


@unittest.skipIf(why_no_freezing(), why_no_freezing())
class Storage(FaultTest):
    def setUp(self):
        super().setUp()
        self.disk, image = self.path("disk"), self.path("image")
        os.mkdir(self.disk)
        with open(image, "wb") as f:
            f.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        mounted = subprocess.run(["mount", "-o", "loop", image, self.disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted here: " + mounted.stderr.strip())
        self.frozen = False
        # Before the processes are killed: what waits in the kernel cannot be.
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk])
        self.addCleanup(self.end_all)
        self.addCleanup(self.thaw)

    def freeze(self):
        subprocess.run(["fsfreeze", "-f", self.disk], check=True)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            subprocess.run(["fsfreeze", "-u", self.disk], check=True)
        self.frozen = False

    def begin(self, *words, out="disk/run", **options):
        """A training without end on that disk, with a checkpoint behind it."""
        process = self.start("--epochs", "100000", "--stall", "warn=1", "--verbose", "2", *words, out=out, **options)
        self.until(process, lambda: self.points(out))
        return process

    def epochs_told(self, process):
        return self.said(process).count("Epoch ")

    @staticmethod
    def has_ended(pid):
        """Whether a process runs no more, though one of its threads may still wait in the kernel."""
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] in "ZX"
        except FileNotFoundError:
            return True

    def until_ended(self, process, seconds):
        """A launcher may wait until the kernel lets its ranks go."""
        end = time.time() + seconds
        while not all(self.has_ended(pid) for pid in self.programs()):
            self.assertLess(time.time(), end, self.said(process)[-2000:])
            time.sleep(0.02)

    def stalls(self):
        with open(self.path("disk/run/stalls.jsonl")) as lines:
            return [json.loads(line) for line in lines]

    def assert_goes_on_to_the_same_end(self, *words, run="disk/run"):
        steps = str(max(self.points(run)) + 20)
        self.wait(self.start("--steps", steps, *words, out="whole"), 0)
        self.wait(self.start("--steps", steps, "--resume", "auto", *words, out=run), 0)
        self.assert_same_end(run, "whole")

    def assert_steps_go_on(self, *words, **options):
        process = self.begin(*words, **options)
        begun = len(self.said(process))  # others may have kept the disk busy for a second before
        self.freeze()
        self.until(process, lambda: "storage has not answered" in self.said(process)[begun:])
        self.until(process, lambda: "; the training goes on" in self.said(process)[begun:])
        before = self.epochs_told(process)
        self.until(process, lambda: self.epochs_told(process) >= before + 5)
        self.assertNotIn("answers again", self.said(process)[begun:])
        self.thaw()
        self.until(process, lambda: "storage answers again after" in self.said(process)[begun:])
        newest = max(self.points("disk/run"))
        self.until(process, lambda: max(self.points("disk/run")) > newest)
        self.send(signal.SIGUSR1, min(self.programs()))
        text = self.wait(process, 75)
        self.assertRegex(text, r"storage has not answered for \d+ s: rank 0 on \S+ writes .* in disk/run; steps go on")
        self.assertRegex(text, r"the checkpoint of step \d+ waits: that of step \d+ is not on disk after \d+ s")
        steps = [line["step"] for line in self.lines("disk/run", "step")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        # A busy machine may have had other stalls of a second.
        told = [(e["event"], e["ranks"]) for e in self.stalls() if e["cause"] == "storage"]
        self.assertEqual(told[:2], [("storage", [0]), ("storage_answers", [0])])
        self.assert_goes_on_to_the_same_end(*words)

    def test_steps_go_on_and_no_line_is_lost(self):
        self.assert_steps_go_on()

    def test_the_best_weights_keep_no_step_waiting(self):
        """Nearly every epoch is better than those before it."""
        self.assert_steps_go_on("--save-best", "--lr", "0.0001")
        self.assertEqual(*(self.bytes_of(run, "best.safetensors") for run in ("disk/run", "whole")))

    @needs_mpi
    @unittest.skipUnless(LONG, "slow: its tiny epochs fill the log that this test reads again and again")
    def test_steps_of_several_ranks_go_on(self):
        self.assert_steps_go_on("--reproducible", ranks=2)

    def test_sigterm_ends_it_and_names_the_newest_checkpoint(self):
        process = self.begin()
        self.freeze()
        self.send(signal.SIGTERM, process.pid)
        self.until_ended(process, GRACE + NAMES_ITSELF)
        self.thaw()
        text = self.wait(process, 74)
        self.assertRegex(text, r"storage does not answer \(.*\); the job ends without its last state once nothing "
                               r"gets on for 20 s, and at once after another signal")
        self.assertRegex(text, r"so the job ends without its last state; the newest whole checkpoint is ckpt-\d{9}")
        self.assertIn(int(text.rpartition("checkpoint is ckpt-")[2][:9]), self.points("disk/run"))
        self.assert_goes_on_to_the_same_end()

    def test_another_signal_ends_it_at_once(self):
        for number, code in ((signal.SIGTERM, 74), (signal.SIGINT, 130)):
            with self.subTest(number):
                process = self.begin(out=f"disk/{number}")
                self.freeze()
                self.send(number, process.pid)
                self.until(process, lambda: "at once after another signal" in self.said(process))
                self.send(number, process.pid)
                self.until_ended(process, NAMES_ITSELF)
                self.thaw()
                self.wait(process, code)

    @unittest.skipIf(why_no_trace(), why_no_trace())
    def test_a_slow_disk_that_gets_on_is_waited_for(self):
        """An fsync takes longer than the grace and the time-out, while the disk writes what others gave it."""
        process = self.start("--epochs", "100000", "--checkpoint-every", "1000000", "--stall", "end=8",
                             out="disk/run")
        self.until(process, lambda: len(self.lines("disk/run", "step")) > 20)
        trace = subprocess.Popen(["strace", "-o", "/dev/null", "-p", self.writer(process), "-e", "trace=fsync", "-e",
                                  "inject=fsync:delay_enter=600000000:when=1"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(trace.wait)
        self.addCleanup(trace.kill)
        self.addCleanup(trace.stderr.close)
        self.assertIn("attached", trace.stderr.readline())
        self.send(signal.SIGTERM, process.pid)
        held = time.time() + GRACE + 5
        while process.poll() is None and time.time() < held:
            with open(self.path("disk/others"), "w") as f:
                f.write("more")
                f.flush()
                os.fsync(f.fileno())
            time.sleep(0.2)
        self.assertIsNone(process.poll(), self.said(process)[-2000:])
        trace.kill()  # lets it go
        self.assertIn("storage has not answered for", self.wait(process, 75))
        self.assertEqual(max(self.points("disk/run")), self.lines("disk/run", "step")[-1]["step"])

    def assert_ends_where_steps_cannot_go_on(self, ended, **options):
        """It has made all of its steps, and waits for its last checkpoint."""
        process = self.start("--steps", "30", "--stall", "end=4", out="disk/run",
                             CPUTRAIN_FAULT=",".join(f"slow:0:{n}:forward" for n in range(20, 26)), **options)
        self.until(process, lambda: len(self.lines("disk/run", "step")) >= 18)
        self.freeze()
        self.until(process, lambda: "(--stall end), so the job ends: rank 0 on" in self.said(process))
        self.until_ended(process, NAMES_ITSELF)
        self.thaw()
        text = self.wait(process)
        self.assertEqual(process.returncode, ended, text)
        self.assertIn("answers and does nothing (in checkpoint of step 30", text)

    def test_the_job_ends_where_steps_cannot_go_on(self):
        self.assert_ends_where_steps_cannot_go_on(76)

    @needs_mpi
    @unittest.skipUnless(OPEN_MPI, "other launchers pass no exit code on")
    def test_a_job_of_several_ranks_ends_where_steps_cannot_go_on(self):
        self.assert_ends_where_steps_cannot_go_on(76, ranks=2)


if __name__ == "__main__":
    unittest.main()
