"""Bytes that kernels read and write on the emulated device, beside the formulas of scripts/gpu/launches.py, and
scripts/count_gpu_bytes, which extrapolates them."""
import json
import os
import re
import subprocess
import sys

from cuda_cases import NET, RESIDUAL
from program import PROGRAM, ProgramTest

ROOT = os.environ["CUDA_TESTS_ROOT"]
SCRIPT = os.path.join(ROOT, "scripts", "count_gpu_bytes")
sys.path.insert(0, os.path.join(ROOT, "scripts", "gpu"))
import launches
import traffic

H100 = 132  # multiprocessors
# Penalties, a convolution of one position with a stride, one that has many slices, a sum of pools, a global pool.
PENALISED = {"format": "cputrain model 1", "name": "penalised",
             "recipe": {"image_size": 24, "batch": 4, "epochs": 1, "optimizer": "rmsprop", "learning_rate": 0.02},
             "layers": [{"type": "convolution", "filters": 16, "kernel": 3, "padding": "same", "l2": 0.001},
                        {"type": "batch_norm"}, {"type": "relu", "name": "trunk"},
                        {"type": "convolution", "filters": 24, "kernel": 1, "stride": 2}, {"type": "leaky_relu"},
                        {"type": "batch_norm", "name": "short"},
                        {"type": "convolution", "from": ["trunk"], "filters": 24, "kernel": 3, "stride": 2,
                         "padding": "same"},
                        {"type": "batch_norm"}, {"type": "add", "from": ["batch_normalization_1", "short"]},
                        {"type": "relu6", "name": "cut"},
                        {"type": "max_pool", "size": 2, "stride": 1, "padding": "same"},
                        {"type": "average_pool", "size": 2, "stride": 1, "padding": "same", "name": "pooled"},
                        {"type": "add", "from": ["cut", "pooled"]}, {"type": "global_average_pool"},
                        {"type": "dropout", "rate": 0.3}, {"type": "dense", "units": "classes", "l2": 0.01},
                        {"type": "softmax"}]}
# Formulas leave out what a launch has once or for an image: labels, seeds, the other part of a sector. The update goes
# over gaps between parameters, too, and reads its table. A map of 8 channels has two positions in a sector, of which
# windows may see one.
MORE, MORE_OF_ALL, GAPS, HALF_SECTORS = 384, 0.002, 1024, 0.05


class Traffic(ProgramTest):
    def setUp(self):
        super().setUp()
        for network in (NET, RESIDUAL, PENALISED):
            self.write(f"{network['name']}.json", network)

    def networks(self, model, size, sizes, precision):
        done = self.expect(0, "info", "--model", model, "--image-size", str(size), "--classes", "2", "--json", "-")
        description = json.loads(done.stdout)["model"]
        networks = [launches.Network(description["layers"], images, precision, H100, accumulates=number > 0)
                    for number, images in enumerate(sizes)]
        return networks, networks[0].update(description["recipe"]["state_arrays"])

    def counted(self, model, size, sizes, precision, kind="checked", code=0, says=()):
        """[(Place, Moved)] of a step; what the emulated device counted of it."""
        images = sum(sizes)
        self.expect(code, "train", "--backend", "cuda", "--model", model, "--image-size", str(size), "--batch",
                    str(images), "--micro-batch", str(sizes[0]), "--data", f"synthetic:{4 * images}", "--limit-val",
                    "0", "--steps", "1", "--prefetch", "0", "--checkpoint-every", "0", "--threads", "1",
                    "--precision", "float" if precision == "tf32" else precision, "--overwrite", "--out", "run",
                    CPUTRAIN_EMULATED=kind, CPUTRAIN_EMULATED_KERNELS="count",
                    CPUTRAIN_EMULATED_COUNTS=self.path("counts.json"), says=says)
        found = self.json_of("counts.json")["traffic"]
        return traffic.counted_step(found, traffic.in_order(*self.networks(model, size, sizes, precision)))

    def test_launches_move_what_formulas_say(self):
        kernels = set()
        for model, size, sizes, precision in (("odd.json", 21, [4, 4], "bf16"), ("odd.json", 21, [3], "exact"),
                                              ("odd.json", 21, [3], "tf32"),
                                              ("residual.json", 33, [4, 2], "bf16"),
                                              ("residual.json", 33, [5], "tf32"),
                                              ("penalised.json", 24, [4, 4], "bf16")):
            for place, moved in self.counted(model, size, sizes, precision):
                kernels.add(place.launch.name)
                said = place.launch.bytes
                bound = MORE + MORE_OF_ALL * said + (GAPS if place.launch.name == "update" else 0)
                if model == "odd.json" and precision == "bf16":
                    bound += HALF_SECTORS * said
                with self.subTest(model=model, precision=precision, key=place.key, kernel=place.launch.name):
                    self.assertLessEqual(abs(moved.both - said), bound, f"{moved}, formula: {said}")
        self.assertEqual(kernels, {
            "add_losses", "add_maps", "add_slices", "average_pool_backward", "average_pool_forward", "block_norms",
            "clear_padding", "convolution_backward_data", "convolution_backward_weights", "convolution_forward",
            "cross_entropy_backward", "dropout", "finish_slopes", "finish_statistics", "first_block_backward_weights",
            "first_block_forward", "global_average_pool_backward", "global_average_pool_forward",
            "leaky_relu_backward", "leaky_relu_forward", "load_images", "max_pool_backward", "max_pool_forward",
            "measure_channels", "normalize", "normalize_backward", "publish_statistics", "relu6_backward",
            "relu6_forward", "relu_backward", "relu_forward", "softmax_forward", "sum_slopes", "transpose_weights",
            "update", "write_facts"})

    def test_a_step_of_more_images_moves_what_two_smaller_ones_foretell(self):
        """Also where the plan has other slices."""
        slices = set()
        for model, size, more in (("odd.json", 21, [12, 9]), ("penalised.json", 24, [10, 10, 3])):
            steps = {images: self.counted(model, size, [images, images], "bf16") for images in (2, 4)}
            networks, update = self.networks(model, size, more, "bf16")
            foretold = traffic.extrapolated(traffic.split(steps), networks, update)
            counted = traffic.summed((place.key[1:], moved) for place, moved in self.counted(model, size, more, "bf16"))
            self.assertEqual(foretold.keys(), counted.keys())
            for key, moved in counted.items():
                for way in ("read", "written"):
                    with self.subTest(model=model, key=key, way=way):
                        self.assertAlmostEqual(getattr(foretold[key], way), getattr(moved, way),
                                               delta=128 * len(more) + MORE_OF_ALL * getattr(moved, way))
            for places in ([place for place, _ in steps[2]], traffic.in_order(networks, update)):
                slices.add((model, sum(place.launch.planned_writes for place in places) / len(places)))
        self.assertEqual(len(slices), 4, "plans are alike, so nothing is shown of them")

    def test_formulas_are_near_what_gpus_moved(self):
        """By ncu, in `exact`, at 128 images. Earlier kernels ran there, which read and wrote the same maps, but for those of
        the first block: two kernels at either end. Of what is less than 300 MB, caches still have a part."""
        networks, _ = self.networks("dogcat", 256, [128], "exact")
        places = [place for place in traffic.in_order(networks, [])
                 if place.launch.name.startswith(("convolution_", "max_pool_"))]
        for gpu in ("gpu-h100", "gpu-h200"):
            with open(os.path.join(ROOT, "results", gpu, "day.json")) as file:
                rows = json.load(file)["facts"]["ncu"][2:-2]
            self.assertEqual(len(rows), len(places))
            large = 0
            for row, place in zip(rows, places):
                measured = row["metrics"]["Memory Throughput"] * row["metrics"]["Duration"] / 1e9  # of nanoseconds
                if measured < 3e8:
                    continue
                large += 1
                with self.subTest(gpu=gpu, key=place.key):
                    self.assertAlmostEqual(measured / place.launch.bytes, 1, delta=0.075)
            self.assertGreaterEqual(large, 8)

    def test_other_kernels_than_formulas_know_are_refused(self):
        counted = [{"kernel": name, "blocks": 1, "read": {"sectors": 1}, "written": {"sectors": 1}}
                   for name in ("round_numbers", "write_facts", "load_images")]
        launch = lambda name, blocks: traffic.Place(0, "input", "forward", launches.Launch(name, "", blocks, 32))
        places = [launch("write_facts", 1), launch("load_images", 1)]
        self.assertEqual([moved.both for _, moved in traffic.counted_step(counted, places)], [64, 64])
        for wrong in ([places[0], launch("load_images", 2)], [places[1], places[0]], [*places, places[1]]):
            with self.assertRaisesRegex(ValueError, "the emulated device launched "):
                traffic.counted_step(counted, wrong)

    def script(self, *words):
        return subprocess.run([SCRIPT, "--program", PROGRAM, *words], text=True, capture_output=True, cwd=self.folder)

    def test_the_script_counts_and_adds_up(self):
        words = ["--model", "residual.json", "--classes", "5", "--images", "1,2", "--batch", "200", "--micro-batch", "100",
                 "--gpu", "a100", "--by", "type"]
        done = self.script(*words, "--json", "found.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.json_of("found.json")
        layers = found.pop("layers")
        self.assertEqual(found, {"model": "residual", "image": [33, 33], "classes": 5, "precision": "bf16",
                                 "gpu": "a100", "batch": 200, "micro_batch": 100, "images_counted": [1, 2],
                                 "basis": "counted on the emulated device, extrapolated"})
        self.assertIn("extrapolated", done.stdout.splitlines()[0])
        of = lambda rows, what: sum(row[what] for row in rows) / 200 / 1e3
        norms = [row for row in layers if (row["type"], row["direction"]) == ("batch_norm", "data")]
        self.assertEqual(len(norms), 3)
        for name, rows in (("all", layers), ("batch_norm data", norms)):
            cells = [float(cell) for cell in re.search(rf"\n{name} +([\d. ]+)\n", done.stdout)[1].split()]
            read, written, predicted = (of(rows, what) for what in ("read", "written", "predicted"))
            for cell, number in zip(cells, (read, written, read + written, predicted)):
                self.assertAlmostEqual(cell, number, delta=0.06)
            self.assertAlmostEqual(cells[-1], 1, delta=0.01)

    def test_mistakes_are_named(self):
        for code, words, says in ((2, ["--images", "4"], "two numbers of images"),
                                  (2, ["--images", "4,300"], "up to 256"), (2, ["--batch", "0"], "whole number"),
                                  (2, ["--batch", "65537"], "at most 65536"),
                                  (2, ["--precision", "fp8"], "bf16"), (2, ["--model", "none"], "none"),
                                  (2, ["--program", "/nowhere"], "scripts/build emulated"),
                                  (2, ["--program", "/bin/true"], "does not list layers"),
                                  (2, ["--model", "mobilenetv2"], "convolutions in groups")):
            with self.subTest(words=words):
                done = self.script(*words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertEqual(done.stdout, "")

    def test_a_program_that_counts_nothing_is_named(self):
        program = self.path("program")
        for counts in ("true", "echo '{}' >$CPUTRAIN_EMULATED_COUNTS", "echo '{' >$CPUTRAIN_EMULATED_COUNTS"):
            self.tool(program, f'#!/bin/sh\n[ "$1" != info ] || exec {PROGRAM} "$@"\n{counts}\n')
            with self.subTest(counts=counts):
                done = self.script("--program", program)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("counted no bytes", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_plain_kernels_are_not_counted(self):
        self.expect(2, "train", "--backend", "cuda", "--data", "synthetic:8", "--out", "run", CPUTRAIN_EMULATED="plain",
                    CPUTRAIN_EMULATED_KERNELS="count", says=["CPUTRAIN_EMULATED_KERNELS=count: plain kernels",
                                                             "CPUTRAIN_EMULATED=checked"])


if __name__ == "__main__":
    import unittest
    unittest.main()
