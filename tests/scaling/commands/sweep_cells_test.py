"""Cells of a sweep: of flags with several values, added to it later, and of trainings that fail or never settle."""
import csv
import json
import os
import unittest

from sweeps import CELL, SweepTest, needs_mpirun


@needs_mpirun
class Axes(SweepTest):
    def test_flags_with_several_values_are_axes_and_more_of_them_can_be_added(self):
        words = [*CELL, "--np", "2", "--batch", "8", "--allreduce", "auto,ring", "--out", "s"]
        self.expect(0, *words, says=["2 cells", "[2/2] 2 ranks x 1 thread, batch 8, cpu, --allreduce ring",
                                     "| 8, --allreduce ring "])
        measured = {n: t for n, t in self.files().items() if "/repeat-1/" in n}
        self.assertEqual([c["axes"] for c in self.table()["cells"]], [{"allreduce": "auto"}, {"allreduce": "ring"}])
        with open(self.path("s", "cells", "np2-t1-b8-cpu-allreduce=ring", "repeat-1", "config.json")) as f:
            self.assertEqual(json.load(f)["allreduce"], "ring")
        with open(self.path("s", "report.csv")) as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([(r["allreduce"], r["compress"], r["quickest"]) for r in rows],
                         [("auto", "none", "1"), ("ring", "none", "1")])
        self.expect(2, *words[:-4], "--allreduce", "auto,ring,tree", "--out", "s",
                    says=["holds another sweep", "--extend to add what is new"])
        extend = ["sweep", "--extend", "--out", "s"]
        self.expect(2, *extend, "--seed", "3", says=["would change how all of its cells are measured: seed"])
        self.expect(2, "sweep", "--extend", "--out", "t", says=["t holds no sweep to add cells to"])
        self.expect(0, *extend, "--allreduce", "tree", says=["New: 1 cell", "[3/3] 2 ranks"])
        cells = self.table()["cells"]
        self.assertEqual([(c["axes"]["allreduce"], c["status"]) for c in cells],
                         [("auto", "scaled"), ("ring", "scaled"), ("tree", "scaled")])
        self.assertEqual({n: self.files()[n] for n in measured}, measured)
        # Tasks of the cells that are new have the next numbers; the old ones keep theirs.
        self.expect(0, *extend, "--np", "1", "--compress", "fp16", "--plan-only",
                    says=["New: 9 cells", "`--task 4` to `--task 12`"])
        self.expect(0, "sweep", "--config", "s/sweep.json", "--task", "4")
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        cells = self.table()["cells"]
        self.assertEqual([c["status"] for c in cells], ["scaled"] * 4 + ["n/a"] * 8)
        self.assertEqual([(c["cpus"], c["axes"]["allreduce"], c["axes"]["compress"]) for c in cells[:3]],
                         [(2, "auto", "none"), (2, "ring", "none"), (2, "tree", "none")])
        self.assertEqual({n: self.files()[n] for n in measured}, measured)

    def test_cells_are_added_to_a_sweep_at_work(self):
        self.tool("launch", '#!/bin/bash\ntouch started\nwhile [ ! -e go ]; do sleep 0.05; done\nshift 2; exec "$@"\n')
        at_work = self.start(*CELL, "--np", "1", "--batch", "8", "--launcher", "./launch", "--out", "s")
        self.until("the sweep began nothing", lambda: os.path.exists(self.path("started")))
        self.expect(2, *CELL, "--np", "1", "--batch", "8", "--launcher", "./launch", "--out", "s",
                    says=["another sweep is at work"])
        self.expect(0, "sweep", "--extend", "--batch", "16", "--out", "s",
                    says=["New: 1 cell", "The sweep at work in s measures them behind its own"])
        with open(self.path("go"), "w"):
            pass
        self.assertEqual(at_work.wait(60), 0, at_work.stderr.read())
        self.assertEqual([(c["batch"], c["status"]) for c in self.table()["cells"]],
                         [(8, "scaled"), (16, "scaled")])

    def test_what_a_backend_cannot_do_is_said_before_anything_runs(self):
        self.expect(0, *CELL, "--np", "1", "--batch", "8", "--backend", "cpu,reference", "--precision",
                    "float,double", "--out", "s", "--plan-only",
                    says=["no lines of 1 of 4 cells", "backend cpu computes in float, exact, bf16, not in double"])
        self.assertEqual(self.text_of("s", "plan.txt").count("--precision double"), 1)


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
        self.tool("launch", '#!/bin/bash\n(sleep 0.1; kill -USR1 $PPID) &\nexit 75\n')
        self.expect(75, *CELL, "--np", "1", "--batch", "8", "--launcher", "./launch", "--out", "s")
        self.assertEqual(self.cells()[1, 8]["reason"], "not measured yet")


if __name__ == "__main__":
    unittest.main()
