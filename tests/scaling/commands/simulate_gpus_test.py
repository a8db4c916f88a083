"""Simulated GPUs through the program itself: costs that are made up, so that times are known. They need no simulator."""
import json
import os
import subprocess
import unittest

from program import PROGRAM, ProgramTest

CORE_GBS = 40
IMAGES = 900  # of synthetic:1000, the rest is for validation


class SimulateGpus(ProgramTest):
    def gpu_files(self):
        """Costs of dogcat at 64x64 on one made-up GPU, and nodes of two of them: without latency, 1 GB/s between them."""
        self.write("gpu_costs.json", {
            "format": "cputrain gpu costs 1", "kind": "predicted", "source": "made up", "steps": [
                {"gpu": "G", "model": "dogcat", "image_size": 64, "precision": "tf32", "batch": n, "seconds": n * 1e-3,
                 "layers": [{"name": "conv2d", "forward": n * 4e-4, "backward": n * 6e-4}]} for n in (8, 16, 32)]})
        platform = {
            "format": "cputrain platform 1", "name": "two", "description": "two small nodes", "sources": [], "nodes": 2,
            "cores": 1, "threads_per_core": 1, "memory_gb": 64,
            "memory": {"core_gbs": CORE_GBS, "node_gbs": CORE_GBS, "latency_us": 0},
            "network": {"gbps": 8, "latency_us": 0, "efficiency": 1}}
        platform["gpu"] = {"name": "G", "per_node": 2, "memory_gb": 16, "ring_gbs": 1, "hop_us": 0, "sum_us": 0,
                           "host_gbs": 1, "all_host_gbs": 2}
        return ["--platform", self.write("gpus.json", platform), "--costs", "gpu_costs.json", "--image-size", "64",
                "--data", "synthetic:1000"]

    def test_gpus_take_the_time_of_their_costs_and_sums(self):
        words = self.gpu_files()
        done = self.expect(0, "simulate", *words, "--np", "1,2,4", "--batch-per-rank", "16", "--out", "table",
                           says=["predicted", "Nothing of it was measured", "GPUs"])
        table = self.json_of("table", "cells.json")
        one, two, four = table["cells"]
        self.assertEqual({(cell["status"], cell["backend"], cell["threads"]) for cell in table["cells"]},
                         {("predicted", "cuda", 1)})
        self.assertAlmostEqual(one["seconds_per_epoch"], IMAGES * 1e-3, places=9)
        # All gradients become final with the last layer, conv2d: a ring of two sends each half twice.
        size = 4 * table["parameters"]
        sums = two["budget"]["allreduce_exposed"] / (IMAGES / 32)
        self.assertGreater(sums, 0)
        self.assertLess(sums / (size / 1e9), 1.01)
        self.assertAlmostEqual(sum(two["budget"].values()), two["seconds_per_epoch"], places=9)
        self.assertGreater(four["budget"]["allreduce_exposed"] / (IMAGES / 64), sums)  # and a network
        self.assertEqual(len(self.json_of("table", "costs.json")["steps"]), 3)
        # Its own command makes a cell again, and the files that were written serve for it.
        again = two["command"].split()[2:]
        self.assertEqual(json.loads(self.expect(0, "simulate", *again, "--json", "-").stdout)["cells"], [two])
        again[again.index("gpus.json")], again[again.index("gpu_costs.json")] = "table/platform.json", "table/costs.json"
        cell, = json.loads(self.expect(0, "simulate", *again, "--json", "-").stdout)["cells"]
        self.assertEqual(cell["seconds_per_epoch"], two["seconds_per_epoch"])
        self.expect(0, "report", "table", "--out", "forms")
        text = self.text_of("forms", "report.md")
        self.assertIn("predicted: a model of a GPU's instructions", text)
        self.assertIn("(predicted) on 4 GPUs", text)
        self.assertIn("GPUs", done.stdout)

    def test_images_of_the_host_take_their_time_from_gpus(self):
        words = [*self.gpu_files(), "--np", "1", "--batch", "32", "--json", "-"]
        size = 32 * 64 * 64 * 3
        for flags, seconds in [([], 0), (["--data-on-device", "off"], 0),
                               (["--data-on-device", "off", "--prefetch", "0"], size / 1e9 + size / (CORE_GBS / 2 * 1e9))]:
            with self.subTest(flags=flags):
                cell, = json.loads(self.expect(0, "simulate", *words, *flags).stdout)["cells"]
                self.assertAlmostEqual(cell["budget"]["input_wait"] / (IMAGES / 32), seconds, places=9)

    def test_mistakes_with_gpus_are_named(self):
        words = self.gpu_files()
        platform, costs_of_gpu = words[:2], words[2:]
        self.write("costs.json", {"format": "cputrain costs 2"})
        for given, says in [
                (platform, ["has GPUs", "--costs", "scripts/gpu_costs"]),
                ([*words, "--precision", "bf16"], ["no costs of G", "bf16", "G of dogcat at 64x64 in tf32"]),
                ([*words, "--threads", "2"], ["--threads: has no effect"]),
                ([*words, "--seed", "2"], ["--seed: has no effect"]),
                (["--platform", "skylake-96", "--prefetch", "0"], ["--prefetch: has no effect", "CPUs"]),
                (["--platform", "skylake-96", "--precision", "exact"], ["--precision exact", "no effect"])]:
            with self.subTest(given=given):
                self.expect(2, "simulate", *given, "--np", "1", "--batch", "16", says=says)
        for file, says in [("costs.json", "format"), ("none.json", "none.json")]:
            self.expect(65, "simulate", *platform, "--costs", file, *costs_of_gpu[2:], says=[file, says])
        cells = json.loads(self.expect(0, "simulate", *words, "--np", "1,3", "--batch", "16,200", "--json", "-").stdout)
        self.assertEqual([cell["status"] for cell in cells["cells"]], ["predicted", "n/a", "n/a", "n/a"])

    def test_flags_of_the_environment_that_gpus_have_no_use_for_are_left_alone(self):
        words = [*self.gpu_files(), "--np", "1", "--batch", "16", "--json", "-"]
        environment = dict(os.environ, CPUTRAIN_STEPS="3", CPUTRAIN_THREADS="1")
        done = subprocess.run([PROGRAM, "simulate", *words], cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("--steps", json.loads(done.stdout)["cells"][0]["command"])


if __name__ == "__main__":
    unittest.main()
