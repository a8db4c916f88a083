"""Threads that OpenMP does not give: every command that computes sees it before it computes, and says why."""
import os
import re
import subprocess
import unittest

from program import mpirun, needs_mpi
from tiny import TinyTest

SMALL = ["--model", "tiny.json", "--threads", "2"]
WORDS = [*SMALL, "--data", "synthetic:60", "--batch", "20", "--limit-val", "0", "--steps", "2"]
ONE = {"OMP_THREAD_LIMIT": "1"}
SAYS = ["1 rank x 1 thread, not 2: OMP_THREAD_LIMIT allows no more"]


class Teams(TinyTest):
    def setUp(self):
        super().setUp()
        if self.run_program("info", "--backend", "cpu").returncode:
            self.skipTest("this build has no OpenMP")
        os.environ.pop("OMP_NUM_THREADS", None)

    def trained(self, **limits):
        """Losses of a training that was to have two threads, and what it said."""
        done = self.expect(0, *WORDS, "--overwrite", "--out", "run", "--log-every", "1", timeout=60, **limits)
        return self.threads(self.json_of("run", "environment.json")), done.stderr

    @staticmethod
    def threads(environment):
        return [int(re.search(r", (\d+) threads?,", line).group(1)) for line in environment["map"]]

    def test_whatever_makes_teams_smaller(self):
        for variable, value in (("OMP_THREAD_LIMIT", "1"), ("OMP_MAX_ACTIVE_LEVELS", "0")):
            threads, said = self.trained(**{variable: value})
            self.assertEqual(threads, [1])
            self.assertEqual(said.count(f"not 2: {variable} allows no more"), 1, said)
        # A machine that is busy, nested teams and bound threads make none smaller that is planned.
        for limits in ({"OMP_DYNAMIC": "true"}, {"OMP_NESTED": "false"}, {"OMP_MAX_ACTIVE_LEVELS": "1"},
                       {"OMP_THREAD_LIMIT": "2"}, {"OMP_PROC_BIND": "master"}):
            threads, said = self.trained(**limits)
            self.assertEqual(threads, [2])
            self.assertNotIn("allows no more", said)

    def test_stacks_that_no_machine_has(self):
        for variable in ("OMP_STACKSIZE", "GOMP_STACKSIZE"):
            self.expect(2, *WORDS, "--out", "run", timeout=60, says=["can have 0", f" {variable} 200000000000)"],
                        **{variable: "200000000000"})

    def test_a_reproducible_training_has_the_same_bits(self):
        hashes = []
        for limits in ({}, ONE):
            self.expect(0, *WORDS, "--reproducible", "--overwrite", "--out", "run", timeout=60, **limits)
            hashes.append(self.metrics("run", "summary")[0]["weights_hash"])
        self.assertEqual(*hashes)

    def test_every_command_that_computes(self):
        self.trained()
        weights = ["--weights", "run/weights.safetensors", "--threads", "2"]
        self.expect(0, "data", "synth", "images", "--images", "4", "--image-size", "16")
        for words in (["eval", *weights, "--data", "synthetic:60"], ["predict", *weights, "images"],
                      ["bench", "step", *SMALL, "--batch", "8", "--repeat", "1"],
                      ["bench", "kernels", *SMALL, "--micro-batch", "8", "--batch", "8", "--repeat", "1"],
                      ["train", *WORDS, "--dry-run"],
                      ["selftest", "--backend", "cpu", "--precision", "float", "--threads", "2"]):
            with self.subTest(words=words):
                self.expect(0, *words, timeout=60, says=SAYS, **ONE)
        self.expect(0, "eval", *weights[:2], "--data", "synthetic:60", says=SAYS, OMP_NUM_THREADS="2", **ONE)
        self.expect(0, "export", *weights[:2], "--safetensors", "other.safetensors", **ONE)

    @needs_mpi
    def test_ranks(self):
        """One of them alone has a limit: they share the work all the same."""
        self.tool("start", '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" = 1 ] && export OMP_THREAD_LIMIT=1\n'
                            'exec "$CPUTRAIN" "$@"\n')
        done = self.run_with(self.path("start"), *WORDS, "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("1 rank x 1 thread, not 2: OMP_THREAD_LIMIT"), 1, done.stderr)
        self.assertEqual(self.threads(self.json_of("run", "environment.json")), [2, 1])

    def run_with(self, program, *words):
        return subprocess.run([*mpirun(2), program, *words], cwd=self.folder, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True)

    def test_a_sweep_leaves_out_what_it_would_measure_wrongly(self):
        done = self.expect(0, "sweep", *SMALL, "--data", "synthetic:60", "--np", "2", "--batch", "20", "--plan-only",
                           "--out", "grid", **ONE)
        self.assertIn("OMP_THREAD_LIMIT allows 1 thread per rank, not 2", done.stdout + done.stderr)

    @unittest.skipUnless(os.environ.get("CPUTRAIN_SIMULATES") == "1", "this build does not simulate")
    def test_costs_are_measured_with_the_threads_there_are(self):
        alone = len(os.sched_getaffinity(0)) == 1
        says = [] if alone else ["OMP_THREAD_LIMIT allows no more than 1; their costs are taken from fewer"]
        self.expect(0, "simulate", "--model", "tiny.json", "--platform", "here", "--np", "1", "--batch", "8",
                    "--measure-seconds", "1", timeout=100, says=says, **ONE)


if __name__ == "__main__":
    unittest.main()
