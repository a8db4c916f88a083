"""What `eval` looks at, and predictions and weights that are NaN or infinite."""
import json
import os
import shutil
import unittest

from program import needs_mpi
from tiny import TinyTest


class EvaluatedParts(TinyTest):
    def test_which_images_are_looked_at(self):
        self.make("data", ant=10, bee=20, cow=10)
        self.tiny(0, "run", "data", "--validation-split", "0.25", "--seed", "3", "--limit-train", "12")
        epoch = self.metrics("run", "epoch")[-1]
        with self.subTest("the data of the training: what it kept"):
            kept = self.evaluate("data", says=["validation part", "held out from training"])
            self.assertEqual((kept["part"], kept["images"]), ("validation", 10))
            self.assertEqual(kept["accuracy"], epoch["val_accuracy"])
            self.assertAlmostEqual(kept["loss"], epoch["val_loss"], places=5)
        with self.subTest("the same data somewhere else"):
            shutil.copytree(self.path("data"), self.path("moved"))
            self.assertEqual(self.evaluate("moved")["loss"], kept["loss"])
        with self.subTest("other data: all of it, whatever classes it has"):
            self.make("new", others=1000, bee=3, ant=4)
            new = self.evaluate("new", says=["all of them", "training saw other files"])
            self.assertEqual((new["part"], new["images"]), ("all", 7))
            self.assertEqual([c["images"] for c in new["classes"]], [4, 3, 0])
            self.assertEqual(self.evaluate("new", "--limit-val", "4")["images"], 4)
            self.make("one", cow=5)
            self.assertEqual([c["images"] for c in self.evaluate("one")["classes"]], [0, 0, 5])
        with self.subTest("a class that the weights do not know"):
            self.make("unknown", bee=3, yak=3)
            self.expect(65, "eval", "--weights", "run/weights.safetensors", "--data", "unknown", says=["class yak,"])
        with self.subTest("what is asked for"):
            self.assertEqual(self.evaluate("new", "--validation-split", "0.5")["images"], 4)
            everything = self.evaluate("data", "--validation-split", "0", says=["warning", "learnt from"])
            self.assertEqual(everything["images"], 40)
            self.evaluate("data", "--seed", "4", says=["warning", "learnt from"])
        with self.subTest("the same split as in training, asked for"):
            again = self.evaluate("data", "--validation-split", "0.25", "--seed", "3", says=["held out from training"])
            self.assertEqual(again["loss"], kept["loss"])
        with self.subTest("why, where the split leaves nothing"):
            done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "new", "--threads", "1",
                               "--validation-split", "0", says=["all of them (as asked for)"])
            self.assertNotIn("warning", done.stderr)
        with self.subTest("the folder of the training after a file was added"):
            self.make("data", bee=21)
            changed = self.evaluate("data", says=["warning", "changed since training"])
            self.assertEqual(changed["part"], "validation")
            for words in (("--seed", "9"), ("--validation-split", "0.5"), ("--validation-split", "0")):
                self.evaluate("data", *words, says=["warning", "as asked for, but", "changed since training"])

    def test_parts_of_the_data_go_before_all(self):
        self.make("data/train", ant=8, bee=8)
        self.make("data/val", ant=3, bee=2)
        self.tiny(0, "run", "data")
        self.assertEqual(self.evaluate("data", says=["held out from training"])["images"], 5)
        self.make("other/train", ant=6, bee=6)
        self.make("other/val", bee=2)
        other = self.evaluate("other", says=["its 'val' folder"])
        self.assertEqual((other["part"], other["images"]), ("validation", 2))

    def test_a_test_part_goes_first(self):
        for part, ants in (("train", 8), ("val", 3), ("test", 4)):
            self.make(f"data/{part}", ant=ants, bee=2)
        self.tiny(0, "run", "data")
        tested = self.evaluate("data", says=["its 'test' folder"])
        self.assertEqual((tested["part"], tested["images"]), ("test", 6))
        self.assertEqual([c["images"] for c in tested["classes"]], [4, 2])

    def test_figures_beside_accuracy(self):
        """F1 by the matrix, and the area under the ROC curve by all pairs of an image of each class."""
        self.make("data", ant=14, bee=10)
        self.tiny(0, "run", "data", "--epochs", "2")
        words = ["--validation-split", "0"]
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "data", "--threads", "1", *words,
                           says=["F1", "Macro averages (n/a is 0): recall", "Area under the ROC curve (AUC): "])
        found = self.evaluate("data", *words, says=["learnt from"])
        matrix = found["confusion"]
        f1 = []
        for c, row in enumerate(matrix):
            all_of = sum(row) + sum(r[c] for r in matrix)
            f1.append(2 * row[c] / all_of if all_of else None)
        self.assertEqual([c["f1"] for c in found["classes"]], f1)
        self.assertAlmostEqual(found["macro_f1"], sum(f1) / 2)
        self.assertIn(f"F1 {found['macro_f1']:.4f}", done.stdout)
        scores = {}
        for name in "ant", "bee":
            self.expect(0, "predict", "--weights", "run/weights.safetensors", "--threads", "1", f"data/{name}", "--json",
                        name + ".json")
            scores[name] = [p["probabilities"]["bee"] for p in self.json_of(name + ".json")["predictions"]]
        pairs = [(b > a) + (b == a) / 2 for a in scores["ant"] for b in scores["bee"]]
        self.assertAlmostEqual(found["auc"], sum(pairs) / len(pairs), places=6)
        self.assertIn(f"(AUC): {found['auc']:.4f}", done.stdout)
        self.make("one", bee=5)  # a class without an image
        alone = self.evaluate("one")
        self.assertIsNone(alone["auc"])
        self.assertIsNone(alone["classes"][0]["accuracy"])
        self.assertNotIn("nan", json.dumps(alone).lower())

    def test_a_folder_without_images_asks_nothing_of_the_weights(self):
        self.make("data", ant=8, bee=8)
        self.tiny(0, "run", "data")
        self.make("new", ant=2, bee=1, unsorted=0)
        self.assertEqual(self.evaluate("new")["images"], 3)

    def test_turned_images_are_kept_alike(self):
        self.make("data", ant=8, bee=8)
        for expand in ("six", "six-leaky"):
            self.tiny(0, "run", "data", "--expand", expand, "--validation-split", "0.25")
            epoch = self.metrics("run", "epoch")[-1]
            kept = self.evaluate("data", says=["held out from training"])
            self.assertEqual(kept["images"], 24)
            self.assertEqual(kept["accuracy"], epoch["val_accuracy"])
            self.assertAlmostEqual(kept["loss"], epoch["val_loss"], places=5)
        self.make("new", ant=2, bee=1)
        self.assertEqual(self.evaluate("new")["images"], 3)

    def test_what_earlier_trainings_learnt_from_is_not_new(self):
        self.make("data", ant=10, bee=10)
        self.make("second", ant=6, bee=6)
        self.tiny(0, "run", "data")
        self.tiny(0, "next", "second", "--weights", "run/weights.safetensors")
        self.tiny(0, "last", "second", "--weights", "next/weights.safetensors")
        for run in ("next", "last"):
            self.evaluate("second", run=run, says=["held out from training"])
            old = self.evaluate("data", run=run, says=["warning", "an earlier training of these weights"])
            self.assertEqual(old["images"], 20)
            self.evaluate("data", "--seed", "5", run=run, says=["warning", "as asked for, but an earlier training"])
        done = self.tiny(0, "other", "data", "--weights", "run/weights.safetensors")
        self.assertNotIn("too good", done.stderr)
        for words in (("--seed", "1"), ("--validation-split", "0.5")):
            self.tiny(0, "other", "data", "--weights", "run/weights.safetensors", *words, says=["warning", "too good"])

    def test_weights_of_earlier_versions_and_of_all_images(self):
        self.make("data", ant=10, bee=10)
        self.tiny(0, "run", "data", "--validation-split", "0")
        self.assertEqual(self.evaluate("data", says=["warning", "learnt from them"])["images"], 20)

        def forget(metadata, _):
            for key in ("data", "data_place", "expand"):
                del metadata[key]
            metadata["validation_split"] = "0.2"

        self.change_weights("run", forget)
        self.assertEqual(self.evaluate("data", says=["the weights do not say what training saw"])["images"], 4)
        for words in (("--seed", "5"), ("--validation-split", "0.5")):
            self.evaluate("data", *words, says=["warning", "as asked for, but the weights do not say what training saw"])


class NotNumbers(TinyTest):
    """NaN and infinity in weights and predictions."""

    @staticmethod
    def spoil(name, value):
        def change(_, tensors):
            tensors[name][0] = value
        return change

    def test_weights_that_hold_them(self):
        self.make("data", ant=10, bee=10)
        self.tiny(0, "run", "data")
        weights = "run/weights.safetensors"
        self.change_weights("run", self.spoil("head/bias", float("nan")))
        done = self.expect(1, "eval", "--weights", weights, "--data", "data", "--json", "-",
                           says=["1 of 4 parameter arrays hold NaN or infinity: head/bias", "loss is NaN or infinite"])
        result = json.loads(done.stdout)
        self.assertIsNone(result["loss"])
        self.assertIsNone(result["accuracy"])
        self.assertEqual((result["correct"], result["not_numbers"]), (0, result["images"]))
        done = self.expect(65, "predict", "--weights", weights, "--json", "-", "data/ant/0.bmp", says=["hold NaN"])
        self.assertIn("prediction is NaN", json.loads(done.stdout)["predictions"][0]["error"])
        self.expect(0, "export", "--weights", weights, "--safetensors", "t.safetensors", "--export-layout", "torch",
                    says=["warning", "1 of 4 parameter arrays hold NaN or infinity: head/bias"])
        self.tiny(65, "again", "data", "--weights", weights, says=["head/bias", "no training can go on"])
        self.change_weights("run", self.spoil("head/bias", 0.0))
        # A ReLU of AVX2 and AVX-512 turns what comes of it into zeros: predictions are numbers, but mean nothing.
        # One of SSE4.1 lets NaN pass.
        self.change_weights("run", self.spoil("conv2d/kernel", float("nan")))
        done = self.expect(1, "eval", "--weights", weights, "--data", "data",
                           says=["conv2d/kernel", "loss is NaN or infinite"])
        self.assertNotIn("accuracy:", done.stdout)
        done = self.run_program("predict", "--weights", weights, "data/ant/0.bmp")
        self.assertIn("hold NaN or infinity: conv2d/kernel", done.stderr)
        self.assertEqual(done.returncode, 65 if "prediction is NaN" in done.stderr else 0, done.stderr)
        self.expect(0, "export", "--weights", weights, "--safetensors", "k.safetensors", says=["conv2d/kernel"])
        self.tiny(65, "again", "data", "--weights", weights, "--partial", says=["conv2d/kernel"])

    def test_good_weights_are_exported_without_a_word(self):
        self.make("data", ant=4, bee=4)
        self.tiny(0, "run", "data")
        done = self.expect(0, "export", "--weights", "run/weights.safetensors", "--safetensors", "k.safetensors")
        self.assertNotIn("warning", done.stderr)

    def make_brink(self):
        """Weights whose loss is a number, with gradients that a rate of 1e6 makes infinite. Returns words for
        a training of one step from there."""
        self.make("data", ant=1, bee=19)
        self.tiny(0, "brink", "data", "--steps", "1", "--limit-val", "0")

        def change(_, tensors):
            tensors["head/kernel"] = [(-1) ** i * 1e33 for i in range(8)]  # whatever it sees is an ant

        self.change_weights("brink", change)
        return ["--weights", "brink/weights.safetensors", "--lr", "1e6", "--batch", "20", "--validation-split", "0.5"]

    def test_a_last_step_into_nothing_leaves_no_weights(self):
        step = self.make_brink()
        for words, says in (((), "Invalid validation loss"), (("--limit-val", "0"), "Invalid weights")):
            with self.subTest(words):
                self.tiny(1, "run", "data", *step, *words, says=[says])
                self.assertIsNotNone(self.metrics("run", "epoch")[0]["loss"])
                self.assertFalse(os.path.exists(self.path("run/weights.safetensors")))
                self.assertEqual(self.metrics("run", "summary"), [])

    @needs_mpi
    def test_all_ranks_end_and_reach_nothing(self):
        self.tiny(1, "run", "data", *self.make_brink(), "--target-accuracy", "0.1", ranks=3,
                  says=["Invalid validation loss"])
        epoch = self.metrics("run", "epoch")[0]
        self.assertIsNone(epoch["val_loss"])
        self.assertIsNone(epoch["val_accuracy"])
        self.assertEqual(self.metrics("run", "summary"), [])


if __name__ == "__main__":
    unittest.main()
