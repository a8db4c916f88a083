"""The table across machines, and what older tables of results are told of their processors and kernels."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from program import PROGRAM, ROOT

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts", "measurements"))
import origin
import overview
import recorded


def cell(cpus, batch, seconds, **more):
    return {"cpus": cpus, "batch": batch, "backend": "cpu", "status": "scaled", "seconds_per_epoch": seconds,
            "kernels_version": 13, "commit": "commit abc1234, Release", **more}


def sweep(*cells, **more):
    return {"version": 1, "model": "dogcat", "image_size": 256, "images_per_epoch": 22500, "data": "synthetic",
            "machine": {"cpu": "AMD EPYC", "cores": 16, "cpu_id": {"family": 25, "cpu_model": 17}}, "cells": list(cells),
            **more}


class Overview(unittest.TestCase):
    def text(self, prices=None, **tables):
        """Of these tables of results, as the program reports them."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        reports = {}
        for name, table in tables.items():
            os.mkdir(os.path.join(folder, name))
            with open(os.path.join(folder, name, "cells.json"), "w") as file:
                json.dump(table, file)
            words = [PROGRAM, "report", name, "--reference", os.path.join(ROOT, overview.REFERENCE), "--json", "-"]
            words += ["--prices", os.path.join(ROOT, prices)] if prices else []
            done = subprocess.run(words, cwd=folder, text=True, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            reports[name] = json.loads(done.stdout)
        return overview.text_of(reports, prices)

    def test_rows_have_cpus_gpus_and_what_is_published(self):
        text = self.text(mine=sweep(
            cell(1, 128, 450.0, gflops=150, fma_gflops=100), cell(8, 128, 75.0), cell(16, 128, 45.0),
            cell(1, 1024, 400.0),
            cell(1, 128, 4.5, backend="cuda", device="NVIDIA H100 80GB HBM3", axes={"precision": "float"},
                 kernels_version=3, density=0.5), weights="untrained"))
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        self.assertIn("| machine | precision | CPUs or GPUs | batch 128 | batch 256 | batch 512 | batch 1024 |", rows[0])
        # 878 by 128 s are 6.86, of 96; 22,500 images by 128 s and 96 CPUs.
        self.assertIn("| published table |  | 96 | 128 | 112 | 112 | 97.0 | 1.83 |  | 6.86 (7 %) |  | TensorFlow |", rows)
        mine = "[mine](mine/README.md)"
        program = "kernels 13, abc1234; untrained"
        self.assertIn(f"| {mine} | float | 1 | 450 |  |  | 400 | 50.0 | 150 % | 1.00 (100 %) |  | {program} |", rows)
        self.assertIn(f"| {mine} | float | 16 | 45.0 |  |  |  | 31.2 |  | 10.00 (62 %) |  | {program} |", rows)
        # 450 by 4.5 s are 100 perfect CPUs; from 8 to 16 CPUs times fall by 0.6, so 16 * 10^(log 2 / log (5 / 3)).
        self.assertIn(f"| {mine} | TF32 | 1 H100 | 4.5 |  |  |  |  |  | 1.00 (100 %) | more than 16; 100 to 364 by "
                      "extrapolation | kernels 3, abc1234; untrained, density 0.50 |", " ".join(rows).replace("4.50", "4.5"))

    def test_a_price_makes_the_cost_of_an_epoch(self):
        example = "results/reference/prices_example.csv"
        with open(os.path.join(ROOT, example)) as file:
            self.assertIn("made up", file.read())
        text = self.text(prices=example, mine=sweep(cell(16, 128, 450.0)))
        self.assertIn("| cost of an epoch |", text)
        self.assertIn("| 0.1 | kernels 13", text.replace("0.100", "0.1"))  # 16 CPUs for an eighth of an hour, 0.05 each
        self.assertIn("[prices_example.csv](reference/prices_example.csv)", text)

    def test_the_committed_table_is_what_the_command_makes(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(ROOT, "results", "README.md")) as file:
            committed = file.read()
        head = "\n".join(committed.splitlines()[:70])
        for word in ("H100", "batch 1024", "published table", "cost of an epoch"):
            self.assertIn(word, head)
        shutil.copytree(os.path.join(ROOT, "results"), os.path.join(folder, "results"))
        os.symlink(os.path.join(ROOT, "scripts"), os.path.join(folder, "scripts"))
        script = "import overview, runs, sys; runs.ROOT = sys.argv.pop(1); overview.main()"
        os.symlink(PROGRAM, os.path.join(folder, "cputrain"))
        done = subprocess.run([sys.executable, "-B", "-c", script, folder, "results", "--prices",
                               "results/reference/prices_example.csv"], cwd=folder, text=True, capture_output=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "scripts", "measurements")})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(folder, "results", "README.md")) as file:
            self.assertEqual(file.read(), committed)
        plots = []
        for root in ROOT, folder:
            with open(os.path.join(root, "results", "seconds.svg")) as file:
                plots.append(file.read())
        self.assertEqual(*plots)
        self.assertIn("level of the fewest GPUs", plots[0])


class Recorded(unittest.TestCase):
    def test_published_machines_are_told_apart(self):
        seen = {}
        for name in ("epyc-zen1-2-cores", "epyc-zen3-2-cores", "epyc-zen4-2-cores", "epyc-zen5-2-cores", "xeon-amx-2-cores"):
            with open(os.path.join(ROOT, "results", name, "cells.json")) as file:
                table = json.load(file)
            for one in table["cells"]:
                processor = one["cpu_id"]
                seen.setdefault((processor["family"], processor["cpu_model"], one["kernels_version"]), set()).add(name)
        self.assertEqual({key: len(names) for key, names in seen.items()},
                         {(23, 1, 13): 1, (25, 1, 7): 1, (25, 17, 13): 1, (26, 2, 13): 1, (6, 167, 13): 1})

    def test_what_the_page_states_is_taken_from_it_and_what_is_there_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "README.md"), "w") as file:
                file.write("Two cores of an AMD EPYC (family 25, model 1: Zen 3).")
            table = sweep(cell(1, 128, 5.0, command="--settled-steps 4"), cell(2, 128, None))
            table["machine"].pop("cpu_id")
            table["cells"][0].pop("kernels_version")
            filled = recorded.fill(table, folder, {"cpu": 7})
            self.assertEqual((filled["cells"][0]["cpu_id"]["family"], filled["cells"][0]["kernels_version"]), (25, 7))
            self.assertTrue(filled["cells"][0]["cpu_id"]["taken_from"].endswith("README.md"))
            self.assertNotIn("cpu_id", filled["cells"][1])
            self.assertEqual(filled["weights"], "first steps of a training")
            known = sweep(cell(1, 128, 5.0, command="bench step"))
            filled = recorded.fill(json.loads(json.dumps(known)), folder, {"cpu": 7})
            self.assertEqual((filled["machine"], filled["cells"][0]["kernels_version"]), (known["machine"], 13))
            self.assertNotIn("weights", filled)
            with open(os.path.join(folder, "README.md"), "w") as file:
                file.write("Their family and model are not recorded.")
            self.assertIsNone(recorded.processor_of(folder))

    def test_kernels_are_those_of_the_commit(self):
        self.assertEqual(origin.versions_of("0" * 40), {})
        with mock.patch.object(origin, "output", side_effect=lambda *words: f"int kKernelsVersion = {len(words[2])};"):
            self.assertEqual(origin.versions_of("abc-dirty"),
                             {backend: len("abc:" + path) for backend, path in origin.KERNELS.items()})


if __name__ == "__main__":
    unittest.main()
