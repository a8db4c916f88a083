"""scripts/predict_gpu --days: the model of speed held against what days with GPUs measured."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ["CUDA_TESTS_ROOT"]
SCRIPT = os.path.join(ROOT, "scripts", "predict_gpu")
sys.path.insert(0, os.path.join(ROOT, "scripts", "gpu"))
import days
import speed


def compare(*folders):
    return subprocess.run([SCRIPT, "--days", ",".join(folders)], text=True, capture_output=True)


class Days(unittest.TestCase):
    """What was measured on GPUs."""

    def folders(self):
        return [os.path.join(ROOT, "results", name) for name in ("gpu-h100", "gpu-h200")]

    def test_the_model_explains_the_days(self):
        done = compare(*self.folders())
        self.assertEqual(done.returncode, 0, done.stderr)
        median, largest = (re.search(rf"^{what} +([\d.]+) +([\d.]+) +([\d.]+)$", done.stdout, re.M).groups()
                           for what in ("median distance from 1", "largest"))
        for of_rule in median:
            self.assertLessEqual(float(of_rule), 0.08)
        self.assertLessEqual(float(largest[0]), 0.2)
        with open(os.path.join(self.folders()[0], "benchmarks.json")) as file:
            measured = json.load(file)["kernels_exact"]
        forward = next(layer for layer in measured["micro_batches"][0]["given"]["layers"] if layer["name"] == "conv2d_2")
        microseconds = forward["directions"][0]["seconds_per_image"]["median"] * 1e6
        self.assertRegex(done.stdout, rf"H100 exact conv2d_2 forward +{microseconds:.2f} ")

    def test_instructions_that_were_counted_replace_those_of_the_table(self):
        row = {"name": "void gemm<Bf16Numbers, GemmTile<128, 128, 64, 64, 2>, BackwardData>(T3)", "grid": "(8, 3, 1)",
               "metrics": {"smsp__inst_executed.sum": 1234.0}}
        old = {**row, "name": "void gemm<Exact, GemmTile<0, 32, 32>, ForwardProblem<float>>(T3)", "metrics": {
            "Achieved Active Warps Per SM": 12, "Warp Cycles Per Issued Instruction": 6, "SM Active Cycles": 100}}
        other = {**row, "name": "max_pool_forward_kernel<2>(int)"}
        by_training = {"dogcat bf16": {"launches": [row]}, "dogcat exact": {"launches": [old, other]},
                       "resnet50v2 bf16": {"launches": [{**row, "metrics": {"smsp__inst_executed.sum": 5.0}}]}}
        for ncu in ([row, old, other], by_training):
            self.assertEqual(days.counted({"facts": {"ncu": ncu}}, "dogcat", 10), {
                ("bf16", "convolution_backward_data", 24): 1234.0, ("exact", "convolution_forward", 24): 2000.0})

    def test_what_was_counted_of_one_product_is_no_others(self):
        gpu = speed.Gpu("H100", speed.read_hardware(), speed.INSTRUCTIONS)
        product = {"direction": "forward", "name": "convolution_forward", "dram": 1, "hmma": 1e7}
        noted = {"images": 1, "launches": [
            {**product, "layer": layer, "blocks": blocks, "instructions": instructions}
            for layer, blocks, instructions in (("small", 264, 1e8), ("large", 264, 4e8), ("other", 528, 4e8),
                                                ("alike", 528, 4e8))]}
        times = [days.predicted(gpu, noted, "bf16", counted) for counted in (
            {}, {("bf16", "convolution_forward", blocks): 2e8 for blocks in (264, 528)})]
        for layer, replaced in (("small", False), ("large", False), ("other", True), ("alike", True)):
            before, after = (found[layer, "forward"] for found in times)
            self.assertEqual(before != after, replaced, layer)

    def test_what_is_no_day_is_refused(self):
        for folder, says in ((ROOT, "day.json cannot be read"), (os.path.join(ROOT, "results", "simulated"), "day.json")):
            done = compare(folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_a_damaged_day_is_named(self):
        h100 = '{"device": "NVIDIA H100", "facts": {"launches": %s}}'
        for day, says in (("{", "day.json is no JSON"), ("[]", "is damaged"), ("{}", "lacks device"),
                          ('{"device": 5}', "is damaged"), ('{"device": "NVIDIA H100"}', "lacks facts"),
                          ('{"device": "a GPU", "facts": {}}', "--hardware"), (h100 % "[]", "is damaged"),
                          (h100 % "{}", "nothing to compare"), (h100 % '{"kernels_exact": {}}', "nothing to compare"),
                          (h100 % '{"kernels_exact": {"images": 1}}', "lacks kernels_exact")):
            with self.subTest(day=day), tempfile.TemporaryDirectory() as folder:
                for name, text in (("day.json", day), ("benchmarks.json", "{}")):
                    with open(os.path.join(folder, name), "w") as file:
                        file.write(text)
                done = compare(folder)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertIn(folder, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
