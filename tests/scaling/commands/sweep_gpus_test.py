"""sweep --gpus: columns of GPUs beside columns of CPUs. No GPU is here: what starts ranks leaves run folders as
trainings do, with times that a formula says."""
import json
import os
import unittest

from page import Page
from sweeps import CELL, SweepTest

# Seconds of a step: 0.1 on one GPU, 0.06 on two, 0.8 / n on n CPUs.
LAUNCH = """#!/usr/bin/env python3
import json, os, sys
words = sys.argv[1:]
value = lambda flag: words[words.index(flag) + 1]
ranks, gpus, out = int(value("-np")), value("--backend") == "cuda", value("--out")
seconds = {1: 0.1, 2: 0.06, 4: 0.04}[ranks] if gpus else 0.8 / ranks
os.makedirs(out)
environment = {"machine": {"cpu": "AMD EPYC"}, "ranks": ranks}
if gpus:
    environment["gpus"] = {"count": int(os.environ.get("GPUS", ranks)), "name": "NVIDIA H100 80GB HBM3"}
    environment["emulated"] = "EMULATED" in os.environ
steps, batch = int(value("--steps")), int(value("--batch"))
def part(n):
    parts = dict.fromkeys(("input_wait", "forward", "allreduce_exposed", "straggler_wait", "optimizer", "other"), 0)
    return {"steps": n, "seconds": n * seconds, "budget": {**parts, "backward": n * seconds}}
lines = [{"type": "step", "step": n + 1, "epoch": 1, "images": batch, "loss": 1, "seconds": seconds} for n in range(steps)]
lines += [{"type": "epoch", "epoch": 1, "images": steps * batch, "loss": 1, **part(steps), "settled": part(steps - 1)},
          {"type": "summary", "outcome": "finished", "loss": 1, "accuracy": 0.5}]
for name, text in (("metrics.jsonl", "".join(json.dumps(line) + "\\n" for line in lines)),
                   ("environment.json", json.dumps(environment)),
                   ("limits.json", json.dumps({"fma_gflops": 3e5 * ranks, "triad_gbs": 3000 * ranks}))):
    with open(os.path.join(out, name), "w") as f:
        f.write(text)
with open("started", "a") as f:
    f.write(out + "\\n")
"""
WORDS = [*CELL, "--repeat", "2", "--np", "1,2,4", "--gpus", "1,2", "--backend", "cpu,cuda", "--batch", "16",
         "--precision", "float", "--out", "s"]
FAR = ["--launcher", "./launch"]


class SweepGpus(SweepTest):
    def setUp(self):
        super().setUp()
        self.tool("launch", LAUNCH)

    def by_place(self):
        return {(c["backend"], c["cpus"]): c for c in self.table()["cells"]}

    def started(self):
        return self.text_of("started").splitlines()

    def made(self, *words, **environment):
        """Sweeps, where this program has the backend and its GPU is not emulated."""
        done = self.run_program(*words, **environment)
        for lack in ("has no backend cuda", "device is emulated"):
            if lack in done.stderr:
                self.skipTest(f"this program {lack}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_gpus_stand_beside_cpus_in_one_table(self):
        text = self.made(*WORDS, *FAR).stdout
        cells = self.by_place()
        self.assertEqual(list(cells), [("cpu", 1), ("cpu", 2), ("cpu", 4), ("cuda", 1), ("cuda", 2)])
        for (backend, count), c in cells.items():
            self.assertEqual(c["status"], "scaled", c["reason"])
            seconds = {1: 0.1, 2: 0.06}[count] if backend == "cuda" else 0.8 / count
            self.assertAlmostEqual(c["seconds_per_epoch"], seconds * 45 / 16)
            self.assertEqual((c.get("gpus"), c.get("device")),
                             (count, "NVIDIA H100 80GB HBM3") if backend == "cuda" else (None, None))
            self.assertIn(f"./launch -np {count} ", c["command"])
            self.assertEqual(c["fma_gflops"], 3e5 * count)
        self.assertGreater(self.table()["maps_per_image"], 0)
        self.assertIn("One NVIDIA H100 80GB HBM3 (cuda tf32) is as quick as more than 4 CPUs of cpu "
                      "(8.00 or more by extrapolation) at batch 16", text)
        with open(self.path("s", "report.json")) as f:
            report = {(c["backend"], c["cpus"]): c for c in json.load(f)["cells"]}
        against = report["cuda", 1]["against_cpus"]
        self.assertAlmostEqual(against["speed_up"], 8)
        self.assertEqual((against["cpus"], against["equal"]["place"]), (1, "more"))
        self.assertAlmostEqual(report["cuda", 2]["efficiency"], 0.1 / 0.06 / 2)  # among GPUs alone
        self.assertGreater(report["cuda", 1]["memory_share"], 0)
        for form in ("md", "html", "tex"):
            page = self.text_of("s", f"report.{form}")
            if form == "html":  # the data of its scripts say all of it, too
                page = " ".join(Page(page).texts)
            for said in ("GPUs beside CPUs, and their rates", "NVIDIA H100 80GB HBM3", "mma.sync", "data sheet"):
                self.assertIn(said, page, form)

        self.assertEqual(len(self.started()), 10)
        before = self.files()
        self.made(*WORDS, *FAR)  # what is there is not made again
        self.assertEqual(self.files(), before)
        lost = cells["cuda", 2]["runs"][1]
        os.remove(self.path("s", lost, "metrics.jsonl"))
        self.made(*WORDS, *FAR)
        self.assertEqual(self.started()[10:], [f"s/{lost}"])
        self.made("sweep", "--extend", "--gpus", "4", "--out", "s")
        self.assertEqual(list(self.by_place())[3:], [("cuda", 1), ("cuda", 2), ("cuda", 4)])
        self.assertEqual(len(self.started()), 13)

    def test_a_price_of_gpus(self):
        self.made(*WORDS, *FAR)
        self.expect(0, "report", "s", "--price-per-cpu-hour", "cpu:0.036", "--price-per-gpu-hour", "3.6")
        with open(self.path("s", "report.json")) as f:
            costs = {(c["backend"], c["cpus"]): c["cost"] for c in json.load(f)["cells"]}
        self.assertAlmostEqual(costs["cpu", 4], 4 * 0.036 / 3600 * 0.2 * 45 / 16)
        self.assertAlmostEqual(costs["cuda", 2], 2 * 3.6 / 3600 * 0.06 * 45 / 16)
        for words, says in ((["--price-per-gpu-hour", "cpu:1"], "cpu computes on CPUs; name a backend of GPUs"),
                            (["--price-per-gpu-hour", "cuda:1", "--price-per-hour", "cuda:2"], "both of backend cuda"),
                            (["--price-per-gpu-hour", "x"], "--price-per-gpu-hour x: must be a price")):
            self.expect(2, "report", "s", *words, says=[says])

    def test_ranks_that_share_a_gpu_are_no_more_gpus(self):
        self.made(*WORDS, *FAR, GPUS="1")
        two = self.by_place()["cuda", 2]
        self.assertEqual((two["gpus"], two["reason"]), (1, "its 2 ranks shared 1 GPU"))

    def test_times_of_an_emulated_device_are_none(self):
        self.made(*WORDS, *FAR, EMULATED="1")
        cells = self.by_place()
        self.assertEqual(cells["cpu", 4]["status"], "scaled")
        for count in (1, 2):
            self.assertEqual(cells["cuda", count]["status"], "n/a")
            self.assertIn("emulated device", cells["cuda", count]["reason"])

    def test_gpus_that_are_not_there_are_refused(self):
        at_most = "--gpus 4096: (this machine has|there is no device|this build has no backend cuda)|emulated"
        done = self.expect(2, *CELL, "--np", "1", "--gpus", "4096", "--backend", "cpu,cuda", "--precision", "exact",
                           "--batch", "8", "--out", "s")
        self.assertRegex(done.stderr, at_most)
        self.assertFalse(os.path.exists(self.path("s")))
        self.expect(2, *CELL, "--np", "1", "--gpus", "1", "--batch", "8", "--out", "s",
                    says=["--gpus 1 with --backend cpu: no column is of GPUs"])
        self.expect(2, *CELL, "--gpus", "0", "--backend", "cuda", says=["--gpus 0: must be different whole numbers"])

    def test_a_plan_for_machines_with_gpus(self):
        self.made(*CELL, "--np", "1", "--gpus", "1,8", "--backend", "cpu,cuda", "--precision", "exact", "--batch", "8",
                  "--out", "s", "--plan-only")
        flags = self.json_of("s", "sweep.json")
        self.assertEqual((flags["np"], flags["gpus"]), ("1", "1,8"))
        self.made("sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual([(c["backend"], c.get("gpus")) for c in self.table()["cells"]],
                         [("cpu", None), ("cuda", 1), ("cuda", 8)])


if __name__ == "__main__":
    unittest.main()
