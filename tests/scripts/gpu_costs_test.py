"""scripts/gpu_costs: what it writes adds up, and what it is given in vain is named."""
import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "gpu_costs")
PROGRAM = os.environ["CPUTRAIN"]
DAY = os.path.join(ROOT, "results", "gpu-h200", "benchmarks.json")


def gpu_costs(*words):
    return subprocess.run([SCRIPT, *words], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


class GpuCosts(unittest.TestCase):
    def costs(self, *words):
        done = gpu_costs(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        costs = json.loads(done.stdout)
        self.assertEqual((costs["format"], costs["kind"]), ("cputrain gpu costs 1", words[0]))
        for step in costs["steps"]:
            layers = sum(layer["forward"] + layer["backward"] for layer in step.get("layers", []))
            self.assertLessEqual(layers + step.get("update", 0), step["seconds"])
        return costs["steps"]

    def test_predicted_steps_are_those_of_the_model(self):
        steps = self.costs("predicted", "-", "--program", PROGRAM, "--gpu", "h100", "--precision", "bf16", "--batch", "8,256",
                           "--model", "dogcat:64", "--model", "nature7:99:10")
        self.assertEqual([(s["gpu"], s["model"], s["image_size"], s["batch"], s["micro_batch"]) for s in steps],
                         [("H100", "dogcat", 64, 8, 8), ("H100", "dogcat", 64, 256, 256),
                          ("H100", "nature7", 99, 8, 8), ("H100", "nature7", 99, 256, 256)])
        words = ["--program", PROGRAM, "--gpu", "H100", "--precision", "bf16", "--image-size", "64", "--batch", "256"]
        done = subprocess.run([os.path.join(ROOT, "scripts", "predict_gpu"), *words, "--json", "-"], text=True,
                              capture_output=True, check=True)
        predicted = json.loads(done.stdout)["predictions"][0]
        kernels = predicted["batch"] / predicted["images_per_second_of_kernels"]
        self.assertAlmostEqual(steps[1]["seconds"], kernels + sum(predicted["host"]["seconds"].values()), places=9)
        layers = {layer["name"]: layer for layer in steps[1]["layers"]}
        for way, directions in (("forward", ["forward"]), ("backward", ["data", "weights"])):
            found = sum(row["seconds"] for row in predicted["layers"] if row["name"] == "conv2d_1" and
                        row["direction"] in directions)
            self.assertAlmostEqual(layers["conv2d_1"][way] / found, 1, places=5)

    def test_measured_steps_are_those_of_the_benchmarks(self):
        with open(DAY) as file:
            day = json.load(file)
        words = ["measured", "-", "--gpu", "H200", "--precision", "exact", DAY]
        for step in self.costs(*words):
            rate = day[f"step_exact_{step['batch']}"]["images_per_second"]["median"]
            self.assertAlmostEqual(step["seconds"], step["batch"] / rate, places=12)
            self.assertNotIn("layers", step)
        self.assertEqual({step["batch"] for step in self.costs(*words)}, {32, 128, 256})
        step = next(s for s in self.costs(*words, "--kernels", DAY) if s["batch"] == 128)
        self.assertIn("conv2d_3", [layer["name"] for layer in step["layers"]])

    def test_mistakes_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            odd = os.path.join(folder, "odd.json")
            with open(odd, "w") as file:
                file.write("[1")
            of_cpus = os.path.join(folder, "cpus.json")
            with open(DAY) as day, open(of_cpus, "w") as file:
                json.dump(json.load(day)["cpu_1_CPU"], file)
            predicted = ["predicted", "-", "--program", PROGRAM, "--batch", "8"]
            measured = ["measured", "-", "--gpu", "H200", "--precision"]
            for words, code, says in [
                    ([*predicted, "--gpu", "B9"], 2, "--gpu B9"),
                    ([*predicted, "--gpu", "H100", "--precision", "fp4"], 2, "--precision fp4"),
                    ([*predicted, "--gpu", "H100", "--batch", "0"], 2, "whole numbers"),
                    ([*predicted, "--gpu", "H100", "--model", "none"], 2, "none"),
                    ([*measured, "bf16", DAY], 65, "no `bench step` in bf16"),
                    ([*measured, "exact", of_cpus], 65, "oneDNN 2.6.3, AVX-512, 1 thread"),
                    ([*measured, "exact", odd], 65, "no JSON"),
                    ([*measured, "exact", os.path.join(folder, "none")], 2, "cannot be read"),
                    (["predicted", os.path.join(folder, "no", "file"), *predicted[2:], "--gpu", "H100"], 74, "lost")]:
                with self.subTest(words=words):
                    done = gpu_costs(*words)
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
