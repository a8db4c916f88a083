"""`bench kernels`: what it measures by layer and direction, beside the worst case, and what it refuses."""
import json
import unittest

from program import ProgramTest, needs_mpi
from tiny import TINY

# Four blocks of 3x3 convolution, pool and ReLU from 64x64 on, then dense layers.
QUICK = ["bench", "kernels", "--image-size", "64", "--threads", "1", "--repeat", "2"]
FORWARD, DATA, WEIGHTS = "forward", "backward_data", "backward_weights"


class BenchKernels(ProgramTest):
    def bench(self, *words):
        return json.loads(self.expect(0, *QUICK, "--json", "-", *words).stdout)

    def directions(self, layers, name):
        layer, = [l for l in layers if l["name"] == name]
        return layer, {d["direction"]: d for d in layer["directions"]}

    def test_every_layer_and_direction_has_its_figures(self):
        self.expect(0, "data", "synth", "s", "--images", "24", "--image-size", "64")
        self.expect(0, "train", "--data", "s", "--image-size", "64", "--steps", "1", "--batch", "4", "--threads", "1",
                    "--out", "run")
        bench = self.bench("--data", "s", "--weights", "run/weights.safetensors", "--micro-batch", "3,1", "--batch",
                           "4")
        self.assertEqual([bench[k] for k in ("bench", "model", "image_size", "threads", "repeats", "data", "weights")],
                         ["kernels", "dogcat", 64, 1, 2, "s", "run/weights.safetensors"])
        # Rounds of at least 4 images in whole micro-batches.
        self.assertEqual([(m["micro_batch"], m["images"]) for m in bench["micro_batches"]], [(3, 6), (1, 4)])
        peak, triad = bench["limit"]["fma_gflops"], bench["limit"]["triad_gbs"]
        for m in bench["micro_batches"]:
            first, ways = self.directions(m["given"]["layers"], "conv2d")
            self.assertEqual(set(ways), {FORWARD, WEIGHTS})  # nobody needs an image's gradient
            self.assertEqual(first["macs_per_image"], 62 * 62 * 32 * 27)
            # The image's bytes, the pooled map, the weights once a micro-batch.
            least = 64 * 64 * 3 + 4 * 31 * 31 * 32 + 4 * (27 * 32 + 32) / m["micro_batch"]
            self.assertAlmostEqual(first["bytes_per_image"], least, places=3)
            second, ways = self.directions(m["given"]["layers"], "conv2d_1")
            self.assertEqual(set(ways), {FORWARD, DATA, WEIGHTS})
            for way in ways.values():
                with self.subTest(micro_batch=m["micro_batch"], direction=way["direction"]):
                    seconds, rate = way["seconds_per_image"], way["gflops"]
                    self.assertTrue(0 < seconds["min"] <= seconds["median"] <= seconds["max"])
                    # The quicker of two rounds has the larger rate.
                    self.assertAlmostEqual(rate["max"], 2e-9 * second["macs_per_image"] / seconds["min"], places=6)
                    self.assertAlmostEqual(way["gbs"]["max"], 1e-9 * second["bytes_per_image"] / seconds["min"],
                                           places=6)
                    self.assertAlmostEqual(way["fraction_of_peak"], rate["median"] / peak, places=9)
                    self.assertAlmostEqual(way["fraction_of_bandwidth"], way["gbs"]["median"] / triad, places=9)
                    self.assertTrue(way["algorithm"])
            self.assertAlmostEqual(m["given"]["fraction_of_peak"], m["given"]["gflops"]["median"] / peak, places=9)

    def test_the_worst_case_has_no_zeros(self):
        bench = self.bench("--micro-batch", "2", "--batch", "2")
        self.assertIsNone(bench["weights"])
        case, = bench["micro_batches"]
        given, _ = self.directions(case["given"]["layers"], "conv2d_1")
        full, _ = self.directions(case["no_zeros"]["layers"], "conv2d_1")
        if given["density"] is None:
            self.skipTest("this backend skips no zeros")
        self.assertLess(given["density"], 0.9)
        # No window of the pool needs the last row and column of 31 x 31, so nobody counts them.
        self.assertAlmostEqual(full["density"], 30 * 30 / (31 * 31), places=3)
        # Behind a 2x2 pool one gradient of four is left (of 29 x 29 pixels the last are in no window); ReLU takes more.
        self.assertAlmostEqual(full["gradient_density"], 14 * 14 / (29 * 29), places=3)
        self.assertLess(given["gradient_density"], full["gradient_density"])
        # A dense layer whose weights are worth not reading.
        case, = self.bench("--micro-batch", "2", "--batch", "2", "--image-size", "96")["micro_batches"]
        dense = [self.directions(case[c]["layers"], "dense")[0]["density"] for c in ("given", "no_zeros")]
        self.assertLess(dense[0], 0.95)
        self.assertEqual(dense[1], 1)

    def test_what_a_first_layer_without_a_pool_takes_is_no_way_back_to_the_image(self):
        bench = self.bench("--model", "chips", "--micro-batch", "2", "--batch", "2", "--no-skip-zeros")
        for case in ("given", "no_zeros"):
            _, ways = self.directions(bench["micro_batches"][0][case]["layers"], "conv2d")
            self.assertEqual(set(ways), {FORWARD, WEIGHTS})

    def test_doubles_move_twice_as_much(self):
        bench = self.bench("--backend", "reference", "--precision", "double", "--micro-batch", "1", "--batch", "1")
        second, _ = self.directions(bench["micro_batches"][0]["given"]["layers"], "conv2d_1")
        numbers = 31 * 31 * 32 + 14 * 14 * 64 + 9 * 32 * 64 + 64
        self.assertAlmostEqual(second["bytes_per_image"], 8 * numbers, places=3)

    def test_the_table_is_for_people(self):
        done = self.expect(0, *QUICK, "--micro-batch", "1,2", "--batch", "2", "--no-skip-zeros", "--json", "r.json",
                           says=["micro-batch 1 ", "micro-batch 2 ", "conv2d_3", "bwd data", "no zeros", "all layers",
                                 "of mem.", "initial weights", "dogcat at 64x64, cpu, 1 thread;"])
        self.assertNotIn("skips zeros", done.stdout.replace("skips zeros where it pays", ""))
        self.assertEqual(len(self.json_of("r.json")["micro_batches"]), 2)

    def test_long_names_of_layers_keep_the_columns(self):
        name = "features.denseblock1.denselayer1.conv1"
        self.write("long.json", {**TINY, "layers": [{**layer, "name": name} if layer["type"] == "convolution" else layer
                                                    for layer in TINY["layers"]]})
        for command in (["step"], ["kernels", "--micro-batch", "2"]):
            with self.subTest(command):
                done = self.expect(0, "bench", *command, "--model", "long.json", "--threads", "1", "--repeat", "1",
                                   "--batch", "2")
                lines = done.stdout.splitlines()
                at = next(i for i, line in enumerate(lines) if line.startswith("layer "))
                column = lines[at].index("algorithm")
                rows = [line for line in lines[at + 1:] if line.split(" ")[0] in (name, "head")]
                self.assertGreaterEqual(len(rows), 2)
                for row in rows:
                    self.assertEqual((row[column - 2:column], row[column] == " "), ("  ", False), row)

    def test_what_cannot_be_measured_ends_with_2(self):
        self.expect(0, "data", "synth", "s", "--images", "10", "--image-size", "64")
        for words, says in [(["--micro-batch", "0"], ["--micro-batch 0", "1 to 65536"]),
                            (["--micro-batch", "1,,2"], ["--micro-batch 1,,2"]),
                            (["--micro-batch", "4x"], ["--micro-batch 4x"]),
                            (["--batch", "0"], ["--batch 0"]), (["--repeat", "0"], ["--repeat 0"]),
                            (["--optimizer", "sgd"], ["--optimizer"]), (["--model", "dogcart"], ["dogcat"]),
                            (["--data", "s"], ["9 training images of s", "a round's 33"])]:
            with self.subTest(words=words):
                done = self.expect(2, *QUICK, *words, says=says)
                self.assertEqual(done.stdout, "")
        self.expect(65, *QUICK, "--data", "nowhere", says=["nowhere"])

    @needs_mpi
    def test_ranks_are_refused_once(self):
        done = self.expect(2, *QUICK, ranks=2, says=["one process, not 2"])
        self.assertEqual(done.stderr.count("one process"), 1)


if __name__ == "__main__":
    unittest.main()
