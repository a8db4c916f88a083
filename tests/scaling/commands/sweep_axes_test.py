"""Flags of which a sweep takes several values, and cells that are added to a sweep later."""
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


if __name__ == "__main__":
    unittest.main()
