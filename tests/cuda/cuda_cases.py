"""Cases of `--backend cuda` for any device: program_test.py has them on the emulated one, device/program_test.py on a
GPU."""
import json
import os
import re

from program import ProgramTest, needs_mpi

NET = {"format": "cputrain model 1", "name": "odd",
       "recipe": {"image_size": 21, "batch": 10, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.02,
                  "momentum": 0.9},
       "layers": [{"type": "convolution", "filters": 7, "kernel": 3, "padding": "same"}, {"type": "relu"},
                  {"type": "max_pool", "size": 2}, {"type": "convolution", "filters": 20, "kernel": 3, "stride": 2},
                  {"type": "relu"}, {"type": "dropout", "rate": 0.2}, {"type": "flatten"},
                  {"type": "dense", "units": 21}, {"type": "relu"}, {"type": "dense", "units": "classes"},
                  {"type": "softmax"}]}
# Additions behind a batch norm and behind a convolution, shortcuts, and padding that no window can do.
RESIDUAL = {"format": "cputrain model 1", "name": "residual",
            "recipe": {"image_size": 33, "batch": 9, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.02,
                       "momentum": 0.9},
            "layers": [{"type": "zero_pad", "top": 3, "bottom": 3, "left": 3, "right": 3},
                       {"type": "convolution", "filters": 12, "kernel": 7, "stride": 2},
                       {"type": "zero_pad", "top": 1, "bottom": 1, "left": 1, "right": 1},
                       {"type": "max_pool", "name": "stem", "size": 3},
                       {"type": "convolution", "filters": 12, "kernel": 3, "padding": "same", "bias": False},
                       {"type": "batch_norm"}, {"type": "relu"},
                       {"type": "convolution", "filters": 12, "kernel": 3, "padding": "same", "bias": False},
                       {"type": "batch_norm", "name": "first"}, {"type": "add", "from": ["stem", "first"]},
                       {"type": "relu", "name": "trunk"}, {"type": "batch_norm"}, {"type": "relu"},
                       {"type": "zero_pad", "top": 1, "bottom": 1, "left": 1, "right": 1},
                       {"type": "convolution", "name": "branch", "filters": 12, "kernel": 3},
                       {"type": "add", "name": "sum", "from": ["trunk", "branch"]},
                       {"type": "zero_pad", "top": 1, "bottom": 0, "left": 0, "right": 2},
                       {"type": "average_pool", "size": 2}, {"type": "global_average_pool"},
                       {"type": "dense", "units": "classes"}, {"type": "softmax"}]}
CUDA = ["--backend", "cuda", "--precision", "exact"]


class CudaTest(ProgramTest):
    """Trainings of a small network of odd sizes."""

    def setUp(self):
        super().setUp()
        self.write("odd.json", NET)
        self.words = ["train", "--model", "odd.json", "--data", "synthetic:60", "--image-size", "21", "--threads", "1",
                      "--log-every", "1"]

    def losses(self, run, *words, **options):
        done = self.expect(0, *self.words, "--out", run, *words, **options)
        return [step["loss"] for step in self.metrics(run, "step")], done.stderr

    def hash_of(self, run):
        return self.metrics(run, "summary")[-1]["weights_hash"]

    def device_name(self):
        return json.loads(self.expect(0, "info", "--json", "-").stdout)["cuda"]["devices"][0]["name"]

    def expect_ranks_share(self, ranks, line, **environment):
        """Several ranks have the curve of one, and the line says which devices they are on."""
        steps = ["--steps", "4", "--limit-val", "10"]
        alone, _ = self.losses("alone", *steps, *CUDA, "--overwrite")
        several, said = self.losses("several", *steps, *CUDA, "--overwrite", ranks=ranks, **environment)
        self.assert_near(several, alone, 1e-4)
        self.assertIn(f"Devices: {line.format(self.device_name())}\n", said)
        self.assertIn("Gradients of GPUs are summed by way of the host (no NCCL: ", said)
        return said


class CudaCases:
    """What every device does; a test class has it beside CudaTest."""

    def test_it_learns_what_the_cpu_learns(self):
        steps = ["--steps", "6", "--limit-val", "10"]
        here, said = self.losses("gpu", *steps, *CUDA)
        self.assertIn("Devices: 1 x ", said)
        self.assertNotIn("by way of the host", said)
        plain, _ = self.losses("cpu", *steps, "--backend", "reference")
        self.assert_near(here, plain, 1e-4)
        self.assertNotEqual(here, plain)  # another order of sums

    def test_a_residual_network_goes_on_with_the_other_backend(self):
        self.write("residual.json", RESIDUAL)
        words = ["--model", "residual.json", "--image-size", "33", "--limit-val", "10"]
        plain, _ = self.losses("cpu", *words, "--steps", "4", "--backend", "reference")
        for run, first, then in (("to gpu", ["--backend", "reference"], CUDA), ("to cpu", CUDA, ["--backend", "reference"])):
            self.losses(run, *words, "--steps", "2", *first)
            losses, _ = self.losses(run, *words, "--steps", "4", *then, "--resume", "auto")
            self.assert_near(losses, plain, 1e-4)

    def test_it_has_the_same_bits_every_time(self):
        for run in ("first", "second"):
            self.losses(run, "--steps", "3", "--limit-val", "0", *CUDA)
        self.assertEqual(self.hash_of("first"), self.hash_of("second"))

    def test_each_precision_learns_the_same_with_bits_of_its_own(self):
        steps = ["--steps", "6", "--limit-val", "10"]
        plain, _ = self.losses("cpu", *steps, "--backend", "reference")
        curves = [plain]
        for precision, word, bound in (("exact", "exact", 1e-4), ("float", "tf32", 5e-3), ("bf16", "bf16", 5e-2)):
            with self.subTest(precision=precision):
                said = [self.losses(run, *steps, "--backend", "cuda", "--precision", precision)
                        for run in (precision, precision + "-again")]
                self.assertRegex(said[0][1], rf"Backend: .*, {word}[ ;]")
                self.assert_near(said[0][0], plain, bound)
                self.assertEqual(self.hash_of(precision), self.hash_of(precision + "-again"))
                self.assertNotIn(said[0][0], curves)
                curves.append(said[0][0])
        usual, _ = self.losses("usual", *steps, "--backend", "cuda")
        self.assertEqual(self.hash_of("usual"), self.hash_of("float"))

    def test_weights_travel_between_precisions(self):
        self.losses("run", "--steps", "4", "--limit-val", "10", "--backend", "cuda", "--precision", "bf16",
                    "--checkpoint-every", "4")
        losses = []
        for words, said in ((["--backend", "reference"], " on reference: "), (CUDA, " on cuda exact: "),
                            (["--backend", "cuda"], " on cuda tf32: ")):
            done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "synthetic:60", *words,
                               "--json", "-", says=[said])
            losses.append(json.loads(done.stdout)["loss"])
        self.assert_near(losses[1:2], losses[:1], 1e-4)
        self.assert_near(losses[2:], losses[:1], 5e-3)
        _, said = self.losses("run", "--steps", "6", "--limit-val", "10", *CUDA, "--resume", "auto")
        self.assertIn("written with --backend cuda --precision bf16; this goes on with --backend cuda --precision exact", said)
        self.assertEqual([step["step"] for step in self.metrics("run", "step")], [1, 2, 3, 4, 5, 6])

    @needs_mpi
    def test_ranks_share_a_device(self):
        self.expect_ranks_share(2, "1 x {} with 2 ranks", CUDA_VISIBLE_DEVICES="0")

    def test_a_layer_that_it_lacks_is_refused_before_images_are_decoded(self):
        lacking = {**NET, "layers": [NET["layers"][0], {"type": "max_pool", "name": "wide", "size": 17, "stride": 1,
                                                       "padding": "same"}, *NET["layers"][1:]]}
        self.write("lacking.json", lacking)
        done = self.expect(2, *self.words, "--model", "lacking.json", "--out", "x", *CUDA,
                           says=["layer wide: a max pool of 17 x 17"])
        self.assertNotIn(" ready in ", done.stderr)
        self.assertFalse(os.path.exists(self.path("x", "weights.safetensors")))

    def test_more_images_than_the_device_holds_are_refused_with_what_would_do(self):
        words = ["train", "--dry-run", "--model", "vgg16", "--data", "synthetic:6000", "--threads", "1", *CUDA,
                 "--batch", "2000", "--micro-batch", "2000"]
        done = self.expect(2, *words, says=["of the backend's memory", "--micro-batch "])
        fitting = re.search(r"--micro-batch (\d+)", done.stderr.split("use")[-1])[1]
        words[-1] = fitting
        self.expect(0, *words)
        words[-1] = str(3 * int(fitting) // 2)
        self.expect(2, *words, says=["or --precision bf16"])
        self.expect(0, *words, "--precision", "bf16")
        words[-1] = str(2 * int(fitting))
        self.expect(2, *words)
