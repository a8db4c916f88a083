"""Trainings that are killed at random moments, half of them while a checkpoint is written, end as those that were
not."""
import os
import random
import shutil
import signal
import time
import unittest

from program import needs_mpi
from tiny import TINY
from trainings import LONG, FaultTest


class Kills(FaultTest):
    def kill_often(self, kills, seed, *words, ranks=0):
        """Kills a training again and again until it is done, and as many trainings as that takes."""
        draw, done = random.Random(seed), 0
        started = time.time()
        self.wait(self.start(*words, ranks=ranks, out="whole"), 0)
        seconds = time.time() - started
        while done < kills:
            shutil.rmtree(self.path("run"), ignore_errors=True)
            while True:
                process = self.start(*words, "--resume", "auto", ranks=ranks)
                if done < kills and self.kill(process, draw, seconds, writing=done % 2 == 1, ranks=ranks):
                    done += 1
                    self.wait(process)
                    continue
                self.wait(process, 0)
                break
            self.assert_same_end("run", "whole")

    def kill(self, process, draw, seconds, writing, ranks):
        """Whether it was still there to be killed."""
        if writing:
            self.wait_for_checkpoint(process, draw.choice((1, 2, 3, 5)))
            time.sleep(draw.choice((0, 0.001, 0.003)))
        else:
            time.sleep(draw.uniform(0.1, 0.9) * seconds)
        if process.poll() is not None:
            return False
        programs = self.programs()
        who = draw.choice(("all", "launcher", "rank")) if ranks else "all"
        if who == "all":
            targets = [process.pid, *programs]
        else:
            targets = [draw.choice(programs)] if who == "rank" and programs else [process.pid]
        for pid in targets:
            self.send(signal.SIGKILL, pid)
        return True

    def wait_for_checkpoint(self, process, events):
        """Until so many names of checkpoints, temporary ones included, have appeared."""
        before, end = None, time.time() + 30
        while events > 0 and process.poll() is None and time.time() < end:
            names = {f for f in os.listdir(self.path("run"))
                     if "ckpt" in f} if os.path.exists(self.path("run")) else set()
            events -= before is not None and bool(names - before)
            before = names
            time.sleep(0.0005)

    def test_one_process(self):
        self.kill_often(30 if LONG else 1, 1, "--reproducible")

    @needs_mpi
    def test_two_ranks(self):
        self.kill_often(30 if LONG else 2, 2, "--reproducible", ranks=2)

    @needs_mpi
    def test_unsent_gradients(self):
        self.kill_often(20 if LONG else 1, 3, "--compress", "topk:0.1", "--allreduce", "ring", ranks=2)


class BatchNorm(Kills):
    """Each rank moves its own statistics until an epoch ends."""
    layers = [TINY["layers"][0], {"type": "batch_norm"}, *TINY["layers"][1:]]
    test_one_process = test_two_ranks = test_unsent_gradients = None

    @needs_mpi
    def test_statistics_within_an_epoch(self):
        self.kill_often(20 if LONG else 1, 4, "--allreduce", "shm", ranks=2)


if __name__ == "__main__":
    unittest.main()
