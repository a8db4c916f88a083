"""Ranks that do not answer are named, and the job ends with 76 or goes on."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from program import OPEN_MPI, RANK, mpirun, needs_mpi
from trainings import LONG, FaultTest, why_no_trace

ENDED = 76
# MPICH's launcher may tell the signal instead with which it ends the others.
CODES = [ENDED] if OPEN_MPI else [ENDED, signal.SIGKILL]
EXCHANGES = [(2, "--reproducible"), (2, "--allreduce", "shm"), (3, "--allreduce", "ring"), (3, "--allreduce", "mpi"),
             (3, "--allreduce", "ps"), (4, "--allreduce", "rabenseifner")]


@needs_mpi
class Stalls(FaultTest):
    def begin(self, *words, ranks=2, out="run"):
        """A training without end, in its first steps."""
        process = self.start("--epochs", "100000", *words, ranks=ranks, out=out)
        self.until(process, lambda: len(self.lines(out, "step")) >= 3)
        return process

    def stop(self, rank):
        self.send(signal.SIGSTOP, self.rank_of(rank))

    def assert_names(self, text, rank):
        """By all lines, until the job ends: the launcher then lets a stopped rank go on, which misses the others."""
        said = []
        for line in text.splitlines():
            busy = re.search("for a CPU|still compute", line)  # the machine may be, before
            said += [line] if "got further" in line and not busy else []
            if "so the job ends" in line:
                break
        self.assertTrue(said, text)
        for line in said:
            self.assertEqual(re.findall(r"\brank (\d+) on \S+", line), [str(rank)], line)

    def stalls(self, run="run"):
        """Those of ranks: a disk that others keep busy may be named, too."""
        with open(self.path(run, "stalls.jsonl")) as lines:
            return [stall for stall in map(json.loads, lines) if stall["cause"] != "storage"]

    def wait_for_end(self, process):
        text = self.wait(process)
        self.assertIn(process.returncode, CODES, text[-2000:])
        return text

    def assert_ends(self, process, run, rank, cause):
        """By --stall end: the default is longer than this test waits."""
        text = self.wait_for_end(process)
        self.assert_names(text, rank)
        events = self.stalls(run)
        ends = [e["event"] for e in events].index("end")
        told, last = [e for e in events[:ends] if e["cause"] not in ("cpu", "slow")], events[ends]
        self.assertEqual({e["event"] for e in told} or {"stall"}, {"stall"})
        self.assertEqual([last[k] for k in ("event", "cause", "ranks")], ["end", cause, [rank]])
        return last

    def stop_first_and_last(self, ranks, *words):
        for rank in (0, ranks - 1):
            with self.subTest(words=words, rank=rank):
                run = "-".join(["stopped", str(rank), *(w.strip("-") for w in words)])
                process = self.begin("--stall", "end=3", *words, ranks=ranks, out=run)
                self.stop(rank)
                last = self.assert_ends(process, run, rank, "silent")
                self.assertEqual(last["by"], 1 if rank == 0 else 0)
                self.assertGreaterEqual(last["step"], 3)

    def test_a_stopped_rank_is_named_and_ends_the_job(self):
        """The first, of which rank 1 speaks, and the last."""
        self.stop_first_and_last(3)

    @unittest.skipUnless(LONG, "slow: twelve trainings")
    def test_stopped_ranks_in_each_exchange(self):
        for ranks, *words in EXCHANGES:
            self.stop_first_and_last(ranks, *words)

    def test_a_rank_that_hangs_is_named_with_its_phase(self):
        """It answers, and so does its host."""
        for phase, step in (("exchange", 5), ("decode", 0), ("validate", 7)):
            with self.subTest(phase):
                process = self.start("--stall", "end=3", ranks=2, out=phase,
                                     CPUTRAIN_FAULT=f"hang:1:{step}:{phase}")
                last = self.assert_ends(process, phase, 1, "hung")
                self.assertEqual(last["phase"], phase)

    def test_a_rank_that_hangs_after_it_computed_ends_the_job(self):
        """However long it did, and on however many cores."""
        process = self.start("--stall", "end=3", ranks=2, CPUTRAIN_FAULT="busy:1:5:forward,hang:1:5:forward")
        self.assert_ends(process, "run", 1, "hung")

    def test_a_rank_that_comes_back_goes_on(self):
        process = self.begin("--stall", "warn=1,end=30")
        self.stop(1)
        self.until(process, lambda: re.search(r"rank 1 on \S+ does not answer", self.said(process)))
        before = len(self.lines("run", "step"))
        self.send(signal.SIGCONT, self.rank_of(1))
        self.until(process, lambda: len(self.lines("run", "step")) > before + 3)
        self.until(process, lambda: "goes on again" in self.said(process))
        self.send(signal.SIGUSR1, self.rank_of(0))
        text = self.wait(process, 75)
        self.assertRegex(text, r"rank 1 on \S+ goes on again after \d+\.\d s")
        told, back = [e for e in self.stalls() if (e["cause"], e["ranks"]) == ("silent", [1])]
        self.assertEqual((told["event"], back["event"]), ("stall", "goes_on"))
        self.assertGreater(back["seconds"], 1)

    def test_a_slow_rank_is_named_and_ends_nothing(self):
        process = self.start("--stall", "warn=1,end=2", ranks=2, CPUTRAIN_FAULT="busy:1:5:forward")
        text = self.wait(process, 0)
        # On a busy machine who computes may have less of a CPU than it waits for one.
        self.assertRegex(text, r"rank 1 on \S+ (still computes|waits for a CPU) \(in forward of step 5\)")
        stalls = self.stalls()
        self.assertEqual([stalls[0]["event"], stalls[-1]["event"]], ["stall", "goes_on"])
        self.assertLessEqual({stall["cause"] for stall in stalls}, {"slow", "cpu"})

    def starve(self, pid):
        """Its threads have one CPU, and that only when nobody else wants it."""
        cpu = {min(os.sched_getaffinity(0))}
        for _ in range(8):
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                     preexec_fn=lambda: os.sched_setaffinity(0, cpu))
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            os.sched_setaffinity(thread, cpu)
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))

    def assert_lives_without_a_cpu(self, ranks):
        process = self.begin("--stall", "warn=1,end=3", ranks=ranks)
        self.starve(self.rank_of(1) if ranks else process.pid)
        if ranks:
            self.until(process, lambda: re.search(r"rank 1 on \S+ waits for a CPU", self.said(process)))
        time.sleep(5)
        self.assertIsNone(process.poll(), self.said(process))
        self.assertNotIn("the job ends", self.said(process))
        causes = {e["cause"] for e in self.stalls()} if ranks else set()
        self.assertLessEqual(causes, {"cpu", "slow"})

    def test_a_rank_without_a_cpu_is_named_and_ends_nothing(self):
        self.assert_lives_without_a_cpu(2)

    def test_one_process_without_a_cpu_goes_on(self):
        self.assert_lives_without_a_cpu(0)

    def test_what_survivors_have_is_saved_and_a_resume_goes_on(self):
        """The weights are those of a training that ends behind the last step that was made."""
        process = self.start("--stall", "end=3", "--reproducible", ranks=2, CPUTRAIN_FAULT="hang:1:20:forward")
        text = self.wait_for_end(process)
        self.assertIn("the newest whole checkpoint is ckpt-000000014, and --resume auto goes on from it", text)
        self.assertIn("weights of the last completed step are in run/weights.safetensors; the job ends", text)
        self.wait(self.start("--steps", "19", "--reproducible", ranks=2, out="short"), 0)
        self.assertEqual(*(self.bytes_of(run, "weights.safetensors") for run in ("run", "short")))
        self.wait(self.start("--resume", "auto", "--reproducible", ranks=2), 0)
        self.wait(self.start("--reproducible", ranks=2, out="whole"), 0)
        self.assert_same_end("run", "whole")

    def test_without_rank_0_the_checkpoint_that_counts_is_named(self):
        process = self.begin("--stall", "end=3")
        self.until(process, self.points)
        self.stop(0)
        text = self.wait_for_end(process)
        named = re.search(r"the newest whole checkpoint is ckpt-(\d{9})", text)
        self.assertTrue(named, text)
        # The launcher lets rank 0 go on as it ends the job: it may write another then.
        self.assertIn(int(named[1]), range(1, max(self.points()) + 1))

    @unittest.skipIf(why_no_trace(), why_no_trace())
    def test_a_disk_that_hangs_keeps_no_job_from_its_end(self):
        """Whoever wants to write the line of the stall waits for ever, too."""
        trace = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-P", self.path("run/stalls.jsonl"),
                 "-e", "inject=openat:delay_enter=100s"]
        process = self.start("--stall", "end=3", launch=[*mpirun(3), *trace], CPUTRAIN_FAULT="hang:1:5:exchange")
        text = self.wait_for_end(process)
        self.assertIn("so the job ends: rank 1 on", text)
        self.assertFalse(os.path.exists(self.path("run/stalls.jsonl")))

    def test_evaluation_is_watched(self):
        self.wait(self.start("--epochs", "1", ranks=2), 0)
        process = self.start_program("eval", "--weights", "run/weights.safetensors", "--data", "data", "--threads",
                                     "1", "--stall", "end=3", ranks=2, CPUTRAIN_FAULT="hang:1:0:validate")
        self.assert_names(self.wait_for_end(process), 1)

    def test_a_rank_that_ends_before_mpi_begins_is_named(self):
        script = self.path("late.sh")
        with open(script, "w") as f:
            f.write(f'#!/bin/sh\n[ "${RANK}" = 2 ] && exit 0\nexec "$@"\n')
        os.chmod(script, 0o755)
        process = self.start("--stall", "start=3", launch=[*mpirun(3), script])
        text = self.wait(process)
        self.assertNotEqual(process.returncode, 0, text)
        self.assertIn("rank 2 never came", text)


if __name__ == "__main__":
    unittest.main()
