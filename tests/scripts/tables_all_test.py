"""scripts/tables all: its plan and how it goes on; tables that it adds to those of the other parts."""
import argparse
import contextlib
import importlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest
import unittest.mock

from program import ROOT

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts", "measurements"))
runs, origin, seconds, networks, recipes, curve, benchmarks, everything, energy = map(importlib.import_module, [
    "runs", "origin", "seconds", "networks", "recipes", "curve", "benchmarks", "everything", "energy"])
PRINTED = {(128, 1): "878", (128, 4): "504", (1024, 4): "389", (128, 96): "128", (1024, 96): "97", (1024, 1): ""}


def cell(cpus, batch, *repeats, **more):
    return {"cpus": cpus, "batch": batch, "ranks": cpus, "status": "scaled", "reason": "no memory",
            "seconds_per_epoch": sorted(repeats)[len(repeats) // 2] if repeats else None,
            "spread": [min(repeats), max(repeats)] if repeats else None, "repeats": list(repeats), **more}


def sweep(*cells, **more):
    return {"model": "dogcat", "image_size": 256, "images_per_epoch": 22500, "data": "synthetic",
            "command": "./cputrain sweep", "cells": list(cells), **more}


class Gain(unittest.TestCase):
    def section(self, *cells):
        return seconds.gain_section({("float", c["batch"], c["cpus"]): c for c in cells}, ["float"],
                                    sorted({c["cpus"] for c in cells}), PRINTED)

    def test_stands_beside_the_paper_s_with_a_verdict(self):
        # In print 1 - 389 / 504 and 1 - 97 / 128.
        text = self.section(cell(1, 128, 300, 310), cell(1, 1024, 290, 312), cell(4, 128, 100, 101),
                            cell(4, 1024, 77, 77), cell(96, 128, 10, 10), cell(96, 1024, 9.9, 9.9))
        self.assertIn("| published | N/A | +22.8 % | +24.2 % | +22.8 to +24.2 % on 4 to 96 CPUs |", text)
        self.assertIn("1 CPU: no gain is shown; 4 CPUs: as in print; 96 CPUs: less than in print |", text)
        self.assertIn("| +23.8 % (+23.0 to +23.8) |", text)

    def test_other_verdicts(self):
        for own, says in (([-0.1, -0.2, -0.05], "a loss"), ([0.5, 0.4, 0.6], "more than in print"),
                          ([0.3], "one training each")):
            self.assertIn(says, seconds.verdict(own, [0.228, 0.242]))

    def test_is_left_out_where_a_batch_is_missing(self):
        self.assertEqual(self.section(cell(1, 128, 300), cell(1, 1024)), "")


class Beside(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = holder.name

    def write(self, name, value):
        path = os.path.join(self.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))

    def test_other_programs_are_rows_by_cpus(self):
        def summary(threads, precision, rate, epochs=2):
            return {"model": "dogcat", "precision": precision, "batch": 128, "threads": threads, "epochs": epochs,
                    "tensorflow": {"images_per_second": {"min": rate / 2, "median": rate, "max": 2 * rate}}}
        self.write("peers.json", {"versions": {"tensorflow": "2.21.0 for CPUs"},
                                  "summaries": [summary(1, "float", 22.5), summary(2, "float", 45), summary(2, "bf16", 90),
                                                summary(1, "float", 30, 0)]})
        text = seconds.text_of(sweep(cell(1, 128, 300), cell(2, 128, 150)), self.out)
        self.assertIn("| TensorFlow 2.21.0, weights after 2 epochs | float | 128 | 1000 scaled (500 to 2000) | "
                      "500 scaled (250 to 1000) |", text)
        self.assertIn("| TensorFlow 2.21.0, weights after 2 epochs | bf16 | 128 |  | 250 scaled (125 to 500) |", text)
        self.assertIn("| TensorFlow 2.21.0, weights after 1 step | float | 128 | 750 scaled", text)

    def test_whole_epochs_have_their_start_and_evaluation_even_without_their_runs(self):
        self.write("whole-epochs/cells.json", sweep(dict(cell(2, 1024, 180), status="measured", runs=["cells/a", "gone"],
                                                             density=0.5)))
        summary = {"type": "summary", "outcome": "finished", "epochs": 1,
                   "program": {"start_up": 12.25, "evaluation": 7.5}}
        self.write("whole-epochs/cells/a/metrics.jsonl", json.dumps(summary) + "\n")
        for runs_there in (True, False):
            with self.subTest(runs_there=runs_there):
                text = seconds.text_of(sweep(cell(2, 1024, 170)), self.out)
                self.assertIn("| float | 1024 | 2 | 180 | 170 scaled | 12.2 | 7.5 | 0.50 |", text)
            shutil.rmtree(os.path.join(self.out, "whole-epochs", "cells"), ignore_errors=True)

    def test_whole_epochs_have_their_energy_where_all_of_it_was_read(self):
        self.write("whole-epochs/cells.json", sweep(*(dict(cell(n, 1024, 180), status="measured", runs=[f"cells/{n}"])
                                                      for n in (1, 2))))
        for n, start in ((1, 1000), (2, 2000)):
            at = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime(start))
            self.write(f"whole-epochs/cells/{n}/environment.json", json.dumps({"started": at}))
            summary = {"type": "summary", "outcome": "finished", "epochs": 2, "program": {"start_up": 1, "evaluation": 2}}
            self.write(f"whole-epochs/cells/{n}/metrics.jsonl", json.dumps(summary) + "\n")
            os.utime(os.path.join(self.out, f"whole-epochs/cells/{n}/metrics.jsonl"), (start + 100, start + 100))
        seconds_watched = [*range(990, 1110), *range(2000, 2050)]  # a part of the second training alone
        self.write("whole-epochs/energy.txt", "".join(f"{at}.0 200.0\n" for at in seconds_watched))
        text = seconds.text_of(sweep(cell(1, 1024, 170)), self.out)
        self.assertIn("| evaluation, s | energy, kJ | density |", text)
        self.assertIn("| 2 | 10.0 | not recorded |", text)
        self.assertIn("| 2 |  | not recorded |", text)

    def test_networks_have_a_row_each_and_weak_scaling_its_efficiency(self):
        text = networks.networks_text([sweep(cell(1, 64, 80), cell(2, 64, 41), model="nature7", image_size=299),
                                       sweep(cell(2, 32, 9), model="vgg16", image_size=128)])
        self.assertIn("| network | image | images | batch | 1 CPU | 2 CPUs | density |", text)
        self.assertIn("| `nature7` | 299x299 | 22,500 | 64 | 80 scaled | 41 scaled | not recorded |", text)
        self.assertIn("| `vgg16` | 128x128 | 22,500 | 32 |  | 9 scaled | not recorded |", text)
        weak = networks.weak_text(sweep(cell(1, 32, 300, batch_per_rank=32), cell(4, 128, 100, batch_per_rank=32)))
        self.assertIn("| images/s | 75.0 | 225.0 |", weak)
        self.assertIn("| efficiency, % | 100.0 | 75.0 |", weak)

    def test_a_step_says_its_weights_and_its_density(self):
        def step(rate, density):
            return {"model": "dogcat", "image_size": 256, "batch": 128, "images_per_second": {"median": rate}, "gflops": rate,
                    "limit": {"fma_gflops": 50}, "fraction_of_peak": rate / 50, "density": density}
        allreduce = {"bytes": 4e6, "algorithms": [{"name": n, "seconds": {"median": 1e-3}} for n in ("shm", "mpi")]}
        a = argparse.Namespace(ranks=[2], rounds=1, precisions=["float"], data="DIR")
        told = {"train": "t", **{name: "c" for name in benchmarks.commands(a, "w")}}
        text = benchmarks.text_of(a, {"commands": told, "origin": {"date": "d", "commit": "c", "clean": True}, "rounds": {
            "allreduce 2": [allreduce], "input": [{"stages": []}],
            "step, trained, float": [step(80, 0.037)], "step, untrained, float": [step(60, 0.63)]}})
        self.assertIn("| trained | float | 0.04 | 80.0 (80.0 to 80.0) |", text)
        self.assertIn("| untrained | float | 0.63 | 60.0 (60.0 to 60.0) |", text)
        self.assertEqual(benchmarks.kept(step(1, 0.5))["density"], 0.5)


class Energy(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:1", "package-1"),
                           ("intel-rapl:2", "psys"), ("intel-rapl-mmio:0", "package-0")):
            os.mkdir(os.path.join(self.folder, zone))
            for file, text in (("name", name), ("energy_uj", 900), ("max_energy_range_uj", 999)):
                self.write(zone, file, text)

    def write(self, zone, file, text):
        with open(os.path.join(self.folder, zone, file), "w") as f:
            f.write(f"{text}\n")

    def test_packages_are_added_once_each_and_counters_go_around(self):
        packages = energy.Packages(self.folder)
        for zone in os.listdir(self.folder):
            self.write(zone, "energy_uj", 950)
        self.assertAlmostEqual(packages.joules(), 100e-6)
        self.write("intel-rapl:1", "energy_uj", 20)
        self.assertAlmostEqual(packages.joules(), 70e-6)

    def test_nothing_is_known_where_one_may_not_be_read_or_none_is_there(self):
        self.assertEqual(energy.Packages(os.path.join(self.folder, "none")).zones, [])
        with unittest.mock.patch.object(energy, "number", side_effect=[1, 2, FileNotFoundError]):
            self.assertEqual(energy.Packages(self.folder).zones, [])

    def test_a_command_keeps_its_exit_code_and_has_its_lines(self):
        path = os.path.join(self.folder, "energy.txt")
        with unittest.mock.patch.object(energy, "SECONDS", 0.05):
            for command, code in (("sleep 0.3; exit 7", 7), ("kill -9 $$", 137)):
                with open(path, "a") as file:
                    self.assertEqual(energy.watch(["sh", "-c", command], energy.Packages(self.folder), file), code)
        with open(path) as file:
            lines = file.readlines()
        self.assertGreaterEqual(len(lines), 4)
        self.assertLess(abs(float(lines[0].split()[0]) - time.time()), 60)


class Origin(unittest.TestCase):
    def test_a_table_says_which_kernels_it_is_of(self):
        now = origin.kernels_of()
        self.assertGreater(now, 0)
        made = {"date": "2026-11-26", "commit": "abc1234", "clean": True, "kernels": now}
        self.assertEqual(origin.sentence(made), f"Made on 2026-11-26 by commit abc1234, kernels {now}.")
        old = origin.sentence(dict(made, kernels=now - 1))
        self.assertIn(f"kernels {now - 1} (today {now})", old)


class Curve(unittest.TestCase):
    def test_epochs_stand_beside_those_in_print(self):
        made = {"date": "d", "commit": "c", "clean": True}
        lines = [{"loss": loss, "accuracy": right, "seconds": 10, "images": 10_000}
                 for loss, right in ((2.2, 0.2), (2.02232, 0.3), (1.9, 0.35), (1.7, 0.35))]
        epochs = curve.epochs_of(lines, 2)
        text = curve.text_of({"command": "./cputrain", "cpus": 2, "precision": "float", "images": 10_000, "passes": 2,
                              "origin": made, "epochs": epochs}, curve.printed())
        self.assertIn("10,000 images, 2 times for an epoch of the source's 50,000.", " ".join(text.split()))
        self.assertIn("| 1 | 2.0179 | 2.1112 | 0.2585 | 0.2500 | 42 | 50 |\n", text)
        self.assertIn("| 2 | 1.7293 | 1.8000 | 0.3654 | 0.3500 | 42 | 50 |\n", text)
        self.assertNotIn("| 3 |", text)
        self.assertEqual([row["accuracy"] for row in curve.printed()], ["0.2585", "0.3654", "0.4237", "0.4664", "0.5001"])

    def test_an_epoch_of_a_few_images_is_trained_once(self):
        self.addCleanup(setattr, curve, "IMAGES", curve.IMAGES)
        curve.IMAGES = 40
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        data, out = (os.path.join(holder.name, name) for name in ("cifar", "out"))
        os.makedirs(data)
        os.makedirs(out)
        for name, images in (("data_batch_1.bin", 20), ("test_batch.bin", 10)):
            with open(os.path.join(data, name), "wb") as f:
                f.write(b"".join(bytes([i % 10]) + bytes(3072) for i in range(images)))
        finished = []
        for _ in range(2):
            with unittest.mock.patch.object(sys, "argv", ["curve", out, "--data", data]), \
                    contextlib.redirect_stdout(io.StringIO()) as said:
                curve.main()
            finished.append(os.stat(os.path.join(out, "curve", "metrics.jsonl")).st_mtime_ns)
        self.assertEqual(*finished)
        self.assertIn("| 1 | 2.0179 | ", said.getvalue())
        self.assertIn("--data cifar10:CIFAR10 --model resnet50v2 --no-shuffle --limit-val 0 --epochs 2 ", said.getvalue())
        with unittest.mock.patch.object(sys, "argv", ["curve", out, "--data", data, "--epochs", "2"]), \
                self.assertRaisesRegex(SystemExit, "holds a training with --epochs 2, not 4"):
            curve.main()
        for epochs, file, says in (("2", "data_batch_2.bin", "holds a training on 20 images, not 40"),
                                   ("1", "data_batch_3.bin", "has 60 images, and 40 are no multiple")):
            shutil.copy(os.path.join(data, "data_batch_1.bin"), os.path.join(data, file))
            with unittest.mock.patch.object(sys, "argv", ["curve", out, "--data", data, "--epochs", epochs]), \
                    self.assertRaisesRegex(SystemExit, says):
                curve.main()


class Recipes(unittest.TestCase):
    def test_flags_of_a_finished_training_are_compared_as_figures(self):
        for found, value, alike in ((5.0, "5", True), (8, "8", True), ("linear", "linear", True), (None, "5", False),
                                    ("linear", "sqrt", False), (5, "6", False)):
            self.assertEqual(recipes.accuracy.same(found, value), alike, (found, value))

    def test_equal_steps_are_counted_and_not_a_ratio_of_batches(self):
        made = []

        def training(these, batch, ranks, seed):
            made.append((batch, these.epochs))
            return {"steps_per_epoch": {128: 11, 1024: 2}[batch], "loss": [1] * these.epochs}
        a = argparse.Namespace(out="o", data="d", image_size=64, epochs=20, small=128, large=1024, ranks=2, seeds=[0])
        with unittest.mock.patch.object(recipes.accuracy, "training", training):
            found = recipes.train_all(a)
        self.assertEqual(made[:4], [(128, 20), (1024, 20), (1024, 110), (1024, 20)])
        self.assertEqual(recipes.steps_of(found[2]["trainings"][0]), 220)
        self.assertEqual(recipes.equal_epochs({"steps_per_epoch": 11, "loss": [1]}, {"steps_per_epoch": 2}), 6)

    def test_each_stands_beside_the_small_batch(self):
        a = argparse.Namespace(out="o", data="d", image_size=64, epochs=20, small=128, large=1024, ranks=2, seeds=[0, 1, 2],
                               about="photographs")
        variants = list(recipes.variants(a))
        self.assertEqual([(batch, these.epochs) for _, these, batch in variants],
                         [(128, 20), (1024, 20), (1024, None), (1024, 20), (1024, 20), (1024, 20),
                          (1024, None)])
        self.assertEqual(variants[-1][1].more, {"lr-scale": "linear", "warmup-epochs": "5", "base-batch": "128"})
        self.assertEqual(len({these.out for _, these, _ in variants}), len(variants))

        def trainings(*right):
            return [{"seed": seed, "steps_per_epoch": 2, "loss": [1] * 20, "last_epoch": {"correct": n, "images": 400},
                     "origin": {"date": "d", "commit": "c", "clean": True}} for seed, n in enumerate(right)]
        text = recipes.text_of(a, {"variants": [
            {"name": "batch 128", "trainings": trainings(300, 301, 302)},
            {"name": "batch 1024, as the small batch", "trainings": trainings(200, 201, 202)},
            {"name": "batch 1024, linear", "trainings": trainings(299, 302, 301)}]})
        self.assertRegex(text, r"\| batch 128 \| 20 \| 40 \| 0\.75\d \([^|]*\) \|  \|  \|")
        self.assertIn("| -0.250 (-0.250 to -0.250) | worse |", text)
        self.assertRegex(text, r"linear \| .* \| no difference is shown \|")


class Everything(unittest.TestCase):
    """With a machine that is made up, and parts that are commands of the shell."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.out = os.path.join(holder.name, "out")
        self.made = os.path.join(holder.name, "made")
        self.commit = "abc1234"
        for number in (*everything.SIGNALS, signal.SIGINT):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        work = {network: 1.0 for network, *_ in everything.NETWORKS}
        self.patch(everything, "measured_machine", lambda a: {"images_per_second": 50, "images": 800, "work": work})
        self.patch(origin, "program_commit", lambda: self.commit)

    def patch(self, owner, name, value):
        patch = unittest.mock.patch.object(owner, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def run_all(self, *words):
        """Exit code, and what was said."""
        said = io.StringIO()
        self.patch(sys, "argv", ["everything.py", self.out, "--data", "DIR", *words])
        with contextlib.redirect_stderr(said):
            try:
                everything.main()
                return 0, said.getvalue()
            except SystemExit as end:
                return end.code, said.getvalue()

    def parts(self, *rows):
        """(name, command of a shell)"""
        self.patch(everything, "parts", lambda m, a: [
            (name, f"makes {name}", [["sh", "-c", command]], 0.5, why) for name, command, why in rows])

    def test_a_plan_names_every_part_with_its_hours_and_starts_none(self):
        self.patch(runs, "precisions", lambda: ["float"])
        code, said = self.run_all("--plan", "--unclean")
        self.assertEqual(code, 0)
        for name in ("benchmarks", "seconds", "whole-epochs", "weak", "networks", "same-hash", "accuracy", "recipes",
                     "curve"):
            self.assertRegex(said, rf"(?m)^  {name} +(\d+ min|\d+\.\d h|-)  ")
        self.assertIn("no instructions for bf16", said)
        self.assertFalse(os.path.exists(self.out))

    def test_hours_follow_cores_and_speed(self):
        def hours(cores, rate):
            a = argparse.Namespace(out="o", data="d", about="", unclean=False, whole_epochs=False, only=None, peers="none",
                                   cifar="c")
            machine = everything.Machine(cores, rate, 800, ["float", "bf16"], {})
            return {name: hours for name, _, _, hours, _ in everything.parts(machine, a)}
        slow, quick = hours(2, 10), hours(2, 20)
        # 22,500 images on one CPU and on two, float and bf16, and 15 s before each of four trainings.
        self.assertAlmostEqual(slow["whole-epochs"], (2 * 22500 * 1.5 / 10 + 4 * 15) / 3600)
        self.assertTrue(all(quick[name] < slow[name] for name in slow), (quick, slow))
        self.assertEqual(everything.cpus_of(12), [1, 2, 4, 8, 12])

    def test_it_goes_on_where_it_was_and_tells_what_failed(self):
        log = f"echo x >>{self.made}-"
        self.parts(("a", log + "a", ""), ("b", "test -e ok || exit 3; " + log + "b", ""), ("c", log + "c", ""),
                   ("d", log + "d", "too long"))
        self.patch(runs, "ROOT", os.path.dirname(self.out))
        code, said = self.run_all()
        self.assertEqual(code, "scripts/tables: not made: b; the same command tries them again")
        self.assertIn("d                    -  makes d; left out: too long", said)
        self.assertIn("== 2 of 3: b, about 30 min; then about 30 min are left", said)
        self.assertTrue(os.path.exists(os.path.join(self.out, "README.md")))
        with open(os.path.join(os.path.dirname(self.out), "ok"), "w"):
            pass
        code, said = self.run_all()
        self.assertEqual(code, 0, said)
        self.assertIn("== 1 of 1: b", said)
        for name, lines in (("a", 1), ("b", 1), ("c", 1)):
            with open(f"{self.made}-{name}") as f:
                self.assertEqual(len(f.readlines()), lines, name)
        self.assertFalse(os.path.exists(f"{self.made}-d"))

    def test_a_signal_ends_the_part_at_work_and_starts_no_other(self):
        self.patch(runs, "ROOT", os.path.dirname(self.out))
        pid = f"{self.made}-pid"
        self.parts(("a", f"sleep 900 & echo $! >{pid}; sleep 1; kill -TERM $PPID; wait", ""),
                   ("b", f"echo x >>{self.made}-b", ""))
        self.assertEqual(self.run_all()[0], 128 + signal.SIGTERM)
        self.assertFalse(os.path.exists(f"{self.made}-b"))
        with open(pid) as f:
            grandchild = int(f.read())
        for _ in range(1200):
            if not self.runs(grandchild):
                return
            time.sleep(0.1)
        os.kill(grandchild, signal.SIGKILL)
        self.fail("what the part had started goes on")

    def runs(self, process):
        """Whether it is there, and no zombie that nobody has waited for."""
        try:
            with open(f"/proc/{process}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    def test_a_page_has_figures_of_one_program(self):
        self.parts(("a", "true", ""), ("b", "true", ""))
        self.assertEqual(self.run_all("--only", "a")[0], 0)
        self.commit = "def5678"
        code, said = self.run_all()
        self.assertEqual(code, 2)
        self.assertIn("begun by commit abc1234, ./cputrain is of def5678", said)

    def test_unknown_parts_are_named(self):
        self.parts(("a", "true", ""))
        code, said = self.run_all("--only", "z")
        self.assertEqual(code, 2)
        self.assertIn("--only z: the parts are a", said)


if __name__ == "__main__":
    unittest.main()
