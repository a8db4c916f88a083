"""Trainings that begin with weights of other programs, and learn some of their layers."""
import csv
import fcntl
import json
import math
import os
import struct
import unittest

from formats import read_arrays, write_arrays
from program import needs_mpi
from tiny import TinyTest

NET = {"format": "cputrain model 1", "name": "net",
       "recipe": {"image_size": 16, "batch": 8, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.05},
       "layers": [{"type": "convolution", "filters": 4, "kernel": 3, "name": "stem"},
                  {"type": "batch_norm", "name": "norm"}, {"type": "relu"},
                  {"type": "convolution", "filters": 6, "kernel": 3, "stride": 2, "bias": False, "name": "body"},
                  {"type": "batch_norm", "name": "body_norm"}, {"type": "relu"}, {"type": "flatten"},
                  {"type": "dense", "units": 5, "name": "wide"}, {"type": "relu"},
                  {"type": "dense", "units": "classes", "name": "head"}, {"type": "softmax"}]}


class FineTuning(TinyTest):
    def setUp(self):
        super().setUp()
        self.write("net.json", NET)
        self.make("data", ant=12, bee=12)

    def net(self, code, out, *words, data="data", **options):
        return self.expect(code, "--model", "net.json", "--data", data, "--threads", "1", "--out", out, "--overwrite",
                           "--log-every", "1", *words, **options)

    def export(self, name="torch.safetensors"):
        self.expect(0, "export", "--weights", "run/weights.safetensors", "--safetensors", name, "--export-layout",
                    "torch")
        return name

    def foreign(self, name="foreign.safetensors", change=lambda tensors: None):
        """What another program would write of the run's weights: arrays alone, and counters."""
        _, tensors = read_arrays(self.path(self.export()))
        tensors["norm.num_batches_tracked"] = ("I64", [], struct.pack("<q", 3))
        change(tensors)
        write_arrays(self.path(name), {"module." + n: t for n, t in tensors.items()})
        return name

    def losses(self, run, kind="step"):
        return [line["loss"] for line in self.metrics(run, kind)]

    def tensors_of(self, run):
        return {n: t[2] for n, t in read_arrays(self.path(run, "weights.safetensors"))[1].items()}

    def test_our_own_export_comes_back(self):
        self.net(0, "run", "--epochs", "2")
        self.export()
        self.net(0, "again", "--weights", "torch.safetensors", "--lr", "0", "--freeze", "*norm",
                 says=["15 of 15 parameter arrays are those of torch.safetensors", "PyTorch's layout, own names"])
        self.assertEqual(self.tensors_of("again"), self.tensors_of("run"))
        ours, theirs = (json.loads(self.expect(0, "eval", "--weights", w, "--data", "data", "--threads", "1", "--json",
                                               "-").stdout)
                        for w in ("run/weights.safetensors", "torch.safetensors"))
        self.assertEqual(ours["loss"], theirs["loss"])

    def test_arrays_of_other_programs(self):
        self.net(0, "run", "--epochs", "2")
        words = ["--lr", "0", "--freeze", "*norm", "--weights"]
        self.net(0, "again", *words, self.foreign(),
                 says=["says nothing about itself", "pixels as unit", "15 of 15 parameter arrays",
                       "rearranged", "not needed: 1 array without weights"])
        self.assertEqual(self.tensors_of("again"), self.tensors_of("run"))
        with open(self.path("again", "first-weights.csv"), newline="") as f:
            rows = {row["parameter"] or row["array"]: row for row in csv.DictReader(f)}
        self.assertEqual(rows["stem/kernel"], {"parameter": "stem/kernel", "shape": "3x3x3x4",
                                               "array": "module.stem.weight", "array_shape": "4x3x3x3",
                                               "done": "rearranged"})
        self.assertEqual(rows["norm/moving_mean"]["done"], "taken")
        self.assertEqual(rows["module.norm.num_batches_tracked"]["done"], "not needed")
        with self.subTest("names as those of Keras' variables"):
            _, tensors = read_arrays(self.path("run/weights.safetensors"))
            write_arrays(self.path("keras.safetensors"), {"sequential/" + n: t for n, t in tensors.items()})
            self.net(0, "again", *words, "keras.safetensors",
                     says=["15 of 15 parameter arrays", "(Keras' layout, own names behind sequential/; 0 rearranged)"])
            self.assertEqual(self.tensors_of("again"), self.tensors_of("run"))
        with self.subTest("two networks in one file"):
            both = {f"{which}/{n}": t for which in "ab" for n, t in tensors.items()}
            write_arrays(self.path("two.safetensors"), both)
            self.net(65, "no", *words, "two.safetensors", says=["and b/", "(either may be the one that is meant)"])
        with self.subTest("halves"):
            def halve(tensors):
                for n, (dtype, shape, data) in list(tensors.items()):
                    if dtype == "F32":
                        values = struct.unpack(f"<{len(data) // 4}f", data)
                        tensors[n] = ("F16", shape, struct.pack(f"<{len(values)}e", *values))
            self.net(0, "half", *words, self.foreign("half.safetensors", halve))
            want, got = (struct.unpack("<4f", self.tensors_of(run)["stem/bias"]) for run in ("run", "half"))
            for a, b in zip(want, got):
                self.assertEqual(struct.unpack("<e", struct.pack("<e", a))[0], b)
        with self.subTest("something is missing"):
            self.net(65, "no", *words, self.foreign("less.safetensors", lambda t: t.pop("body.weight")),
                     says=["1 missing (body/kernel)", "--partial"])

    def test_the_head_is_left_where_classes_are_others(self):
        self.net(0, "run", "--epochs", "2")
        self.make("three", ant=8, bee=8, cow=8)
        self.net(0, "tuned", "--weights", self.foreign(), "--freeze", "all-but-head", data="three",
                 says=["13 of 15 parameter arrays", "head/kernel is 5x2, not 5x3", "Frozen: gradients are computed back "
                       "to layer head; 18 of"])
        before, after = self.tensors_of("run"), self.tensors_of("tuned")
        for name in before:
            if not name.startswith("head"):
                self.assertEqual(before[name], after[name], name)
        self.net(0, "no-head", "--weights",
                 self.foreign("top.safetensors", lambda t: [t.pop("head." + w) for w in ("weight", "bias")]),
                 data="three", says=["13 of 15 parameter arrays", "2 missing (head/kernel, head/bias)"])

    def test_pixels_that_were_others_are_said(self):
        self.net(0, "run", "--normalize", "imagenet")
        self.assertIn("x * (0.0171", read_arrays(self.path("run/weights.safetensors"))[0]["preprocessing"])
        self.net(0, "next", "--weights", "run/weights.safetensors",
                 says=["learnt from pixels as imagenet; here they are unit"])
        done = self.net(0, "next", "--weights", "run/weights.safetensors", "--normalize", "imagenet")
        self.assertNotIn("learnt from pixels", done.stderr)
        self.net(2, "no", "--normalize", "127.5/127.5", says=["means are from 0 to 1", "symmetric"])
        self.net(2, "no", "--normalize", "caffe", says=["--normalize caffe", "unit, symmetric, imagenet"])

    def test_frozen_up_to_a_layer(self):
        self.net(0, "run")
        self.net(0, "tuned", "--weights", "run/weights.safetensors", "--freeze", "until=norm", "--epochs", "2")
        before, after = self.tensors_of("run"), self.tensors_of("tuned")
        changed = {n.split("/")[0] for n in before if before[n] != after[n]}
        self.assertEqual(changed, {"body", "body_norm", "wide", "head"})
        self.net(2, "no", "--freeze", "until=nrm", says=["--freeze until=nrm", "norm"])
        self.net(0, "all", "--freeze", "none", says=["Frozen: no layer"])

    def test_backbone_rate(self):
        """One step of plain SGD moves each layer in proportion to its rate."""
        self.net(0, "run")
        words = ["--weights", "run/weights.safetensors", "--steps", "1", "--freeze", "*norm", "--lr", "0.05"]
        self.net(0, "plain", *words)
        self.net(0, "slow", *words, "--backbone-lr", "0.0125",
                 says=["Learning rate of head: 0.05, of the layers before: 0.0125"])
        runs = [self.tensors_of(run) for run in ("run", "plain", "slow")]
        for name, factor in (("head/kernel", 1), ("wide/kernel", 0.25), ("stem/kernel", 0.25), ("stem/bias", 0.25)):
            first, plain, slow = (struct.unpack(f"<{len(t[name]) // 4}f", t[name]) for t in runs)
            self.assertGreater(max(abs(b - a) for a, b in zip(first, plain)), 1e-4, name)
            for a, b, c in zip(first, plain, slow):
                self.assertAlmostEqual(c - a, factor * (b - a), delta=1e-7)
        self.net(2, "no", "--backbone-lr", "0.001", "--freeze", "all-but-head", says=["--backbone-lr", "nothing"])
        self.net(2, "no", "--backbone-lr", "0.001", "--lr", "0", says=["--backbone-lr 0.001 needs --lr above 0"])

    def test_frozen_noise_is_warned_of(self):
        noise = "drawn at random"
        done = self.net(0, "run", "--freeze", "all-but-head", says=["--freeze all-but-head without --weights", noise])
        self.net(0, "run", "--freeze", "all-but-head", "--dry-run", says=[noise])
        for words in ([], ["--freeze", "none"], ["--freeze", "stem", "--weights", "run/weights.safetensors"]):
            done = self.net(0, "other", *words)
            self.assertNotIn(noise, done.stderr)
        with open(self.path("lock"), "w") as lock:  # as ranks of a sweep begin
            fcntl.lockf(lock, fcntl.LOCK_EX)
            done = self.net(0, "swept", "--freeze", "all-but-head", "--ema", "0.9999", "--batch", "999",
                            "--end-with", "lock")
            self.assertNotIn("warning", done.stderr)
        self.foreign(change=lambda tensors: tensors.pop("body.weight"))
        words = ["--weights", "foreign.safetensors", "--partial"]
        self.net(0, "part", *words, "--freeze", "stem,body", says=["lacks arrays of body, frozen all the same", noise])
        self.assertNotIn(noise, self.net(0, "part", *words, "--freeze", "stem,norm").stderr)

    def test_moving_statistics_that_had_no_time_are_told(self):
        says = "3 steps of this training 97 % of its moving statistics are still the first ones"
        self.net(0, "run", says=[says])
        for words in (["--weights", "run/weights.safetensors"], ["--epochs", "90"]):
            self.assertNotIn("still the first ones", self.net(0, "next", *words).stderr)

    def test_eval_tells_the_penalty_apart(self):
        self.write("net.json", NET | {"layers": [layer | ({"l2": 0.01} if layer["type"] == "dense" else {})
                                                 for layer in NET["layers"]]})
        self.net(0, "run", says=["Loss: with the model's L2 penalty of kernels that learn, up to 0.01 times"])
        files = [f"data/{name}/{i}.bmp" for name in ("ant", "bee") for i in range(12)]
        answers = json.loads(self.expect(0, "predict", "--weights", "run", "--json", "-", *files).stdout)
        entropy = [-math.log(p["probabilities"][p["file"].split("/")[1]]) for p in answers["predictions"]]
        words = ["eval", "--weights", "run", "--data", "data", "--validation-split", "0", "--threads", "1"]
        result = json.loads(self.expect(0, *words, "--json", "-").stdout)
        self.assertGreater(result["penalty"], 0.01)
        self.assertAlmostEqual(result["loss"], sum(entropy) / len(entropy), places=5)
        done = self.expect(0, *words)
        self.assertRegex(done.stdout, rf"- loss: {sum(entropy) / len(entropy):.4f} - accuracy: \S+ - L2 penalty of "
                                      rf"all weights, not in the loss: {result['penalty']:.4f}\n")

    def test_another_way_to_resize_is_warned_of(self):
        self.net(0, "run", "--resize", "nearest")
        words, says = ["--weights", "run/weights.safetensors"], "learnt from images resized by nearest; here it is "
        self.net(0, "other", *words, says=[says + "bilinear (--resize and --fit say how)"])
        self.net(0, "other", *words, "--resize", "nearest", "--fit", "crop", says=[says + "nearest, fit crop"])
        self.assertNotIn("learnt from", self.net(0, "other", *words, "--resize", "nearest").stderr)
        self.expect(0, "data", "pack", "data", "area.ctpack", "--image-size", "16", "--resize", "area")
        self.net(0, "other", *words, data="area.ctpack", says=[says + "area (the packed file's form"])
        self.net(0, "made", "--resize", "nearest", data="synthetic:16")
        self.assertNotIn("learnt from images", self.net(0, "other", "--weights", "made").stderr)

    def test_a_frozen_step_is_measured(self):
        words = ["bench", "step", "--model", "net.json", "--data", "data", "--threads", "1", "--repeat", "2", "--json",
                 "-"]
        whole, frozen, none = (json.loads(self.expect(0, *words, *more).stdout) for more in
                               ([], ["--freeze", "all-but-head"],
                                ["--freeze", "all-but-head", "--augment", "crop:2"]))
        ratio = [b["gflops"] / b["images_per_second"]["median"] for b in (whole, frozen)]
        self.assertLess(ratio[1], 0.6 * ratio[0])  # a third of the work, and the head's
        layers = {layer["name"]: layer for layer in frozen["layers"]}
        self.assertGreater(layers["body"]["forward_seconds"], 0)
        self.assertEqual(layers["body"]["backward_weights_seconds"], 0)
        self.assertEqual([b.get("features_kept") is not None for b in (whole, frozen, none)], [False, True, False])
        self.expect(0, *words[:-2], "--freeze", "all-but-head", says=["where what they make of all images"])
        # A reproducible step keeps none, so those that it is compared with do not either.
        compared = self.expect(0, *words[:-2], "--freeze", "all-but-head", "--reproducible", says=["reproducible: "])
        self.assertNotIn("Features: ", compared.stderr)
        self.expect(2, *words, "--partial", says=["--partial needs --weights"])
        self.expect(2, *words, "--freeze", "nothing", says=["--freeze nothing"])

    def test_sweeps_hand_fine_tuning_on(self):
        self.net(0, "run")
        self.expect(0, "sweep", "--plan-only", "--model", "net.json", "--data", "data", "--np", "1", "--weights",
                    "run", "--freeze", "all-but-head", "--partial", "--out", "s")
        plan = self.text_of("s/plan.txt")
        for word in ("--freeze all-but-head", "--partial", "--weights run"):
            self.assertIn(word, plan)
        self.expect(2, "sweep", "--plan-only", "--np", "1", "--partial", says=["--partial needs --weights"])

    def test_features_are_kept(self):
        """Losses are those of a training that computes all layers in each pass, flips and a last batch included."""
        self.net(0, "run")
        words = ["--weights", "run/weights.safetensors", "--freeze", "until=body_norm", "--epochs", "4", "--batch", "8",
                 "--seed", "3"]
        for augment in ("none", "flip"):
            with self.subTest(augment):
                self.net(0, "kept", *words, "--augment", augment, says=["Features: what the frozen layers up to",
                                                                        "less of the forward pass"])
                done = self.net(0, "anew", *words, "--augment", augment, "--reproducible")
                self.assertNotIn("Features:", done.stdout + done.stderr)
                taken, images = ([m.get(f, 0) for m in self.metrics("kept", "epoch")]
                                 for f in ("from_features", "images"))
                if augment == "none":  # the first epoch goes through the network, later ones do not
                    self.assertEqual(taken, [0, *images[1:]])
                else:  # each image has two views
                    self.assertTrue(all(0 <= t <= n for t, n in zip(taken, images, strict=True)), taken)
                    self.assertGreaterEqual(sum(taken), sum(images) - 2 * images[0])
                self.assertFalse(any("from_features" in m for m in self.metrics("anew", "epoch")))
                for kind in ("step", "epoch"):
                    for a, b in zip(self.losses("kept", kind), self.losses("anew", kind), strict=True):
                        self.assertAlmostEqual(a, b, delta=1e-5)
                kept, anew = (self.metrics(run, "epoch")[-1]["val_loss"] for run in ("kept", "anew"))
                self.assertAlmostEqual(kept, anew, delta=1e-5)
        done = self.net(0, "drawn", *words, "--augment", "crop:2")
        self.assertNotIn("Features:", done.stdout + done.stderr)

    def test_a_norm_that_learns_behind_kept_features_sees_all_images(self):
        """The cut is between a convolution and its normalization, and flips make batches that are known in part."""
        self.net(0, "run")
        words = ["--weights", "run/weights.safetensors", "--freeze", "until=body", "--augment", "flip", "--epochs", "4",
                 "--batch", "8", "--seed", "3"]
        self.net(0, "kept", *words, says=["Features: what the frozen layers up to body"])
        done = self.net(0, "plain", *words, "--backend", "reference")
        self.assertNotIn("Features:", done.stdout + done.stderr)
        for a, b in zip(self.losses("kept"), self.losses("plain"), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-4)

    @needs_mpi
    def test_ranks_learn_alike(self):
        self.net(0, "run")
        words = ["--weights", "run/weights.safetensors", "--freeze", "until=body_norm", "--backbone-lr", "0.01",
                 "--epochs", "3"]
        for kind in ([], ["--reproducible"]):
            with self.subTest(kind):
                self.net(0, "one", *words, *kind)
                self.net(0, "two", *words, *kind, ranks=2)
                if kind:
                    self.assertEqual(self.tensors_of("one"), self.tensors_of("two"))
                for a, b in zip(self.losses("one"), self.losses("two"), strict=True):
                    self.assertAlmostEqual(a, b, delta=1e-5)

    def test_a_folder_of_files(self):
        os.makedirs(self.path("files"))
        for name in ("b.safetensors", "a.keras", "c.pth"):
            self.write(self.path("files", name), "")
        self.expect(65, "eval", "--data", "data", "--weights", "files",
                    says=["holds a.keras, b.safetensors, c.pth: name one of them, --weights files/a.keras"])

    def test_forms_of_others_are_named(self):
        """Folders, and names of several files, too."""
        os.makedirs(self.path("saved", "variables"))
        os.makedirs(self.path("checkpoints"))
        for name in ("saved/saved_model.pb", "checkpoints/m.ckpt.index", "checkpoints/m.ckpt.data-00000-of-00001"):
            self.write(name, b"\x08\x01\x12\x00")
        for name, says in (("saved/", "this is TensorFlow's SavedModel"),
                           ("checkpoints/m.ckpt", "this is a checkpoint of TensorFlow")):
            with self.subTest(name):
                for words in (["--model", "net.json", "--data", "data", "--dry-run"], ["eval", "--data", "data"]):
                    done = self.expect(65, *words, "--weights", name, says=["save"])
                    self.assertEqual(done.stderr.count(f"--weights {name.rstrip('/')}: {says}"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
