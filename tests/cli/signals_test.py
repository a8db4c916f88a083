"""Ctrl-C and termination: no completed step is lost."""
import array
import fcntl
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from formats import read_arrays
from program import OPEN_MPI, PROGRAM, ProgramTest, mpirun, needs_mpi, wait_until

LONG = ["--image-size", "64", "--data", "synthetic:60", "--batch", "20", "--threads", "1", "--epochs",
        "100000", "--limit-val", "0", "--log-every", "1", "--optimizer", "sgd", "--out", "run",
        # no choice of kernels by measuring: weights are compared
        "--no-winograd", "--no-skip-zeros"]


# Steps of a second: what SIGTERM saves at once is saved while one is made.
SLOW = ["--backend", "reference", "--batch", "20"]


class Signals(ProgramTest):
    def start(self, launch=(), words=()):
        """Starts a training without end; returns once it has done a few steps."""
        self.process = subprocess.Popen([*launch, PROGRAM, *LONG, *words], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.process.stderr.close)
        self.addCleanup(self.process.kill)
        wait_until(lambda: len(self.lines()) >= (1 if words else 4), self.process)

    def loss_of(self, run):
        done = self.expect(0, "eval", "--weights", run + "/weights.safetensors", "--data",
                           "synthetic:60", "--json", "-", "--threads", "1")
        return json.loads(done.stdout)["loss"]

    def check_weights(self, tolerance=0):
        """The saved weights are those after the last step that was told, or after one of the next two: a step is told
        when the next one is made."""
        told, losses = len(self.lines()) - len(self.metrics("run", "summary")), []
        told -= len(self.metrics("run", "epoch"))
        for steps in (told, told + 1, told + 2):
            words = [w for w in LONG if w not in ("--out", "run")]
            self.expect(0, *words, "--steps", str(steps), "--out", f"again{steps}")
            losses.append(self.loss_of(f"again{steps}"))
        loss = self.loss_of("run")
        self.assertLessEqual(min(abs(loss - x) for x in losses), tolerance * loss, (loss, losses))

    def test_ctrl_c_finishes_the_step_and_saves(self):
        self.start()
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(120), 130)
        self.assertEqual(self.metrics("run", "summary")[0]["outcome"], "interrupted")
        self.check_weights()

    def test_sigterm_saves_the_last_completed_step(self):
        self.start()
        self.process.terminate()
        self.assertEqual(self.process.wait(120), 75)
        self.check_weights()

    def test_sigusr1_finishes_the_step_and_asks_to_be_started_again(self):
        self.start()
        self.process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.process.wait(120), 75)
        self.assertEqual(self.metrics("run", "summary")[0]["outcome"], "interrupted")
        self.check_weights()

    @unittest.skipUnless(OPEN_MPI, "other launchers keep the signal to themselves")
    def test_mpirun_passes_sigusr1_on(self):
        self.start(mpirun(2))
        self.process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.process.wait(120), 75)
        self.assertEqual(self.metrics("run", "summary")[0]["outcome"], "interrupted")

    def test_a_rank_ends_when_a_lock_is_given_back(self):
        with open(self.path("lock"), "w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            self.start(words=["--end-with", self.path("lock")])
            time.sleep(0.5)  # it asks for the lock many times
            lines = len(self.lines())
            wait_until(lambda: len(self.lines()) > lines, self.process)
        self.assertEqual(self.process.wait(120), 75)

    @needs_mpi
    def test_under_mpirun_the_last_second_is_enough(self):
        self.start(mpirun(2))
        self.process.terminate()  # mpirun: ranks get SIGTERM a second later, SIGKILL after another
        self.assertNotEqual(self.process.wait(120), 0)
        self.assertGreater(self.loss_of("run"), 0)

    @needs_mpi
    def test_what_ranks_share_is_saved_whole(self):
        # Nearly all that a step does is to multiply every kernel by 0.99: a file that was written while
        # other ranks changed the weights would hold parts of two steps.
        words = ["--data", "synthetic:90", "--limit-val", "4", "--image-size", "160", "--batch", "3",
                 "--threads", "1", "--optimizer", "sgd", "--lr", "1e-5", "--weight-decay", "1000",
                 "--log-every", "0"]
        self.expect(0, *words, "--steps", "1", "--out", "one")
        first = self.kernel("one")
        saved = 0
        for _ in range(8):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            job = subprocess.Popen([*mpirun(3), PROGRAM, *words, "--steps", "100000", "--out", "run"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for line in job.stdout:
                if line.startswith(b"Epoch 2"):
                    break
            job.terminate()
            job.stdout.close()
            job.wait(240)
            if not os.path.exists(self.path("run/weights.safetensors")):
                continue  # the launcher's second was too short
            ratios = [now / then for now, then in zip(self.kernel("run"), first) if abs(then) > 1e-3]
            self.assertLess(max(ratios) / min(ratios), 1.005)
            saved += 1
            if saved == 3:
                break
        self.assertEqual(saved, 3)

    def test_averages_are_saved_beside_them(self):
        self.expect(0, *[w for w in LONG if w not in ("--out", "run")], "--steps", "1", "--lr", "0", "--out", "first")
        first = self.kernel("first")
        for at_once in (True, False):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            self.start(words=["--ema", "0.9999999", "--lr", "0.1", *(SLOW if at_once else [])])
            self.process.terminate()
            if at_once:
                self.read_until("averages of these weights are in run/weights-ema.safetensors",
                                "weights of the last completed step are in run/weights.safetensors; the training ends")
                self.process.kill()
                self.process.wait(120)
            else:
                self.assertEqual(self.process.wait(120), 75)
            far, near = (max(abs(a - b) for a, b in zip(self.kernel("run", name), first, strict=True))
                         for name in ("weights.safetensors", "weights-ema.safetensors"))
            self.assertGreater(far, 1e-5)  # some steps of SGD
            self.assertLess(near, 1e-3 * far)  # averages that have hardly moved
            self.assertEqual(self.expect(0, "predict", "--weights", "run/weights-ema.safetensors", "--json", "-",
                                         self.image()).returncode, 0)

    def test_weights_are_told_of_before_averages_that_cannot_be_saved(self):
        self.start(words=["--ema", "0.99", *SLOW])
        os.makedirs(self.path("run/weights-ema.safetensors"))  # no file can have this name
        self.process.terminate()
        self.read_until("averages of these weights are not saved yet (",
                        "weights of the last completed step are in run/weights.safetensors; the training ends")
        self.assertEqual(self.process.wait(120), 74)
        self.loss_of("run")

    @needs_mpi
    def test_averages_of_weights_before_these_are_named(self):
        """Two ranks have a half of the averages each."""
        self.start(launch=mpirun(2), words=["--ema", "0.99", "--allreduce", "shm", *SLOW])
        self.write("run/weights-ema.safetensors", "those of a run before this one")
        for rank in self.ranks():
            os.kill(rank, signal.SIGTERM)
        self.read_until("; run/weights-ema.safetensors is still of weights before these",
                        "weights of the last completed step are in run/weights.safetensors; the training ends")
        self.process.stderr.read()
        self.process.wait(120)

    def read_until(self, last, *before):
        """Reads what the training says up to a line with `last`, behind lines with those."""
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if last in line:
                break
        found = [next((i for i, line in enumerate(lines) if text in line), None) for text in (*before, last)]
        self.assertNotIn(None, found, lines)
        self.assertEqual(found, sorted(found), lines)

    def image(self):
        self.expect(0, "data", "synth", "made", "--images", "2", "--image-size", "16")
        image = glob.glob(self.path("made", "*", "*"))[0]
        os.rename(image, self.path("image"))
        shutil.rmtree(self.path("made"))
        return "image"

    def kernel(self, run, file="weights.safetensors"):
        """The largest kernel of the saved weights."""
        arrays = read_arrays(self.path(run, file))[1]
        return array.array("f", max((data for name, (*_, data) in arrays.items() if name.endswith("/kernel")), key=len))

    def ranks(self):
        """Processes of the program in this test's folder that have taken their signals into their own hands:
        before that, while the system loads it, a signal kills a process as it kills any other."""
        found = []
        for pid in self.programs():
            try:
                with open(f"/proc/{pid}/status") as f:
                    blocked = int(next(line for line in f if line.startswith("SigBlk:")).split()[1], 16)
            except (OSError, StopIteration):
                continue
            if blocked >> (signal.SIGUSR1 - 1) & 1:
                found.append(pid)
        return found

    @unittest.skipUnless(OPEN_MPI, "other launchers end with codes of their own")
    def test_a_signal_while_mpi_starts_ends_the_job(self):
        """Ranks that end inside MPI_Init leave Open MPI's mpirun waiting for ever."""
        draw = random.Random(7)
        for number in range(8):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            sent = (signal.SIGUSR1, signal.SIGTERM)[number % 2]
            job = subprocess.Popen([*mpirun(2), PROGRAM, *LONG], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(job.stderr.close)
            self.addCleanup(job.kill)
            wait_until(lambda: len(self.ranks()) >= 2, job, pause=0.005)
            after = draw.choice([0, 0.02, 0.05, 0.1, 0.3, 1]) * draw.random()
            time.sleep(after)
            ranks = self.ranks()
            for pid in ranks if number % 4 < 2 else ranks[:1]:
                os.kill(pid, sent)
            with self.subTest(number=number, signal=sent, after=after):
                self.assertEqual(job.wait(120), 75)

    def test_a_second_ctrl_c_ends_at_once(self):
        self.start(words=["--backend", "reference", "--batch", "54"])  # steps of some seconds
        self.process.send_signal(signal.SIGINT)
        self.read_until("Ctrl-C again ends at once")
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(120), 130)
        self.assertFalse(os.path.exists(self.path("run/weights.safetensors")))


if __name__ == "__main__":
    unittest.main()
