"""Mixed labels, weights of classes, averages of weights, evaluation now and then, and mirrored images."""
import json
import shutil
import unittest

from program import needs_mpi
from tiny import TINY, TinyTest

LONG = ["--batch", "7", "--epochs", "3", "--log-every", "1", "--lr", "0.1"]
NORM = {**TINY, "name": "norm", "layers": [
    {"type": "convolution", "filters": 4, "kernel": 3, "bias": False}, {"type": "batch_norm", "momentum": 0.8},
    *TINY["layers"][1:]]}


class Mixing(TinyTest):
    def setUp(self):
        super().setUp()
        self.write("norm.json", NORM)
        self.make("data", ant=20, bee=9, cow=5)

    def losses(self, run, *words, **options):
        self.tiny(0, run, "data", *LONG, *words, **options)
        return [s["loss"] for s in self.metrics(run, "step")] + [e["val_loss"] for e in self.metrics(run, "epoch")]

    @needs_mpi
    def test_curves_are_the_same_at_any_number_of_ranks(self):
        plain = self.losses("plain")
        for words in (["--augment", "flip,mixup:0.4,cutmix:1"], ["--class-weights", "balanced"], ["--ema", "0.9"],
                      ["--augment", "mixup:1", "--class-weights", "balanced", "--label-smoothing", "0.1"],
                      ["--optimizer", "adamw", "--lr", "0.001"],
                      ["--augment", "cutout:4,brightness:0.3,contrast:0.2,rand:2:9"]):
            with self.subTest(words=words):
                alone = self.losses("alone", *words)
                self.assertEqual(alone == plain, words[0] == "--ema")
                for ranks in (2, 3, 7):
                    self.assert_near(self.losses("ranks", *words, ranks=ranks), alone)
        words = ["--reproducible", "--augment", "mixup:0.4", "--class-weights", "balanced", "--ema", "0.9"]
        exact = self.losses("exact", *words)
        for ranks in (2, 3, 7):
            self.assertEqual(self.losses("ranks", *words, ranks=ranks), exact)
            with open(self.path("ranks", "weights-ema.safetensors"), "rb") as a, \
                    open(self.path("exact", "weights-ema.safetensors"), "rb") as b:
                self.assertEqual(a.read()[-100:], b.read()[-100:])

    def test_weights_of_classes_from_a_file(self):
        self.write("weights.json", {"ant": 1, "bee": 2.5, "cow": 4})
        weighed = self.losses("file", "--class-weights", "weights.json")
        self.write("weights.json", {"ant": 2, "bee": 5, "cow": 8})
        self.assert_near(self.losses("twice", "--class-weights", "weights.json"), weighed, 1e-6)
        self.write("weights.json", {"0": 1, "1": 2.5, "2": 4})
        self.assertEqual(self.losses("labels", "--class-weights", "weights.json"), weighed)
        self.write("weights.json", {"ant": 3, "bee": 3, "cow": 3})
        self.assertEqual(self.losses("alike", "--class-weights", "weights.json"), self.losses("plain"))

    def test_what_is_wrong_with_weights_of_classes(self):
        for text, code, says in [('{"ant": 1, "bee": 2}', 2, ["no weight for the class cow"]),
                                 ('{"ant": 1, "bee": 2, "cow": 1, "dog": 1}', 2, ["dog is no class"]),
                                 ('{"ant": 1, "bee": -2, "cow": 1}', 65, ["weight of bee", "above 0"]),
                                 ('{"0": 1, "1": 2}', 2, ["no weight for the class cow"]),
                                 ('{"0": 1, "1": 2, "2": 1, "3": 1}', 2, ["3 is no class"]),
                                 ('{"0": 1, "1": 2, "cow": 1}', 2, ["no weight for the class ant"]),
                                 ('[1, 2, 3]', 65, ["no object"]), ('{', 65, ["weights.json"])]:
            with self.subTest(text=text):
                self.write("weights.json", text)
                self.tiny(code, "run", "data", "--class-weights", "weights.json", says=says)
        self.tiny(2, "run", "data", "--class-weights", "balancd", says=["no such file", "did you mean balanced?"])

    def test_balanced_weights_are_printed(self):
        self.tiny(0, "run", "data", "--limit-val", "0", "--validation-split", "0", "--class-weights", "balanced",
                  says=["Class weights: ant 0.5667, bee 1.259, cow 2.267"])

    @needs_mpi
    def test_averages_are_evaluated_and_saved(self):
        for model in ("tiny.json", "norm.json"):
            for ranks in (0, 3):
                with self.subTest(model=model, ranks=ranks):
                    words = ["--ema", "0.8", *LONG, "--model", model]
                    self.tiny(0, "run", "data", *words, ranks=ranks,
                              says=["Averaged weights: run/weights-ema.safetensors", "ema_val_loss"])
                    epoch = self.metrics("run", "epoch")[-1]
                    self.assertNotEqual(epoch["ema_val_loss"], epoch["val_loss"])
                    self.assertAlmostEqual(self.evaluate("data")["loss"], epoch["val_loss"], places=5)
                    shutil.move(self.path("run", "weights-ema.safetensors"), self.path("run", "weights.safetensors"))
                    averaged = self.evaluate("data")
                    self.assertAlmostEqual(averaged["loss"], epoch["ema_val_loss"], places=5)
                    self.assertEqual(averaged["accuracy"], epoch["ema_val_accuracy"])

    def test_averages_of_one_step_are_the_weights(self):
        self.tiny(0, "run", "data", *LONG, "--ema", "1e-12", "--model", "norm.json")
        for epoch in self.metrics("run", "epoch"):
            self.assertAlmostEqual(epoch["ema_val_loss"], epoch["val_loss"], places=5)

    @needs_mpi
    def test_averages_go_on_from_a_checkpoint(self):
        for model in ("tiny.json", "norm.json"):
            with self.subTest(model=model):
                words = ["--model", model, *LONG, "--ema", "0.9", "--optimizer", "adam", "--no-winograd",
                         "--no-skip-zeros"]
                self.tiny(0, "whole", "data", *words, ranks=2)
                self.tiny(0, "parts", "data", *words, "--steps", "7", ranks=2)
                self.expect(0, "--model", model, "--data", "data", "--threads", "1", "--out", "parts", "--resume",
                            "auto", *words, ranks=2)
                with open(self.path("whole", "weights-ema.safetensors"), "rb") as a, \
                        open(self.path("parts", "weights-ema.safetensors"), "rb") as b:
                    self.assertEqual(a.read()[-200:], b.read()[-200:])
                self.assertEqual([e["ema_val_loss"] for e in self.metrics("whole", "epoch")][-1],
                                 [e["ema_val_loss"] for e in self.metrics("parts", "epoch")][-1])
                self.expect(2, "--model", model, "--data", "data", "--threads", "1", "--out", "parts", "--resume",
                            "auto", *words, "--epochs", "4", "--ema", "0.8", ranks=2, says=["ema"])

    def test_validation_now_and_then_and_at_the_end(self):
        def validated(*words):
            self.tiny(0, "run", "data", "--batch", "10", *words)
            return ["val_loss" in e for e in self.metrics("run", "epoch")]
        self.assertEqual(validated("--epochs", "5", "--eval-every", "2"), [False, True, False, True, True])
        self.assertEqual(validated("--epochs", "2", "--eval-every", "9"), [False, True])
        self.assertEqual(validated("--steps", "5", "--eval-every", "9"), [False, True])

    @needs_mpi
    def test_mirror_images_are_looked_at_too(self):
        self.losses("run")
        plain = self.evaluate("data", "--validation-split", "0")
        both = self.evaluate("data", "--validation-split", "0", "--tta", "flip")
        self.assertEqual(both["tta"], "flip")
        self.assertNotEqual(both["loss"], plain["loss"])
        self.assertEqual(self.evaluate("data", "--validation-split", "0", "--tta", "none"), plain)
        self.assertAlmostEqual(
            self.evaluate("data", "--validation-split", "0", "--tta", "flip", ranks=3)["loss"], both["loss"], places=6)

        def predicted(*words):
            done = self.expect(0, "predict", "--weights", "run/weights.safetensors", "--threads", "1", "--json", "-",
                               *words)
            return [p["probabilities"] for p in json.loads(done.stdout)["predictions"]]
        first = predicted("data/bee")
        mean = predicted("data/bee", "--tta", "flip")
        # What the mirror image alone gives follows, and the mean is no other than the mean of both.
        self.assertNotEqual(first, mean)
        for a, m in zip(first, mean):
            for name, p in m.items():
                self.assertTrue(-1e-6 <= 2 * p - a[name] <= 1 + 1e-6)
            self.assertAlmostEqual(sum(m.values()), 1, places=5)


if __name__ == "__main__":
    unittest.main()
