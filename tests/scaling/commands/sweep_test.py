"""The table: which trainings a grid makes, which of them count, and what is said of each cell."""
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

from program import PROGRAM
from sweeps import CELL, GRID, SweepTest, needs_mpirun


@needs_mpirun
class Tables(SweepTest):
    def test_a_table_and_that_it_is_not_made_twice(self):
        self.expect(0, *GRID, "--out", "s", says=["4 cells", "[4/4] 2 ranks x 1 thread, batch 16",
                                                  "Seconds per epoch"])
        self.assertTrue(os.path.exists(self.path("s", "report.html")))
        cells, table = self.cells(), self.table()
        self.assertEqual(list(cells), [(1, 8), (1, 16), (2, 8), (2, 16)])
        self.assertEqual(table["images_per_epoch"], 45)  # of 50 a tenth is for validation
        self.assertEqual(table["image_size"], 64)
        self.assertEqual((table["options"], table["validation_images"]), ({}, 0))
        here = json.loads(self.expect(0, "info", "--json", "-").stdout)["machine"]["cpu_id"]
        self.assertEqual(table["machine"]["cpu_id"], here)
        self.assertRegex(table["machine"]["build"], r"compiler \d.*own kernels \d+")
        version = int(re.search(r"own kernels (\d+)", table["machine"]["build"])[1])
        for one in table["cells"]:
            self.assertEqual((one["cpu_id"], one["kernels_version"], one["commit"]), (here, version, table["commit"]))
        for (cpus, batch), c in cells.items():
            self.assertEqual((c["status"], c["cpu_id"]), ("scaled", here))
            self.assertEqual(c["ranks"] * c["threads"], cpus)
            steps = [m for m in self.metrics(os.path.join("s", c["runs"][0]), "step")
                     if m["images"] == batch]
            settled = [m["seconds"] for m in steps if m["step"] > 1 and "trying" not in m]
            self.assertGreaterEqual(len(settled), 2, steps)
            self.assertFalse(c["includes_warm_up"])
            last = settled[-2:]
            self.assertAlmostEqual(c["seconds_per_epoch"], sum(last) / len(last) * 45 / batch)
            self.assertAlmostEqual(sum(c["budget"].values()), c["seconds_per_epoch"], places=6)
            self.assertGreater(c["fma_gflops"], 0)
            self.assertNotEqual(c["limits"]["why"], "")
            self.assertIn(f"-np {cpus} ", c["command"])
            (summary,) = self.metrics(os.path.join("s", c["runs"][0]), "summary")
            self.assertGreater(summary["peak_rank_bytes"], 4 * 512 * 512)  # a kernel of its dense layers
            self.assertGreaterEqual(cpus * summary["peak_rank_bytes"], summary["peak_node_bytes"])
            self.assertEqual(c["peak_node_bytes"], summary["peak_node_bytes"])
            self.assertEqual(c["density"], summary.get("density"))
            if "zeros skipped" in self.text_of("s", c["runs"][0] + ".log"):
                self.assertGreater(c["density"], 0)
        before = self.files()
        self.assertFalse([n for n in before if n.endswith("safetensors")])  # large, of no use
        self.expect(0, *GRID, "--out", "s")
        self.assertEqual(self.files(), before)
        machine = self.json_of("s", "machine.json")
        self.write(self.path("s", "machine.json"), {**machine, "date": "2020-02-02", "commit": "commit 0ld"})
        self.expect(0, *GRID, "--out", "s")
        self.assertEqual((self.table()["date"], self.table()["commit"]), ("2020-02-02", "commit 0ld"))
        before = self.files()
        self.expect(0, *GRID, "--out", "s")
        self.assertEqual(self.files(), before)
        self.expect(2, *GRID, "--seed", "3", "--out", "s",
                    says=["--out s holds another sweep", "seed: not given there, \"3\" here"])
        self.assertEqual(self.files(), before)
        self.assertTrue(os.path.exists(self.path("s", "report.html")))
        self.expect(0, *CELL, "--np", "1", "--batch", "8", "--out", "s", "--overwrite", "--plan-only")
        self.assertEqual([n for n in os.listdir(self.path("s")) if n.startswith("report")], [])
        self.expect(0, *CELL, "--np", "1", "--batch", "8", "--lr", "0.5", "--ema", "0.9999", "--no-winograd",
                    "--out", "s", "--overwrite")
        self.assertEqual(list(self.cells()), [(1, 8)])
        self.assertEqual(self.table()["options"], {"ema": "0.9999", "lr": "0.5", "no-winograd": "true"})
        self.assertFalse([n for n in self.files() if n.endswith("safetensors")])
        (log,) = glob.glob(self.path("s", "cells", "*", "repeat-1.log"))
        with open(log) as f:  # steps that are timed need no advice about their recipe
            self.assertNotIn("first weights", f.read())

    def test_lines_of_the_plan_and_tasks_make_the_same_table(self):
        self.expect(0, *GRID, "--out", "s", "--plan-only", says=["--task 4"])
        self.assertFalse(os.path.exists(self.path("s", "cells")))
        lines = self.text_of("s", "plan.txt").splitlines()
        self.assertEqual(len(lines), 4)
        subprocess.run(["bash", "-c", lines[0]], cwd=self.folder, check=True, capture_output=True)
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual([c["status"] for c in self.cells().values()], ["scaled"] + ["n/a"] * 3)
        self.assertEqual(self.cells()[2, 16]["reason"], "not measured yet")
        tasks = [self.start("sweep", "--config", "s/sweep.json", "--task", str(n)) for n in (1, 2, 3, 4)]
        for task in tasks:
            self.assertEqual(task.wait(60), 0, task.stderr.read())
        self.assertEqual(len(glob.glob(self.path("s", "cells", "*", "cell.json"))), 4)
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual({c["status"] for c in self.cells().values()}, {"scaled"})
        self.assertEqual(self.json_of("s", "cells", "np2-t1-b16-cpu", "cell.json"), self.cells()[2, 16])
        self.expect(2, "sweep", "--config", "s/sweep.json", "--task", "5", says=["from 1 to 4"])

    def test_a_plan_means_the_same_from_any_folder(self):
        self.expect(0, "data", "synth", "images", "--images", "40", "--image-size", "64")
        self.expect(0, "sweep", "--image-size", "64", "--data", "images", "--steps", "2", "--repeat", "1", "--np", "1",
                    "--batch", "8", "--out", "s", "--plan-only")
        flags = self.json_of("s", "sweep.json")
        self.assertEqual((flags["data"], flags["out"]),
                         (os.path.realpath(self.path("images")), os.path.realpath(self.path("s"))))
        os.mkdir(self.path("else"))
        for words in (["--task", "1"], ["--collect"]):
            done = subprocess.run([PROGRAM, "sweep", "--config", "../s/sweep.json", *words], cwd=self.path("else"),
                                  text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([c["status"] for c in self.cells().values()], ["scaled"])
        self.assertEqual(os.listdir(self.path("else")), [])
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")

    def test_cells_of_a_batch_lose_alike(self):
        # Two ranks need more steps to find their algorithms, so more images, than one.
        self.expect(0, *CELL, "--np", "1,2", "--batch", "64", "--data", "synthetic:1200",
                    "--optimizer", "sgd", "--out", "s")
        one, two = ([m["loss"] for m in self.metrics(os.path.join("s", cell["runs"][0]), "step")]
                    for cell in self.cells().values())
        self.assertEqual((len(one), len(two)), (9, 15))
        for step, losses in enumerate(zip(one, two), 1):
            with self.subTest(step=step):
                self.assertAlmostEqual(*losses, delta=1e-3)

    def test_what_is_collected_is_of_who_measured_it(self):
        self.tool("mpirun", f'#!/bin/bash\n[[ " $* " != *" -np 2 "* ]] || exit 137\n'
                             f'exec {shutil.which("mpirun")} "$@"\n')
        words = [*CELL, "--np", "1,2,4096", "--batch", "8", "--out", "s"]
        self.expect(0, *words, "--plan-only", says=["no lines of 1 of 3 cells", "4096"])
        for task in ("1", "2", "3"):
            self.expect(0, "sweep", "--config", "s/sweep.json", "--task", task,
                        PATH=self.folder + ":" + os.environ["PATH"])
        told = {}
        for name in glob.glob(self.path("s", "cells", "*", "cell.json")):
            with open(name) as f:
                cell = json.load(f)
            told[cell["cpus"], cell["batch"]] = cell
        self.assertIn("exit code 137 (killed", told[2, 8]["reason"])
        allowed = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, allowed)
        os.sched_setaffinity(0, {min(allowed)})  # another machine, of one CPU
        machine = self.json_of("s", "machine.json")
        self.assertRegex(machine["date"], r"^\d{4}-\d\d-\d\d$")
        self.write(self.path("s", "machine.json"), {**machine, "date": "2020-02-02", "commit": "commit 0ld"})
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual((self.table()["date"], self.table()["commit"]), ("2020-02-02", "commit 0ld"))
        self.assertEqual(self.cells(), told)
        self.assertEqual(self.table()["machine"]["hardware_threads"], len(allowed))
        self.expect(2, "sweep", "--config", "s/sweep.json", "--task", "1",
                    says=["another kind of machine", f"hardware threads: {len(allowed)} there, 1 here"])

    def test_what_was_measured_by_hand_is_of_who_measured_it(self):
        self.expect(0, *GRID, "--out", "s", "--plan-only")
        line = self.text_of("s", "plan.txt").splitlines()[1]
        subprocess.run(["bash", "-c", line], cwd=self.folder, check=True, capture_output=True)
        own = glob.glob(self.path("s", "cells", "*", "repeat-1", "environment.json"))[0]
        with open(own) as f:
            environment = json.load(f)
        environment["machine"].update(cpu="Another CPU", hardware_threads=96, memory_gb=360)
        with open(own, "w") as f:
            json.dump(environment, f)
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        machine = self.table()["machine"]
        self.assertEqual((machine["cpu"], machine["hardware_threads"], machine["memory_bytes"]),
                         ("Another CPU", 96, 360e9))
        self.assertIn(machine["mpi"], environment["libraries"])
        self.assertEqual(self.cells()[1, 16]["command"], line)
        self.assertEqual(self.cells()[1, 8]["command"], "")
        # What this machine measured is not of a table of the other one.
        here = self.text_of("s", "plan.txt").splitlines()[0]
        subprocess.run(["bash", "-c", here], cwd=self.folder, check=True, capture_output=True)
        self.write(self.path("s", "machine.json"), {**self.table(), "cells": []})
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual(self.cells()[1, 16]["status"], "scaled")
        self.assertEqual(self.cells()[1, 8]["status"], "n/a")
        self.assertIn("there, Another CPU here", self.cells()[1, 8]["reason"])
        self.assertNotIn("hardware threads", self.cells()[1, 8]["reason"])
        os.remove(self.path("s", "machine.json"))
        shutil.rmtree(os.path.dirname(glob.glob(self.path("s", "cells", "np1-t1-b8-cpu", "repeat-1", "*"))[0]))
        os.remove(own)  # then nobody knows
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual((self.table()["machine"]["cpu"], self.table()["machine"]["cores"]), ("", 0))
        self.assertEqual((self.table()["date"], self.table()["commit"]), ("", ""))

    def test_figures_of_two_machines_or_builds_do_not_mix(self):
        words = [*CELL, "--np", "1", "--batch", "8", "--out", "s"]
        self.expect(0, *words)
        measured = self.json_of("s", "machine.json")
        for key, value, says in (("cpu", "Another CPU", "processor: Another CPU there"),
                                 ("cores", 999, "cores: 999 there"),
                                 ("hardware_threads", 999, "hardware threads: 999 there"),
                                 ("memory_bytes", 1e15, "memory: 1e+03 TB there"),
                                 ("cpu_id", {**measured["machine"]["cpu_id"], "stepping": 99}, "stepping 99"),
                                 ("build", measured["machine"]["build"].replace("own kernels ", "own kernels 9"),
                                  "own kernels 9"),
                                 ("build", "cputrain 0.0", "build: cputrain 0.0 there")):
            other = {**measured, "machine": {**measured["machine"], key: value}}
            self.write(self.path("s", "machine.json"), other)
            self.expect(2, *words, says=["another kind of machine", says])
        other = {**measured, "machine": {**measured["machine"]}}
        other["machine"]["memory_bytes"] *= 1.01  # what the system keeps varies
        self.write(self.path("s", "machine.json"), other)
        self.expect(0, *words)

    def test_a_machine_has_the_name_that_people_give_it(self):
        words = [*CELL, "--np", "1", "--batch", "8", "--out", "s", "--machine-name"]
        for wrong in ("x" * 61, "two\nlines"):
            self.expect(2, *words, wrong, says=["--machine-name", "at most 60 bytes in one line"])
        self.expect(0, *words, "rack 3")
        self.assertEqual(self.table()["machine"]["name"], "rack 3")
        self.assertRegex(self.text_of("s", "report.md"), r"\brack 3, .*\d cores?; ")

    def test_a_repeat_that_is_missing_is_made_and_the_others_are_kept(self):
        words = ["3" if w == "1" else w for w in CELL]
        words += ["--np", "1", "--batch", "8", "--out", "s"]
        self.expect(0, *words)
        runs = self.path("s", "cells", "np1-t1-b8-cpu")
        shutil.rmtree(os.path.join(runs, "repeat-1"))
        for name in ("lock.tmp1-1", "lock-of-mine"):  # the first as a killed sweep leaves it
            open(os.path.join(runs, name), "w").close()
        before = self.files()
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual([os.path.basename(r) for r in self.cells()[1, 8]["runs"]],
                         ["repeat-2", "repeat-3"])
        self.expect(0, *words)
        self.assertEqual(len(self.cells()[1, 8]["repeats"]), 3)
        kept = [n for n in before if "/repeat-2/" in n or "/repeat-3/" in n]
        self.assertEqual([self.files()[n] for n in kept], [before[n] for n in kept])
        self.assertEqual([n for n in os.listdir(runs) if n.startswith("lock")], ["lock-of-mine"])

    def test_a_busy_machine_shows_and_nothing_is_made_again(self):
        self.tool("launch", """#!/usr/bin/env python3
import json, subprocess, sys
run = sys.argv[-1]
assert sys.argv[-2] == "--out", sys.argv
code = subprocess.run(sys.argv[3:]).returncode
lines = [json.loads(line) for line in open(run + "/metrics.jsonl")]
for line in lines:
    if line["type"] == "epoch":
        line.update(seconds=60.0, stolen=0.5, cpu_wait=[0.2, 0.4][int(run.split("-")[-1]) - 1])
open(run + "/metrics.jsonl", "w").writelines(json.dumps(line) + "\\n" for line in lines)
sys.exit(code)
""")
        words = ["2" if CELL[i - 1] == "--repeat" else w for i, w in enumerate(CELL)]
        self.expect(0, *words, "--np", "1", "--batch", "8", "--launcher", "./launch", "--out", "s",
                    says=["the host took 50 % of its CPU time; its threads waited 20 % of their time for a CPU",
                          "its threads waited 40 %"])
        cell = self.cells()[1, 8]
        self.assertEqual((len(cell["repeats"]), len(cell["runs"])), (2, 2))
        self.assertNotIn("left_out", cell)
        self.assertEqual(cell["stolen"], 0.5)
        self.assertAlmostEqual(cell["cpu_wait"], 0.3)
        self.assertIn("threads of a rank waited 30 % of their time for a CPU", cell["limits"]["why"])
        self.assertIn("threads of a rank waited 30 % of their time for a CPU", self.text_of("s", "report.md"))

    def test_a_cell_goes_on_until_enough_steps_tried_nothing(self):
        # Images for two steps an epoch: trials go on in the second and begin again in the third.
        self.expect(0, *CELL, "--np", "1", "--batch", "32", "--data", "synthetic:71", "--threads", "1",
                    "--micro-batch", "32", "--optimizer", "sgd", "--steps", "3", "--out", "s")
        cell = self.cells()[1, 32]
        steps = self.metrics(os.path.join("s", cell["runs"][0]), "step")
        settled = [s["seconds"] for s in steps if s["step"] > 1 and "trying" not in s and s["images"] == 32]
        self.assertEqual((cell["steps"], cell["includes_warm_up"]), (3, False))
        self.assertGreaterEqual(len(settled), 3)
        self.assertAlmostEqual(cell["seconds_per_epoch"], sorted(settled[-3:])[1] * 64 / 32)

    def test_whole_epochs(self):
        self.expect(0, *[w for w in CELL if w not in ("--steps", "2")], "--np", "1", "--batch", "16",
                    "--full-epochs", "--epochs", "2", "--target-accuracy", "0.01", "--out", "s")
        c = self.cells()[1, 16]
        epochs = self.metrics(os.path.join("s", c["runs"][0]), "epoch")
        self.assertEqual(c["status"], "measured")
        self.assertEqual(self.table()["options"], {"epochs": "2", "target-accuracy": "0.01"})
        self.assertEqual(self.table()["validation_images"], 5)
        # The first epoch reached the target: there was no second one.
        self.assertEqual(c["seconds_per_epoch"], epochs[0]["seconds"])
        self.assertEqual(c["val_accuracy"], epochs[0]["val_accuracy"])
        self.assertEqual(c["final_accuracy"], epochs[0]["accuracy"])
        self.assertAlmostEqual(c["seconds_to_target"], epochs[0]["seconds"])
        self.assertEqual((c["reached_target"], c["includes_warm_up"]), (1, True))
        self.expect(0, *[w for w in CELL if w not in ("--steps", "2")], "--np", "1", "--batch", "16",
                    "--full-epochs", "--out", "t")
        c = self.cells("t")[1, 16]
        epochs = self.metrics(os.path.join("t", c["runs"][0]), "epoch")
        self.assertEqual(len(epochs), 2)  # the first of which is the warm-up
        self.assertEqual(c["seconds_per_epoch"], epochs[1]["seconds"])
        self.assertIsNone(c["reached_target"])

    def test_threads_divide_the_cpus(self):
        self.expect(0, *CELL, "--np", "1,2", "--threads", "1,2", "--batch-per-rank", "8", "--out", "s",
                    says=["left out: 1 CPUs", "2 threads"])
        cells = self.table()["cells"]
        self.assertEqual([(c["ranks"], c["threads"], c["batch"]) for c in cells],
                         [(1, 1, 8), (2, 1, 16), (1, 2, 8)])
        for c in cells:
            ran = self.json_of("s", c["runs"][0], "environment.json")
            self.assertEqual((ran["ranks"], ran["threads_of_rank_0"]), (c["ranks"], c["threads"]))

    def test_two_tasks_do_not_measure_one_cell(self):
        self.tool("launch", '#!/bin/bash\ntouch started\nwhile [ ! -e go ]; do sleep 0.05; done\nshift 2; exec "$@"\n')
        self.expect(0, *CELL, "--np", "1", "--batch", "8,16", "--launcher", "./launch", "--out", "s", "--plan-only")
        first = self.start("sweep", "--config", "s/sweep.json", "--task", "1")
        self.until("the task began nothing", lambda: os.path.exists(self.path("started")))
        self.expect(2, "sweep", "--config", "s/sweep.json", "--task", "1",
                    says=["another task is at work in s/cells/np1-t1-b8-cpu"])
        # Killed as a job that goes back into the queue may be, it leaves the cell to the next.
        first.kill()
        first.wait()
        os.remove(self.path("started"))
        again = self.start("sweep", "--config", "s/sweep.json", "--task", "1")
        self.until("the next task began nothing", lambda: os.path.exists(self.path("started")))
        with open(self.path("go"), "w"):
            pass
        self.expect(0, "sweep", "--config", "s/sweep.json", "--task", "2")
        self.assertEqual(again.wait(60), 0, again.stderr.read())
        self.expect(0, "sweep", "--config", "s/sweep.json", "--collect")
        self.assertEqual([c["status"] for c in self.table()["cells"]], ["scaled", "scaled"])
        before = self.files()
        self.expect(0, "sweep", "--config", "s/sweep.json")  # the whole sweep finds it all
        self.assertEqual({n: t for n, t in self.files().items() if "/cells/" in n},
                         {n: t for n, t in before.items() if "/cells/" in n})


class Usage(SweepTest):
    def test_wrong_flags_say_what_is_allowed(self):
        for words, says in (
                (["--np", "0"], "--np 0: must be different whole numbers from 1"),
                (["--np", "1,,2"], "--np 1,,2: must be"),
                (["--np", "2,2"], "--np 2,2: must be different"),
                (["--batch", "16x"], "--batch 16x: must be"),
                (["--backend", "cpu,gpu"], "--backend cpu,gpu: must be different ones of cpu, cuda"),
                (["--threads", "2", "--np", "1"], "1 CPUs are no whole number of ranks with 2"),
                (["--epochs", "2"], "--epochs needs --full-epochs"),
                (["--full-epochs", "--steps", "3"], "--steps and --full-epochs exclude each other"),
                (["--limit-val", "0"], "--limit-val needs --full-epochs"),
                (["--schedule", "plateau:3"], "--schedule plateau:3:0.1 needs --full-epochs"),
                (["--full-epochs", "--limit-val", "0", "--target-accuracy", "1"], "leave out --limit-val 0"),
                (["--full-epochs", "--data", "synthetic:40", "--validation-split", "0", "--schedule", "plateau"],
                 "--validation-split 0 keeps none"),
                (["--task", "1", "--collect"], "exclude each other"),
                (["--task", "1", "--overwrite"], "--overwrite and --task exclude each other"),
                (["--collect", "--overwrite"], "--overwrite and --collect exclude each other"),
                (["--collect", "--retry"], "--retry and --collect exclude each other"),
                (["--batch-per-rank", "1000000", "--np", "1,32"],
                 "--batch-per-rank 1000000 with --np 1,32: batches of up to 16777216"),
                (["--reference", "none.csv"], "--reference none.csv: there is no such file"),
                (["--optimizer", "adam:rho=0.9"], "adam has no figure rho"),
                (["--image-size", "2"], "--image-size 2 is too small"),
                (["--sharding", "strided"], "not a flag of this command")):
            self.expect(2, "sweep", *words, "--out", "s", says=[says])
            self.assertFalse(os.path.exists(self.path("s")), words)

    def test_a_folder_of_something_else_is_left_alone(self):
        os.makedirs(self.path("s", "cells"))
        words = [*CELL, "--np", "1", "--batch", "8", "--out", "s"]
        self.expect(2, *words, says=["--out s holds cells, which is not of a sweep"])
        self.expect(2, *words, "--overwrite", says=["which is not of a sweep"])
        self.assertTrue(os.path.isdir(self.path("s", "cells")))
        os.makedirs(self.path("run", "ckpt-000000005"))  # of a training that was killed
        self.expect(2, *CELL, "--np", "1", "--batch", "8", "--out", "run", "--overwrite",
                    says=["--out run holds the run of a training", "name another folder"])
        self.assertEqual(os.listdir(self.path("run")), ["ckpt-000000005"])

    @needs_mpirun
    def test_a_sweep_is_no_rank(self):
        self.expect(2, *GRID, "--out", "s", says=["a sweep under mpirun"], ranks=1)


if __name__ == "__main__":
    unittest.main()
