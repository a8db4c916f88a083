"""Trainings of a sweep that fail, never settle, or leave odd files: their cells say why, the others stay."""
import json
import os
import unittest

from sweeps import CELL, SweepTest, needs_mpirun


@needs_mpirun
class Failures(SweepTest):
    def test_one_odd_run_does_not_lose_the_others_table(self):
        whole = [word for word in CELL if word not in ("--steps", "2")]
        self.expect(0, *whole, "--np", "1", "--batch", "8,16,24", "--full-epochs", "--epochs", "1", "--out", "s")
        odd, good, pipe = self.cells().values()
        with open(self.path("s", odd["runs"][0], "metrics.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        lines[-1].update(loss=1e16)
        with open(self.path("s", odd["runs"][0], "metrics.jsonl"), "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        self.write(self.path("s", odd["runs"][0], "limits.json"), {"fma_gflops": -5, "triad_gbs": 20})
        os.remove(self.path("s", pipe["runs"][0], "limits.json"))
        os.mkfifo(self.path("s", pipe["runs"][0], "limits.json"))
        os.mkfifo(self.path("s", "cells", "np1-t1-b24-cpu", "repeat-1.failure.json"))
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        first, second, third = self.cells().values()
        self.assertEqual(first["seconds_per_epoch"], odd["seconds_per_epoch"])
        self.assertEqual([first[k] for k in ("final_loss", "fma_gflops", "triad_gbs")], [None, None, 20])
        self.assertEqual(second, good)
        self.assertEqual((third["status"], third["reason"]), ("n/a", "not measured yet"))
        self.expect(0, "report", "s")

    def test_what_cannot_be_measured_says_why(self):
        self.expect(0, *CELL, "--np", "1,4096", "--batch", "8", "--backend", "cpu,cuda", "--precision", "exact",
                    "--out", "s", says=["n/a: this machine has"])
        cells = {(c["cpus"], c["backend"]): c for c in self.table()["cells"]}
        self.assertEqual(cells[1, "cpu"]["status"], "scaled")
        self.assertEqual(cells[4096, "cpu"]["status"], "n/a")
        self.assertIn("--oversubscribe", cells[4096, "cpu"]["reason"])
        self.assertRegex(cells[1, "cuda"]["reason"], "no device|backend cuda")  # a build with its plugin, or without
        self.assertIsNone(cells[1, "cuda"]["seconds_per_epoch"])

    def test_a_training_that_fails_is_no_reason_to_stop(self):
        self.tool("launch", '#!/bin/bash\n[ $2 = 1 ] || { echo "no room"; exit 3; }\nshift 2; exec "$@"\n')
        words = [*CELL, "--np", "2,1", "--batch", "8", "--launcher", "./launch", "--out", "s"]
        self.expect(0, *words, says=["n/a: exit code 3: no room"])
        self.assertEqual(self.cells()[2, 8]["reason"], "exit code 3: no room")
        self.assertEqual(self.table()["options"]["launcher"], "./launch")
        self.assertEqual(self.cells()[1, 8]["status"], "scaled")
        before = self.files()
        self.expect(0, *words)  # is not tried again by itself
        self.assertEqual(self.files(), before)
        os.rename(self.path("launch"), self.path("other"))
        self.expect(2, *words, "--retry", says=["cannot start ./launch"])

    def test_a_signal_to_the_ranks_alone_does_not_end_the_sweep(self):
        self.tool("launch", '#!/bin/bash\n[ $2 = 1 ] || { echo "cputrain: stopped"; exit $CODE; }\n'
                            'shift 2; exec "$@"\n')
        for code in ("75", "130"):
            self.expect(0, *CELL, "--np", "2,1", "--batch", "8", "--launcher", "./launch", "--out", "s",
                        "--overwrite", CODE=code)
            self.assertEqual(self.cells()[2, 8]["reason"],
                             f"exit code {code} (a signal ended it, and the sweep got none): stopped")
            self.assertEqual(self.cells()[1, 8]["status"], "scaled")

    def test_a_training_that_never_settled_says_so(self):
        budget = ("input_wait", "forward", "backward", "allreduce_exposed", "straggler_wait", "optimizer", "other")
        part = {"steps": 0, "seconds": 0, "budget": dict.fromkeys(budget, 0)}
        lines = [{"type": "step", "step": 1, "images": 8, "seconds": 1, "trying": True},
                 {"type": "step", "step": 2, "images": 8, "seconds": 1, "trying": True},
                 {"type": "epoch", "epoch": 1, "images": 16, **part, "steps": 2, "seconds": 2, "settled": part},
                 {"type": "summary", "outcome": "finished"}]
        with open(self.path("figures"), "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
        with open(self.path("launch"), "w") as f:  # stands in for a training on a machine that only tries
            f.write('#!/bin/bash\nwhile [ "$1" != --out ]; do shift; done\nmkdir -p "$2"; cp figures "$2/metrics.jsonl"\n')
        os.chmod(self.path("launch"), 0o755)
        self.expect(0, *CELL, "--np", "1", "--batch", "8", "--launcher", "./launch", "--out", "s")
        self.assertEqual(self.cells()[1, 8]["reason"], "no step without trials of algorithms in 2 steps; raise --steps")

    def test_a_signal_that_ends_the_ranks_first_ends_the_sweep(self):
        self.tool("launch", '#!/bin/bash\n(sleep 0.5; kill -USR1 $PPID) &\nexit 75\n')
        self.expect(75, *CELL, "--np", "1", "--batch", "8", "--launcher", "./launch", "--out", "s")
        self.assertEqual(self.cells()[1, 8]["reason"], "not measured yet")


if __name__ == "__main__":
    unittest.main()
