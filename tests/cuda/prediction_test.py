"""scripts/predict_gpu: its plans are the backend's, its launches those that the emulated device counts, its times what
one computes by hand, and its table the one in the document."""
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace

from cuda_cases import NET, RESIDUAL
from program import PROGRAM, ProgramTest

ROOT = os.environ["CUDA_TESTS_ROOT"]
SCRIPT = os.path.join(ROOT, "scripts", "predict_gpu")
DOCUMENT = os.path.join(ROOT, "scripts", "gpu", "README.md")
sys.path.insert(0, os.path.join(ROOT, "scripts", "gpu"))
import days
import launches
import plan
import speed
import step


MULTIPROCESSORS = {"a100": 108, "h100": 132}  # of the emulated devices


def predict(*words):
    return subprocess.run([SCRIPT, "--program", PROGRAM, *words], text=True, capture_output=True)


class Plans(unittest.TestCase):
    def test_they_are_those_of_the_backend(self):
        sides = (1, 8, 31, 32, 33, 64, 65, 127, 128, 129, 256, 288, 512, 1152, 4608, 25088)
        rows, sides = (*sides, 100352, 2000000, 8258048), sides[::2]
        precisions = list(plan.NUMBERS)
        cases = [(r, c, d, parts, inside, numbers, processors) for r in rows for c in sides for d in sides
                 for parts, inside in ((1, 0), (1, 1), (4, 1)) for numbers in range(len(precisions))
                 for processors in (1, 108, 132)]
        done = subprocess.run([os.environ["GEMM_PLANS"]], text=True, capture_output=True, check=True,
                              input="".join(" ".join(map(str, case)) + "\n" for case in cases))
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), len(cases))
        for case, answer in zip(cases, answers):
            made = plan.plan(plan.Extent(*case[:5]), precisions[case[5]], case[6])
            self.assertEqual(f"{made.tile} {made.tiles} {made.slices} {made.bias_parts}", answer, case)


class Counts(ProgramTest):
    """A step of the program: what a training of three steps does more than one of two."""

    def counted(self, gpu, model, size, batch, *words):
        found = []
        for steps in (2, 3):
            file = self.path(f"{steps}.json")
            self.expect(0, "train", "--backend", "cuda", "--model", model, "--image-size", str(size), "--batch",
                        str(batch), "--data", f"synthetic:{4 * batch}", "--limit-val", "0", "--steps", str(steps),
                        "--prefetch", "0", "--checkpoint-every", "0", "--threads", "1", "--overwrite", "--out",
                        self.path(f"{model}-{gpu}-{steps}"), *words, CPUTRAIN_EMULATED_GPU=gpu,
                        CPUTRAIN_EMULATED_KERNELS="skip", CPUTRAIN_EMULATED_COUNTS=file)
            with open(file) as of_steps:
                found.append(json.load(of_steps))
        return found

    def networks(self, gpu, model, size, batch, asked, precision):
        done = self.expect(0, "info", "--model", model, "--image-size", str(size), "--classes", "2", "--json", "-")
        description = json.loads(done.stdout)["model"]
        return description, [launches.Network(description["layers"], images, precision, MULTIPROCESSORS[gpu])
                             for images in step.micro_batches(batch, description["layers"], asked)]

    def assert_step(self, gpu, model, size, batch, asked=None, precision="exact"):
        two, three = self.counted(gpu, model, size, batch, "--precision", precision,
                                  *(["--micro-batch", str(asked)] if asked else []))
        description, networks = self.networks(gpu, model, size, batch, asked, precision)
        predicted = {}
        made = [launch for network in networks for operation in network.operations
                for _, of_direction in operation.directions() for launch in of_direction]
        for launch in [*made, *networks[0].update(description["recipe"]["state_arrays"])]:
            number, blocks = predicted.get(launch.name, (0, 0))
            predicted[launch.name] = number + 1, blocks + launch.blocks
        counted = {}
        for name, of in three["kernels"].items():
            before = two["kernels"].get(name, {"launches": 0, "blocks": 0})
            counted[name] = of["launches"] - before["launches"], of["blocks"] - before["blocks"]
        counted = {name: numbers for name, numbers in counted.items() if numbers != (0, 0)}
        # The arena of parameters has gaps, which the update goes over.
        self.assertAlmostEqual(predicted["update"][1], counted["update"][1], delta=1)
        predicted["update"] = counted["update"]
        self.assertEqual(predicted, counted)
        self.assert_host_work(two, three, networks)

    def assert_host_work(self, two, three, networks):
        predicted = collections.Counter(step.host_work_of_step(networks[0]))
        for _ in networks:
            predicted.update(step.host_work())
        predicted["event_waits"] += predicted.pop("late_waits")
        def more(*path):
            values = []
            for counts in (two, three):
                for key in path:
                    counts = counts[key]
                values.append(counts)
            return values[1] - values[0]
        ways = ("host_to_device", "device_to_host", "device_to_device")
        self.assertEqual(predicted, {"copies": sum(more("copies", way, "calls") for way in ways),
                                     "timed_events": more("events_recorded", "timed"),
                                     "event_waits": more("host_waits", "event")})
        self.assertEqual(more("host_waits", "stream"), 0)

    def test_dogcat_as_it_is(self):
        self.assert_step("h100", "dogcat", 256, 256)

    def test_other_networks_and_sizes(self):
        single = {**NET, "layers": [{"type": "convolution", "filters": 9, "kernel": 1, "stride": 2}, *NET["layers"][6:]]}
        for name, network in (("odd", NET), ("residual", RESIDUAL), ("single", single)):
            self.write(f"{name}.json", network)
        for case in (("a100", "dogcat", 64, 20, 7), ("h100", "nature7", 96, 9), ("h100", "chips", 90, 6),
                     ("a100", "vgg16", 64, 5), ("h100", "odd.json", 21, 10, 4), ("h100", "residual.json", 33, 9),
                     ("h100", "resnet50v2", 64, 6), ("h100", "resnet18", 64, 6), ("h100", "single.json", 15, 4),
                     ("h100", "odd.json", 21, 10, 4, "bf16")):
            with self.subTest(case=case):
                self.assert_step(*case)


class Times(unittest.TestCase):
    """Round figures, so that times can be computed by hand."""

    def setUp(self):
        figures = {"multiprocessors": 10, "clock_ghz": 1, "clock_without_tensor_ghz": 2, "tensor_cycles": 5,
                   "l2_gbs": 1000, "l2_together_gbs": 4000, "dram_gbs": 100, "launch_us": 2, "stream_us": 3}
        of_all = {"schedulers": 4, "hmma_cycles": [[0, 6], [2, 7], [4, 11]], "issue_reached": 0.8, "shared_bytes": 100,
                  "shared_counted": 0.5, "outside_done": 0.5, "outside_plain": 0.25, "round_trip_us": 1,
                  "l2_trip_us": 0.25}
        entry = lambda all_figures: {key: {"value": value} for key, value in all_figures.items()}
        self.gpu = speed.Gpu("X", {"gpus": {"X": {"architecture": "90a", **entry(figures)}}, "of_all": entry(of_all)},
                             speed.INSTRUCTIONS)
        product = speed.Kernel(1000, loop=896, tensor=188, warps=4, share=16, share_tensor=16, rows=64, columns=32)
        self.gpu.instructions = {"copy_kernel": speed.Kernel(100), ("exact", "Forward", "128x64"): product,
                                 ("exact", "BackwardWeights", "128x64"): product}

    def launch(self, **changes):
        return launches.Launch("copy", "copy_kernel", **{"blocks": 10, "bytes": 0, **changes})

    def assert_time(self, launch, bound, microseconds, **words):
        seconds, what = self.gpu.time(self.gpu.work(launch, "exact"), **words)
        self.assertEqual(what, bound)
        self.assertAlmostEqual(1e6 * seconds, microseconds, places=9)

    def test_of_memory(self):
        self.assert_time(self.launch(bytes=8_000_000), "dram", 8e6 / 1e11 * 1e6 + 2)
        self.assert_time(self.launch(bytes=8_000_000), "dram", 8e6 / 1e11 * 1e6 + 3, gap="stream")

    def test_of_instructions(self):
        # 40 schedulers start two instructions a nanosecond each, and kernels reach 0.8 of that.
        self.assert_time(self.launch(warps=4000), "issue", 4000 * 100 / 80 / 1000 / 0.8 + 2)

    def test_of_waiting(self):
        self.assert_time(self.launch(round_trips=40), "latency", 40 + 2)
        self.assert_time(self.launch(round_trips=0, l2_trips=40), "latency", 10 + 2)
        self.assert_time(self.launch(), "launch", 1 + 2)

    def test_batch_norms_wait_for_sums_of_all_parts(self):
        layers = [{"name": name, "type": name, "output": [64, 64, 256]} for name in ("input", "batch_norm")]
        norm = launches.Network(layers, 128, "bf16", 132).operations[-1]
        # Two blocks of each multiprocessor made a part each: 5 for each of 64 lines, which read 8 at once.
        trips = lambda norm: {launch.name: launch.l2_trips for launch in [*norm.forward, *norm.data] if launch.l2_trips}
        self.assertEqual(trips(norm), {"finish_statistics": 1, "finish_slopes": 1})
        # A product makes moments, a part for 256 positions: 2,048 parts, 16 for each of 128 lines.
        product = {"name": "product", "type": "convolution", "output": [64, 64, 64], "kernel": 1, "stride": 1,
                   "padding": "same", "bias": False}
        layers = [{**layer, "output": [64, 64, 64]} for layer in layers]
        network = launches.Network([layers[0], product, layers[1]], 128, "bf16", 132)
        product, norm = network.operations[-2:]
        self.assertEqual((product.forward[0].plan.tile, product.forward[0].planned_writes), ("256x64", 2048 * 64 * 8))
        self.assertEqual([launch.name for launch in norm.forward], ["finish_statistics", "normalize"])
        self.assertEqual(trips(norm), {"finish_statistics": 2, "finish_slopes": 1})
        # The first product behind it makes slopes: it reads what was normalised, and mean, scale and shift.
        names = lambda norm: [launch.name for launch in norm.data]
        self.assertEqual(names(norm), ["sum_slopes", "finish_slopes", "normalize_backward"])
        layers = [*network.walk.layers, {**network.walk.layers[1], "name": "next", "from": ["batch_norm"]}]
        norm, product = launches.Network(layers, 128, "bf16", 132).operations[-2:]
        self.assertEqual(names(norm), ["finish_slopes", "normalize_backward"])
        self.assertEqual(product.data[-1].planned_reads, 128 * 64 * 64 * 64 * 2 + 3 * 64 * 4)
        self.assertEqual(product.data[-1].planned_writes, 2048 * 64 * 8)

    def product(self, tiles, steps, problem="Forward", slices=1, bias_parts=4):
        made = plan.Plan("128x64", tiles, slices, steps, bias_parts)
        return launches.Launch("convolution", problem, made.blocks, 0, plan=made)

    def assert_bound(self, launch, bound, seconds):
        self.assertAlmostEqual(self.gpu.bounds(self.gpu.work(launch, "exact"))[bound] / seconds, 1, places=9)

    def test_bounds_of_a_product(self):
        # Four warps take 200 steps of 900 instructions, 192 of them HMMA, and a part of 20 x 1,000: a quarter, or half
        # with sums for a batch norm, or where there are none to be made.
        hmma, plain, weights = 4 * 200 * 192, self.product(20, 10), self.product(20, 10, "BackwardWeights")
        for launch, done in ((plain, 250), (replace(plain, planned_writes=8), 500), (weights, 500)):
            others = 4 * (200 * 900 + 20 * done) / hmma - 1  # 3.82 or 3.95: from 2 to 4 an HMMA takes 7 to 11 cycles
            self.assert_bound(launch, "issue", hmma * (7 + 2 * (others - 2)) / 40 / 1e9)
        # A step writes 192 rows of 128 bytes; each warp reads 96. Sums of 128 x 64 are written and read once.
        shared = 200 * 128 * (192 + 4 * 96) + 20 * 2 * 4 * 128 * 64
        self.assert_bound(self.product(20, 10), "shared", 0.5 * shared / (10 * 100 * 1e9))
        # 128 rows of windows, and 64 of weights that all blocks read.
        self.assert_bound(self.product(20, 10), "l2", 200 * 128 * (128 / 1e12 + 64 / 4e12))
        self.assert_bound(self.product(20, 10, "BackwardWeights"), "l2", 200 * 128 * 192 / 1e12)

    def test_cycles_of_an_hmma_beside_others(self):
        table = [[0, 6], [2, 7], [4, 11]]
        for others, cycles in ((0, 6), (1, 6.5), (3, 9), (4, 11), (10, 17)):
            self.assertEqual(speed.beside(table, others), cycles)
        self.gpu.of["tensor_cycles"] = 50  # a GPU whose tensor cores are slower than the probe's
        self.assert_bound(self.product(20, 10), "issue", 4 * 200 * 192 * 50 / 40 / 1e9)

    def test_bounds_overlap_as_a_rule_says(self):
        bounds = {"issue": 3.0, "shared": 4.0, "l2": 12.0, "dram": 0.0, "latency": 99.0}
        self.assertEqual(speed.Rule(2, 1.0).joined(bounds), 13)
        self.assertEqual(speed.Rule(1, 0.5).joined(bounds), 6 + 8 + 12)
        self.assertEqual(speed.Rule(math.inf, 0.25).joined(bounds), 16)
        fastest, expected, slowest = (rule.joined({**bounds, "issue": 9.0}) for rule in speed.RULES)
        self.assertTrue(fastest < expected < slowest)

    def test_the_last_wave_counts_as_a_whole_one(self):
        rule = speed.Rule(math.inf, 1.0)
        # 20 tiles are one wave: two blocks on each of ten multiprocessors. 30 take as long as 40.
        seconds = [self.gpu.time(self.gpu.work(self.product(tiles, 10), "exact"), rule)[0] - 2e-6 for tiles in (20, 30, 40)]
        self.assertAlmostEqual(seconds[1], 2 * seconds[0])
        self.assertAlmostEqual(seconds[2], 2 * seconds[0])


class Script(unittest.TestCase):
    def predictions(self, *words):
        done = predict("--json", "-", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["predictions"]

    def test_the_document_has_its_table(self):
        with open(DOCUMENT) as file:
            fence = re.search(r"scripts/predict_gpu --gpu H100\n```\n.*?```text\n(.*?)```", file.read(), re.S)
        done = predict("--gpu", "H100")
        self.assertEqual(done.stdout, fence[1], f"{DOCUMENT} has another table than scripts/predict_gpu prints")

    def test_layers_and_the_host_add_up_to_the_step(self):
        for p in self.predictions("--batch", "400", "--gpu", "A100,H200"):
            seconds = sum(layer["seconds"] for layer in p["layers"]) + p["update"]["seconds"]
            self.assertAlmostEqual(p["images_per_second_of_kernels"], 400 / seconds)
            seconds += sum(p["host"]["seconds"].values())
            self.assertAlmostEqual(p["seconds"], seconds)
            self.assertAlmostEqual(p["images_per_second"], 400 / seconds)
            slowest, fastest = p["images_per_second_range"]
            self.assertTrue(slowest < p["images_per_second"] < fastest)
            self.assertEqual((p["batch"], p["micro_batch"], p["model"]), (400, 200, "dogcat"))
            for layer in p["layers"]:
                self.assertIn(layer["direction"], ("forward", "data", "weights"))
                self.assertIn(layer["bound"], ("launch", *speed.BOUNDS))

    def test_images_from_the_host_bound_a_step(self):
        figures = speed.read_hardware()
        figures["gpus"]["H100"]["host_copy_gbs"]["value"] = 1
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(figures, file)
            file.flush()
            words = ("--hardware", file.name, "--gpu", "H100", "--precision", "bf16")
            device, host = (self.predictions(*words, "--images", where)[0] for where in ("device", "host"))
        self.assertAlmostEqual(host["images_per_second"], 1e9 / (256 * 256 * 3))
        self.assertAlmostEqual(host["images_per_second_range"][1], 1e9 / (256 * 256 * 3))
        self.assertEqual(device, {**self.predictions("--gpu", "H100", "--precision", "bf16")[0], "host": device["host"]})

    def test_launches_have_what_the_layers_take(self):
        for p in self.predictions("--gpu", "H200", "--batch", "128"):
            gpu = speed.Gpu("H200", speed.read_hardware(), speed.INSTRUCTIONS)
            found = days.predicted(gpu, p["launches"], p["precision"], {})
            for layer in p["layers"]:
                _, expected, _ = found[layer["name"], layer["direction"]]
                gaps = sum((launch["layer"], launch["direction"]) == (layer["name"], layer["direction"])
                           for launch in p["launches"]["launches"]) * (gpu.of["stream"] - gpu.of["launch"])
                self.assertAlmostEqual(expected * 128 / 1e6, layer["seconds"] + gaps)

    def test_every_figure_says_where_it_is_from(self):
        figures = speed.read_hardware()
        for group in (*figures["gpus"].values(), figures["of_all"]):
            for name, entry in group.items():
                if name == "architecture":
                    continue
                self.assertIn(entry["basis"], ("fact", "measured", "taken from H100", "assumed"), name)
                self.assertTrue(entry["source"], name)

    def test_what_it_cannot_predict_ends_with_2(self):
        for words, says in ((["--gpu", "H900"], "A100, H100, H200"), (["--precision", "fp8"], "bf16, exact, tf32"),
                            (["--batch", "0"], "--batch"), (["--batch", "65537"], "at most 65536"),
                            (["--model", "no"], "no"), (["--program", "/nowhere"], "scripts/build"),
                            (["--program", "/bin/true"], "/bin/true"), (["--image-size", "0"], "--image-size"),
                            (["--classes", "0"], "--classes"), (["--micro-batch", "0"], "--micro-batch"),
                            (["--explain", "dense", "--json", "-"], "give one of them"),
                            (["--days", "x", "--json", "-"], "give one of them"),
                            (["--days", "x", "--explain", "dense"], "give one of them"),
                            (["--instructions", "/nowhere"], "scripts/kernel_instructions"),
                            (["--instructions", os.devnull], "scripts/kernel_instructions")):
            with self.subTest(words=words):
                self.assert_refused(2, words, says)

    def assert_refused(self, code, words, *says):
        done = predict(*words)
        self.assertEqual(done.returncode, code, done.stdout)
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_bad_files_of_figures_are_named(self):
        ours = speed.read_hardware()
        less, zero, bare, falling = (json.loads(json.dumps(ours)) for _ in range(4))
        falling["of_all"]["hmma_cycles"]["value"] = [[0, 6], [2, 7], [1, 8]]
        del less["gpus"]["H100"]["dram_gbs"]
        zero["of_all"]["issue_reached"]["value"] = 0
        bare["gpus"]["A100"]["clock_ghz"] = 1.41
        for text, says in ((None, "No such file"), ("{}", "lacks gpus"), ("garbage", "is no JSON"), ("[]", "above 0"),
                           ('{"gpus": {}}', "lacks a GPU"), (json.dumps(less), "lacks dram_gbs of H100"),
                           (json.dumps(zero), "above 0"), (json.dumps(bare), "above 0"), (json.dumps(falling), "above 0")):
            with self.subTest(text=text and text[:20]), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "figures.json")
                if text is not None:
                    with open(path, "w") as file:
                        file.write(text)
                self.assert_refused(2, ["--hardware", path], says, path)

    def test_another_file_of_figures_is_taken(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(speed.read_hardware(), file)
            file.flush()
            self.assertEqual(self.predictions("--hardware", file.name), self.predictions())

    def test_what_cannot_be_written_ends_with_74(self):
        self.assert_refused(74, ["--json", "/nowhere/f.json"], "--json /nowhere/f.json cannot be written")
        if not os.path.exists("/dev/full") or os.path.isfile("/dev/full"):
            self.skipTest("/dev/full is no device here")
        self.assert_refused(74, ["--json", "/dev/full"], "--json /dev/full cannot be written (No space")
        with open("/dev/full", "w") as full:
            done = subprocess.run([SCRIPT, "--program", PROGRAM], text=True, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertRegex(done.stderr, r"\Apredict_gpu: standard output cannot be written .*\n\Z")

    def test_names_of_gpus_are_taken_in_any_case(self):
        self.assertEqual(self.predictions("--gpu", "h100,a100"), self.predictions("--gpu", "H100,A100"))

    def test_a_layer_is_explained(self):
        done = predict("--explain", "dense", "--gpu", "h200", "--precision", "exact")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\AH200, exact, 256 images: [^\n]*\ndense forward: ")


if __name__ == "__main__":
    unittest.main()
