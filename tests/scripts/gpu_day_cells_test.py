"""A day's steps as a table: which cells it has, what `cputrain report` makes of them, which CPU steps are made."""
import io
import json
import os
import subprocess
import unittest
from unittest import mock

from gpu_day_folder import ROOT
from program import PROGRAM, ProgramTest
import benchmark_steps
import cells
import collect
import results

CPU_ID = {"vendor": "GenuineIntel", "family": 6, "cpu_model": 143, "stepping": 8, "instructions": ["avx2", "amx_bf16"]}


def step(batch, rate, ranks=1, threads=1, **more):
    """What `bench step --json` says, as far as a table wants it."""
    return {"bench": "step", "model": "dogcat", "image_size": 256, "batch": batch, "ranks": ranks, "threads": threads,
            "images_per_second": {"median": rate, "min": rate / 2, "max": rate * 2}, "gflops": 4.3 * rate,
            "limit": {"fma_gflops": 100.0, "triad_gbs": 10.0}, "cpu": "Xeon", "cpu_id": CPU_ID, "repeats": 2,
            "stolen": 0.0, "cpu_wait": None, "command": f"cputrain bench step --batch {batch}", **more}


DAY = {"device": "NVIDIA H100 80GB HBM3", "date": "2026-12-01",
       "packed": {"program": "cputrain 1.0 (commit abc, Release)"},
       "facts": {"machine": {"system": "Linux"},
                 "info": {"cputrain": "1.0", "libraries": ["oneDNN 3", "Open MPI 4.1.4"],
                          "machine": {"cpu": "Xeon", "cpu_id": CPU_ID, "allowed_cores": 16,
                                      "allowed_hardware_threads": 32, "memory_gb": 100.0},
                          "model": {"name": "dogcat", "parameters": 13217985, "macs_per_image": 737744512}}}}
MEASURED = {"step_exact_128": step(128, 6000, threads=16), "step_exact_1024": step(1024, 6250, threads=16),
            "step_tf32_1024": step(1024, 12500, threads=16), "step_bf16_1024": step(1024, 25000, threads=16),
            "cpu_1_CPU_128": step(128, 60), "cpu_8_CPUs_128": step(128, 360, threads=8),
            "cpu_16_CPUs_128": step(128, 600, threads=16), "cpu_16_ranks_128": step(128, 625, ranks=16),
            "cpu_1_CPU_1024": step(1024, 62.5)}
OTHERS = {"kernels_exact": {"bench": "kernels", "model": "dogcat"},
          "step_bf16_224": step(224, 9000, model="resnet50v2"),
          "step_bf16_1024_host": step(1024, 9000), "cpu_small": step(32, 1000, image_size=64)}


class Tables(ProgramTest):
    def report(self, table):
        """As JSON, and its text."""
        self.write("cells.json", table)
        done = subprocess.run([PROGRAM, "report", self.folder], text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.json_of("report.json")
        return report, self.text_of("report.md")

    def test_cells_are_what_was_measured(self):
        table = cells.table_of({**MEASURED, **OTHERS}, DAY)
        self.assertEqual(sorted(cell["images_per_second"] for cell in table["cells"]),
                         sorted(result["images_per_second"]["median"] for result in MEASURED.values()))
        self.assertEqual((table["machine"]["cpu_id"], table["machine"]["cores"], table["commit"]),
                         (CPU_ID, 16, "commit abc, Release"))
        cpu = next(cell for cell in table["cells"] if cell["cpus"] == 8)
        self.assertEqual((cpu["status"], cpu["seconds_per_epoch"], cpu["spread"], cpu["steps"]),
                         ("scaled", 62.5, [31.25, 125.0], 2))  # 22,500 images, 360, 720 and 180 in a second
        self.assertEqual((cpu["ranks"], cpu["threads"], cpu["fma_gflops"], cpu["cpu_id"]), (1, 8, 100.0, CPU_ID))
        gpu = next(cell for cell in table["cells"] if cell.get("axes") == {"precision": "float"})
        self.assertEqual((gpu["backend"], gpu["cpus"], gpu["threads"], gpu["gpus"], gpu["device"]),
                         ("cuda", 1, 1, 1, "NVIDIA H100 80GB HBM3"))
        self.assertEqual((gpu["seconds_per_epoch"], gpu["cpu_id"]), (1.8, CPU_ID))

    def test_report_makes_one_table_of_cpus_and_the_gpu_in_each_precision(self):
        report, text = self.report(cells.table_of(MEASURED, DAY))
        self.assertEqual(sorted((cell["series"], cell["cpus"], cell["batch"], cell["seconds_per_epoch"])
                                for cell in report["cells"]),
                         [("cpu", 1, 128, 375), ("cpu", 1, 1024, 360), ("cpu", 8, 128, 62.5), ("cpu", 16, 128, 36),
                          ("cuda bf16", 1, 1024, 0.9), ("cuda exact", 1, 128, 3.75), ("cuda exact", 1, 1024, 3.6),
                          ("cuda tf32", 1, 1024, 1.8)])
        seconds = text[text.index("## Seconds per epoch"):text.index("## Speed-up")]
        rows = [line for line in seconds.splitlines() if line.startswith(("| 128 ", "| 1024 "))]
        self.assertEqual([[entry.strip() for entry in row.strip("|").split("|")] for row in rows],
                         [["128", "375", "62.5", "36.0", "3.75", "", ""],
                          ["1024", "360", "", "", "3.60", "1.80", "0.900"]])
        self.assertIn("GenuineIntel, family 6, model 143, stepping 8; avx2, amx", text)

    def test_what_an_old_day_did_not_record_is_not_recorded(self):
        measured = {name: {key: value for key, value in result.items() if key not in ("cpu_id", "command")}
                    for name, result in MEASURED.items()}
        old = {**DAY, "facts": {}}
        table = cells.table_of(measured, old)
        self.assertEqual(table["machine"], {"name": "host of NVIDIA H100 80GB HBM3", "cpu": "Xeon"})
        self.assertFalse([cell for cell in table["cells"] if "cpu_id" in cell])
        self.assertIn("| processor | not recorded |", self.report(table)[1])

    def test_tables_of_published_days_are_theirs(self):
        for name, seconds in (("gpu-h100", {1: 359.5, 8: 61.7, 16: 34.7}), ("gpu-h200", {1: 436, 8: 72.5, 16: 44.2})):
            folder = os.path.join(ROOT, "results", name)
            with open(os.path.join(folder, "day.json")) as file:
                day = json.load(file)
            table = collect.grid_of(os.path.join(folder, "benchmarks.json"), day)
            with open(os.path.join(folder, "cells.json")) as file:
                self.assertEqual(json.load(file), table, name)
            report, _ = self.report(table)
            found = {cell["cpus"]: cell["seconds_per_epoch"] for cell in report["cells"] if cell["series"] == "cpu"}
            for cpus, expected in seconds.items():
                self.assertAlmostEqual(found[cpus] / expected, 1, delta=2e-3)

    def test_a_day_writes_its_table_with_each_step(self):
        found = results.Results(self.folder)
        found.head, found.facts = {key: DAY[key] for key in ("device", "date", "packed")}, dict(DAY["facts"])
        day = mock.Mock(results=found)
        benchmark_steps.keep(day, "kernels_exact", {"limit": {}})
        self.assertFalse(os.path.exists(self.path(cells.NAME)))
        for count, name in enumerate(MEASURED, 1):
            benchmark_steps.keep(day, name, MEASURED[name])
            self.assertEqual(len(self.json_of(cells.NAME)["cells"]), count)

    def test_damaged_benchmarks_are_named(self):
        os.mkdir(self.path("out"))
        with open(self.path("out", "day.json"), "w") as file:
            json.dump({**DAY, "emulated": False, "quick": False, "seconds": 1, "steps": [], "figures": [],
                       "packed": {**DAY["packed"], "commit": "abc"}}, file)
        at_rest = {**MEASURED["cpu_1_CPU_128"], "images_per_second": {"median": 0, "min": 0, "max": 0}}
        for damaged in ("{", "[]", '{"cpu_1_CPU": {"model": "dogcat"}}', json.dumps({"cpu_1_CPU_128": at_rest})):
            self.write(self.path("out", "benchmarks.json"), damaged)
            with mock.patch("sys.stderr", io.StringIO()) as said:
                self.assertEqual(collect.collect(self.path("out"), self.path("place")), 65)
            self.assertIn("benchmarks.json is damaged", said.getvalue())
            self.assertFalse(os.path.exists(self.path("place")))


class CpuSteps(unittest.TestCase):
    def words_of(self, run, quick=False, emulated=False, rates=()):
        day = mock.Mock(quick=quick, emulated=emulated)
        day.results.facts = {"benchmarks": {name: {"median": rate} for name, rate in rates}}
        with mock.patch.object(benchmark_steps, "bench", return_value=step(1, 1)) as bench, \
                mock.patch.object(benchmark_steps.os, "sched_getaffinity", return_value=set(range(16))):
            run(day)
        (_, name, *words), options = bench.call_args
        value = {flag: words[words.index(flag) + 1] for flag in words if flag.startswith("--")}
        return name, value, options["ranks"]

    def test_a_step_of_over_5_s_is_made_once(self):
        columns = benchmark_steps.cpu_columns
        for run, rates, expected in (
                (columns(1), {}, ("cpu_1_CPU_128", "128", "2")), (columns(8), {}, ("cpu_8_CPUs_128", "128", "2")),
                (columns(1, large=True), {"cpu_1_CPU_128": 62.6}, ("cpu_1_CPU_1024", "1024", "1")),
                (columns(8, large=True), {"cpu_8_CPUs_128": 365}, ("cpu_8_CPUs_1024", "1024", "2")),
                (columns(8, large=True), {"cpu_8_CPUs_128": 204}, ("cpu_8_CPUs_1024", "1024", "1")),
                (columns(16, large=True), {"cpu_8_CPUs_128": 1}, ("cpu_16_CPUs_1024", "1024", "2"))):
            name, value, ranks = self.words_of(run, rates=rates.items())
            self.assertEqual((name, value["--batch"], value["--repeat"], ranks), (*expected, 0))
            self.assertEqual(value["--threads"], name.split("_")[1])
            self.assertNotIn("--image-size", value)
        self.assertEqual(self.words_of(benchmark_steps.cpu_ranks)[::2], ("cpu_16_ranks_128", 16))

    def test_a_rehearsal_has_one_batch_and_the_emulated_device_small_images(self):
        with self.assertRaisesRegex(results.Skipped, "one batch"):
            self.words_of(benchmark_steps.cpu_columns(1, large=True), quick=True)
        large = self.words_of(benchmark_steps.cpu_columns(1, large=True), emulated=True)
        self.assertEqual((large[0], large[1]["--batch"], large[1]["--image-size"]), ("cpu_1_CPU_1024", "1024", "64"))
        for quick, batches in benchmark_steps.CPU_BATCHES.items():
            self.assertTrue(set(batches) <= {32, 128, 256, 512, 1024}, quick)


if __name__ == "__main__":
    unittest.main()
