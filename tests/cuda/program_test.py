"""The whole program on the emulated device: what it says of it, its ranks on devices, and what it learns."""
import json
import os
import re
import subprocess
import unittest

from program import PROGRAM, SMALL, ProgramTest, mpirun, needs_mpi

NET = {"format": "cputrain model 1", "name": "odd",
       "recipe": {"image_size": 21, "batch": 10, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.02, "momentum": 0.9},
       "layers": [{"type": "convolution", "filters": 7, "kernel": 3, "padding": "same"}, {"type": "relu"},
                  {"type": "max_pool", "size": 2}, {"type": "convolution", "filters": 20, "kernel": 3, "stride": 2},
                  {"type": "relu"}, {"type": "dropout", "rate": 0.2}, {"type": "flatten"},
                  {"type": "dense", "units": 21}, {"type": "relu"}, {"type": "dense", "units": "classes"},
                  {"type": "softmax"}]}
CUDA = ["--backend", "cuda", "--precision", "exact"]
EMULATED = "This program computes --backend cuda on an EMULATED device"


class Emulated(ProgramTest):
    def setUp(self):
        super().setUp()
        with open(self.path("odd.json"), "w") as file:
            json.dump(NET, file)
        self.words = ["train", "--model", "odd.json", "--data", "synthetic:60", "--image-size", "21", "--threads", "1",
                      "--log-every", "1"]

    def losses(self, run, *words, **options):
        done = self.expect(0, *self.words, "--out", run, *words, **options)
        return [step["loss"] for step in self.metrics(run, "step")], done.stderr

    def assert_near(self, a, b, tolerance):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLessEqual(abs(x - y), tolerance * abs(y), f"{a} {b}")

    def test_it_learns_what_the_cpu_learns(self):
        steps = ["--steps", "6", "--limit-val", "10"]
        here, said = self.losses("gpu", *steps, *CUDA)
        self.assertTrue(said.startswith(EMULATED), said)
        self.assertIn("Devices: 1 x ", said)
        self.assertNotIn("by way of the host", said)
        plain, said = self.losses("cpu", *steps, "--backend", "reference")
        self.assertNotIn("EMULATED", said)
        self.assert_near(here, plain, 1e-4)
        self.assertNotEqual(here, plain)  # another order of sums
        found = []
        for run in ("gpu", "cpu"):
            with open(self.path(run, "environment.json")) as file:
                found.append(json.load(file).get("emulated"))
        self.assertEqual(found, [True, None])

    def test_the_checked_kernels_give_the_same_bits(self):
        steps = ["--steps", "2", "--limit-val", "0"]
        for kind in ("plain", "checked"):
            self.losses(kind, *steps, *CUDA, CPUTRAIN_EMULATED=kind)
        plain, checked = (self.metrics(run, "summary")[-1]["weights_hash"] for run in ("plain", "checked"))
        self.assertEqual(plain, checked)

    def counts(self, steps, *words, **options):
        name = f"counts-{steps}.json"
        self.losses(str(steps), "--steps", str(steps), "--limit-val", "0", "--overwrite", *CUDA, *words,
                    CPUTRAIN_EMULATED_COUNTS=name, **options)
        with open(self.path(name)) as file:
            return json.load(file)

    def counts_of_a_step(self, **options):
        """One of ten images: what a training of three steps takes more than one of two."""
        def less(now, before):
            if isinstance(now, dict):
                return {key: less(value, (before or {}).get(key)) for key, value in now.items()}
            return now - (before or 0)
        return less(self.counts(3, **options), self.counts(2, **options))

    def test_what_a_step_asks_of_the_device(self):
        step = self.counts_of_a_step()
        pixels, label, sample, loss = 21 * 21 * 3, 4, 4, 16
        self.assertEqual(step["copies"], {"host_to_device": {"calls": 2, "bytes": 10 * (pixels + label + sample)},
                                          "device_to_host": {"calls": 1, "bytes": 10 * loss},
                                          "device_to_device": {"calls": 0, "bytes": 0}})
        # Forward and backward each wait at their ends, backward for four layers that learn as well.
        self.assertEqual(step["host_waits"], {"stream": 2, "event": 4, "copy": 0})
        self.assertEqual(step["events_recorded"]["timed"], 0)
        launches = {name: kernel["launches"] for name, kernel in step["kernels"].items()}
        for name, times in {"load_images": 1, "relu_forward": 3, "relu_backward": 3, "max_pool_forward": 1,
                            "max_pool_backward": 1, "dropout": 2, "softmax_forward": 1, "cross_entropy_backward": 1}.items():
            self.assertEqual(launches[name], times, f"{name} of {launches}")
        self.assertEqual(sum(launches.values()), step["launches"])

    def test_counts_need_no_kernels_to_run(self):
        self.assertEqual(self.counts_of_a_step(CPUTRAIN_EMULATED_KERNELS="skip"), self.counts_of_a_step())

    def test_a_profile_times_every_layer(self):
        self.assertGreater(self.counts(2, "--profile")["events_recorded"]["timed"], 0)
        with open(self.path("2", "profile.json")) as file:
            profile = json.load(file)
        layers = {layer["name"]: layer for layer in profile["layers"]}
        self.assertGreater(layers["conv2d"]["forward"]["seconds"], 0, profile)

    @needs_mpi
    def test_ranks_share_devices(self):
        steps = ["--steps", "4", "--limit-val", "10"]
        alone, _ = self.losses("1", *steps, *CUDA)
        for ranks, devices, line in ((2, 1, "1 x {} with 2 ranks;"), (3, 2, "1 x {0} with 1 rank, 1 x {0} with 2 ranks;"),
                                     (2, 2, "2 x {} with 1 rank each;")):
            with self.subTest(ranks=ranks, devices=devices):
                run = f"{ranks}-{devices}"
                several, said = self.losses(run, *steps, *CUDA, ranks=ranks, CPUTRAIN_EMULATED_DEVICES=str(devices))
                self.assert_near(several, alone, 1e-4)
                info = json.loads(self.expect(0, "info", "--json", "-").stdout)
                name = info["cuda"]["devices"][0]["name"]
                self.assertIn(f"Devices: {line.format(name)} gradients are summed by way of the host", said)
                self.assertEqual(said.count(EMULATED), 1)

    @needs_mpi
    def test_ranks_with_other_backends_or_precisions_are_refused(self):
        first = ["--backend", "reference", "--precision", "exact"]
        for other in (CUDA, ["--backend", "reference", "--precision", "double"]):
            with self.subTest(other=other):
                words = [[PROGRAM, *self.words, "--steps", "1", *own] for own in (first, other)]
                done = subprocess.run([*mpirun(1), *words[0], ":", "-np", "1", *words[1]], cwd=self.folder, text=True,
                                      timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn("ranks differ in their backend or precision", done.stderr)
                for rank, own in enumerate((first, other)):
                    self.assertIn(f"ranks {rank}: {' '.join(own)}", done.stderr)

    def test_a_layer_that_it_lacks_is_refused_before_images_are_decoded(self):
        lacking = {**NET, "layers": [NET["layers"][0], {"type": "batch_norm", "name": "norm"}, *NET["layers"][1:]]}
        with open(self.path("lacking.json"), "w") as file:
            json.dump(lacking, file)
        done = self.expect(2, *self.words, "--model", "lacking.json", "--out", "x", *CUDA,
                           says=["layer norm: batch_norm is not among the layers that --backend cuda has"])
        self.assertNotIn(" ready in ", done.stderr)
        self.assertFalse(os.path.exists(self.path("x", "weights.safetensors")))

    def test_more_images_than_the_device_holds_are_refused_with_what_would_do(self):
        words = ["train", "--dry-run", "--model", "vgg16", "--data", "synthetic:6000", "--threads", "1", *CUDA,
                 "--batch", "5000", "--micro-batch", "5000"]
        done = self.expect(2, *words, says=["of the backend's memory", "--micro-batch "])
        fitting = re.search(r"--micro-batch (\d+)", done.stderr.split("use")[-1])[1]
        words[-1] = fitting
        self.expect(0, *words)
        words[-1] = str(2 * int(fitting))
        self.expect(2, *words)

    def test_no_time_of_it_gets_into_a_table(self):
        self.expect(2, "sweep", "--backend", "cpu,cuda", "--precision", "exact", "--np", "1", "--out", "s",
                    says=["--backend cuda", "sweep measures times", "emulated"])
        self.assertFalse(os.path.exists(self.path("s")))
        for topic in ("step", "kernels", "allreduce"):
            self.expect(2, "bench", topic, *CUDA, says=[f"bench {topic} measures times", "emulated"])

    def test_info_and_json(self):
        self.expect(0, "info", says=["GPUs for --backend cuda: emulated "])
        self.expect(0, "info", "--backend", "cuda", says=["Backend: emulated H100"])
        done = self.expect(0, "info", *CUDA, "--json", "-", says=[EMULATED])
        self.assertTrue(json.loads(done.stdout)["cuda"]["devices"][0]["emulated"])


if __name__ == "__main__":
    unittest.main()
