"""Weights of another network or of other classes as a start."""
import json
import os
import unittest

from formats import read_arrays
from program import SMALL, ProgramTest, needs_mpi
from tiny import TINY, TinyTest


class OtherClasses(TinyTest):
    """--weights of other class names than the data's."""

    def head(self, run):
        columns = {}

        def look(metadata, tensors):
            names = json.loads(metadata["classes"])
            for place, name in enumerate(names):
                columns[name] = tensors["head/kernel"][place::len(names)] + [tensors["head/bias"][place]]

        self.change_weights(run, look)
        return columns

    def go_on(self, data, *words, says=()):
        done = self.tiny(0, "next", data, "--weights", "run/weights.safetensors", "--lr", "0", *words, says=says)
        return self.head("next"), done.stderr

    def test_outputs_follow_their_names(self):
        self.make("data", ant=6, bee=6, cow=6)
        self.tiny(0, "run", "data", "--epochs", "3")
        first = self.head("run")
        same, text = self.go_on("data")
        self.assertEqual(same, first)
        self.assertNotIn("--weights", text)
        with self.subTest("another order"):
            def turn(metadata, tensors):
                metadata["classes"] = json.dumps(["cow", "ant", "bee"])
            self.change_weights("run", turn)
            turned = self.head("run")
            after, _ = self.go_on("data", says=["in another order (cow, ant, bee)", "by name"])
            self.assertEqual(after, turned)
        with self.subTest("a class renamed"):
            self.make("renamed", ant=6, cow=6, yak=6)
            after, _ = self.go_on("renamed", says=["know the classes cow, ant, bee; the data has ant, cow, yak",
                                                   "outputs of 2 classes", "yak with that of bee"])
            self.assertEqual(after, {"ant": turned["ant"], "cow": turned["cow"], "yak": turned["bee"]})
        with self.subTest("folders that are called as made-up names are"):
            self.make("numbers", **{"class 0": 6, "class 1": 6, "class 2": 6})
            self.go_on("numbers", says=["warning", "the data has class 0, class 1, class 2", "class 0 with that of"])
        with self.subTest("fewer classes"):
            self.make("fewer", bee=6, cow=6)
            self.tiny(65, "next", "fewer", "--weights", "run/weights.safetensors", says=["head/bias is 3, not 2"])
            after, _ = self.go_on("fewer", "--partial", says=["the outputs of 2 classes that both know"])
            self.assertEqual(after, {"bee": turned["bee"], "cow": turned["cow"]})


class HeadAlone(OtherClasses):
    """A network that is nothing but its last layer."""

    def setUp(self):
        super().setUp()
        self.write("tiny.json", TINY | {"layers": [{"type": "flatten"}, *TINY["layers"][-2:]]})

    def test_takes_the_outputs_of_classes_that_both_have(self):
        self.make("data", ant=6, bee=6, cow=6)
        self.tiny(0, "run", "data", "--epochs", "3")
        first = self.head("run")
        says = ["0 of 2 parameter arrays", "of head/kernel, head/bias the outputs of 2 classes that both know"]
        for name, classes in (("fewer", ["bee", "cow"]), ("more", ["ant", "cow", "dog", "yak"])):
            self.make(name, **{one: 6 for one in classes})
            with self.subTest(name):
                self.tiny(65, "next", name, "--weights", "run/weights.safetensors", says=["head/bias is 3, not "])
                self.tiny(0, "plan", name, "--weights", "run/weights.safetensors", "--partial", "--dry-run")
                after, _ = self.go_on(name, "--partial", says=says)
                both = {one: column for one, column in first.items() if one in classes}
                self.assertEqual({one: after[one] for one in both}, both)
                self.assertEqual(set(after), set(classes))
        with self.subTest("as many, of other names"):
            self.make("renamed", fox=6, hen=6, yak=6)
            after, _ = self.go_on("renamed", "--partial", says=["2 of 2 parameter arrays", "fox with that of ant"])
            self.assertEqual(sorted(after.values()), sorted(first.values()))

    def test_says_why_nothing_fits(self):
        self.make("data", ant=6, bee=6, cow=6)
        self.make("others", dog=6, yak=6)
        self.make("fewer", ant=6, bee=6)
        self.tiny(0, "run", "data")
        words = ["--weights", "run/weights.safetensors", "--partial"]
        nothing = "has nothing that fits the model: 2 of another shape (head/kernel is 768x3, not 768x2"
        for more in ([], ["--dry-run"]):
            self.tiny(65, "next", "others", *words, *more,
                      says=[nothing, "its classes are ant, bee, cow, and the data has none of them"])
        self.change_weights("run", lambda metadata, _: metadata.clear())
        for more in ([], ["--partial"]):
            self.tiny(65, "next", "fewer", *words[:2], *more,
                      says=[nothing, "it names no classes, so its outputs may be of any"])
        self.assertFalse(os.path.exists(self.path("next")))


class NamesOfOtherOutputs(TinyTest):
    def test_are_refused(self):
        self.make("data", ant=4, bee=4, cow=4)
        self.tiny(0, "run", "data")
        for names in (["v", "w", "cow", "bee", "ant"], ["cow", "bee"], ["ant"]):
            def rename(metadata, _):
                metadata["classes"] = json.dumps(names)
            self.change_weights("run", rename)
            with self.subTest(names):
                says = [f"names {len(names)} class{'es' if len(names) > 1 else ''} for 3 outputs"]
                self.tiny(65, "next", "data", "--weights", "run/weights.safetensors", says=says)
                self.expect(65, "eval", "--weights", "run/weights.safetensors", "--data", "data", says=says)
                self.tiny(0, "next", "data", "--weights", "run/weights.safetensors", "--partial",
                          says=["4 of 4 parameter arrays"])


class OtherWeights(ProgramTest):
    def test_another_last_layer_starts_from_what_fits(self):
        self.train("two", "--steps", "1")
        words = [*SMALL, "--classes", "3", "--steps", "1", "--weights", "two/weights.safetensors"]
        for more in (["--out", "no"], ["--dry-run"]):
            self.expect(65, *words, *more, says=["dense_2/kernel is 256x1, not 256x3", "--partial",
                                                 "its weights are those of dogcat at 64x64"])
        self.assertFalse(os.path.exists(self.path("no")))
        self.expect(0, *words, "--out", "three", "--partial", "--lr", "0",
                    says=["12 of 14 parameter arrays", "dense_2/kernel is 256x1, not 256x3"])
        tensors = [self.tensors(run) for run in ("two", "three")]
        self.assertEqual(tensors[0]["conv2d/kernel"], tensors[1]["conv2d/kernel"])
        self.assertNotEqual(tensors[0]["dense_2/kernel"], tensors[1]["dense_2/kernel"])
        self.expect(2, *SMALL, "--partial", says=["--partial needs --weights"])

    def test_a_model_that_is_not_named_is_that_of_the_weights(self):
        data = ["--data", "synthetic:24", "--threads", "1"]
        self.expect(0, *data, "--model", "nature7", "--image-size", "96", "--batch", "8", "--steps", "1", "--normalize",
                    "symmetric", "--augment", "none", "--out", "two")
        words = [*data, "--weights", "two", "--lr", "0", "--augment", "none", "--out", "next"]
        done = self.expect(0, *words, "--epochs", "1",
                           says=["training its model, nature7 at 96 pixels", "adam 0, seed 0", "Fine-tuning: "])
        self.assertNotIn("learnt from", done.stderr)
        self.assertEqual(self.tensors("two")["dense/kernel"], self.tensors("next")["dense/kernel"])
        recorded = {"model": "nature7", "image-size": 96, "normalize": "symmetric", "batch": 64, "optimizer": "adam",
                    "weights": self.path("two/best.safetensors")}
        self.assertEqual(recorded, {name: self.json_of("next", "config.json")[name] for name in recorded})
        self.assertNotIn("model", self.json_of("next/environment.json")["given"])
        with self.subTest("what is named goes before"):
            self.expect(65, *data, "--weights", "two", "--model", "dogcat", "--image-size", "96", "--out", "no",
                        says=["its weights are those of nature7 at 96x96"])
            self.expect(65, *data, "--weights", "two", "--image-size", "128", "--out", "no", says=["does not fit"])
        os.rename(self.path("two"), self.path("gone"))
        with self.subTest("the same command, once they are gone"):
            self.expect(0, *words, "--epochs", "2", "--resume", "auto", says=["--weights two is not there"])
        with self.subTest("resumed without them"):
            words = [*data, "--lr", "0", "--augment", "none", "--epochs", "3", "--out", "next", "--resume", "auto"]
            self.expect(0, *words, says=["The training began with the weights of two/", "adam 0, seed 0"])
            self.assertEqual(recorded, {name: self.json_of("next", "config.json")[name] for name in recorded})

    def test_a_run_that_began_with_weights_is_finished_without_their_name(self):
        data = ["--data", "synthetic:16", "--threads", "1", "--augment", "none"]
        self.expect(0, *data, "--model", "nature7", "--image-size", "96", "--batch", "8", "--steps", "1", "--out", "two")
        self.expect(0, *data, "--weights", "two", "--out", "ten")  # as many epochs as the recipe of fine-tuning says
        self.assertEqual(len(self.metrics("ten", "epoch")), 10)
        self.expect(2, *data, "--out", "ten", "--resume", "auto", says=["the training in ten is finished"])
        self.expect(0, *data, "--weights", "two", "--out", "ten", "--resume", "auto", says=["nothing is left to do"])
        self.assertEqual(len(self.metrics("ten", "epoch")), 10)

    @needs_mpi
    def test_all_ranks_take_the_model_of_the_weights(self):
        self.train("two", "--steps", "1")
        self.expect(0, "--data", "synthetic:24", "--threads", "1", "--batch", "8", "--steps", "1", "--weights", "two",
                    "--out", "next", ranks=3, says=["training its model, dogcat at 64 pixels"])

    def test_nothing_that_fits_ends_with_65(self):
        self.train("two", "--steps", "1")
        from_scratch = {"format": "cputrain model 1",
                        "layers": [{"type": "flatten"}, {"type": "dense", "units": "classes", "name": "x"},
                                   {"type": "softmax"}]}
        self.write("net.json", from_scratch)
        self.expect(65, *SMALL, "--model", "net.json", "--weights", "two/weights.safetensors", "--partial",
                    says=["nothing that fits", "x/kernel"])

    def test_frozen_layers_keep_their_weights(self):
        self.train("a", "--steps", "1")
        self.train("b", "--steps", "3", "--weights", "a/weights.safetensors", "--freeze", "conv2d*,dense")
        a, b = self.tensors("a"), self.tensors("b")
        changed = sorted(name for name in a if a[name] != b[name])
        self.assertEqual(changed, ["dense_1/bias", "dense_1/kernel", "dense_2/bias", "dense_2/kernel"])

    def tensors(self, run):
        return read_arrays(self.path(run, "weights.safetensors"))[1]


if __name__ == "__main__":
    unittest.main()
