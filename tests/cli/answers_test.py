"""Answers and how they are counted: `eval` at any number of processes, `predict`, and weights of
another network as a start."""
import csv
import json
import os
import shutil
import struct
import unittest

from pictures import made_pixels, write_bmp
from program import SMALL, ProgramTest, needs_mpi

COLOURS = ["black", "grey", "red", "green", "blue", "white, nearly", "pink"]


class Answers(ProgramTest):
    def make_classes(self, classes, each, folder="data"):
        for label, name in enumerate(classes):
            os.makedirs(self.path(folder, name))
            for i in range(each + label % 3):  # classes of different sizes
                write_bmp(self.path(folder, name, f"{i}.bmp"), made_pixels(17 * label + i, 64))

    def evaluate(self, *words, **options):
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "data",
                           "--validation-split", "0.5", "--json", "-", *words, **options)
        return json.loads(done.stdout)

    def train_classes(self):
        self.make_classes(COLOURS, 4)
        self.train("run", "--data", "data", "--batch", "8", "--steps", "4", "--lr", "0.0003",
                   "--validation-split", "0.5")

    def answers_of_predict(self):
        """(class, answer, rank of the class among the answers) of every picture, by `predict`."""
        done = self.expect(0, "predict", "--weights", "run/weights.safetensors", "--json", "-",
                           "--no-winograd", "--threads", "1", "data")
        answers = []
        for p in json.loads(done.stdout)["predictions"]:
            truth = os.path.basename(os.path.dirname(p["file"]))
            probability = p["probabilities"][truth]
            answers.append((truth, p["class"], sum(v > probability for v in p["probabilities"].values())))
        return answers

    def test_eval_counts_what_predict_answers(self):
        self.train_classes()
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "data",
                           "--validation-split", "0", "--confusion", "c.csv", "--threads", "1",
                           "--no-winograd", "--json", "r.json", says=["precision", "Accuracy @ 5 = "])
        with open(self.path("r.json")) as f:
            result = json.load(f)
        answers, names = self.answers_of_predict(), sorted(COLOURS)
        self.assertEqual(len(answers), result["images"], done.stdout)
        self.assertEqual(result["accuracy"], sum(t == a for t, a, _ in answers) / len(answers))
        self.assertEqual(result["top_5_accuracy"], sum(r < 5 for *_, r in answers) / len(answers))
        matrix = [[sum((t, a) == (row, column) for t, a, _ in answers) for column in names]
                  for row in names]
        self.assertEqual(result["confusion"], matrix)
        for i, (name, c) in enumerate(zip(names, result["classes"])):
            answered = sum(row[i] for row in matrix)
            self.assertEqual(c, {"name": name, "images": sum(matrix[i]), "answers": answered,
                                 "accuracy": matrix[i][i] / sum(matrix[i]),
                                 "precision": matrix[i][i] / answered if answered else None})
        with open(self.path("c.csv"), newline="") as f:
            header, *rows = csv.reader(f)
        self.assertEqual(header[1:], names)
        self.assertEqual([[row[0], *map(int, row[1:])] for row in rows],
                         [[name, *counts] for name, counts in zip(names, matrix)])

    def test_training_and_eval_tell_the_same(self):
        self.train_classes()
        epoch = self.metrics("run", "epoch")[-1]
        result = self.evaluate("--threads", "1")
        self.assertAlmostEqual(result["loss"], epoch["val_loss"], places=5)
        self.assertEqual(result["accuracy"], epoch["val_accuracy"])
        self.assertEqual(result["top_5_accuracy"], epoch["val_top_5_accuracy"])
        with open(self.path("run/history.json")) as f:
            history = json.load(f)
        self.assertEqual(history["val_top_5_accuracy"][-1], epoch["val_top_5_accuracy"])
        self.assertEqual(history["top_5_accuracy"][-1], epoch["top_5_accuracy"])

    @needs_mpi
    def test_eval_is_exact_at_any_number_of_processes(self):
        self.train_classes()
        alone = self.evaluate("--threads", "1", "--no-winograd")
        loss = alone.pop("loss")
        for ranks in (2, 3, 5):
            shared = self.evaluate("--no-winograd", ranks=ranks, OMP_NUM_THREADS="1")
            self.assertAlmostEqual(shared.pop("loss"), loss, places=5)
            self.assertEqual(shared, alone)

    def test_predict_takes_folders_and_shows_the_most_probable(self):
        self.train_classes()
        with open(self.path("data/red/notes.txt"), "w") as f:
            f.write("no picture by its name")
        with open(self.path("data/red/broken.jpg"), "w") as f:
            f.write("no picture")
        done = self.expect(65, "predict", "--weights", "run/weights.safetensors", "--top", "3",
                           "data/red", "data/blue/0.bmp", says=["broken.jpg"])
        lines = done.stdout.splitlines()
        self.assertEqual([line.split(":")[0] for line in lines],
                         [f"data/red/{i}.bmp" for i in range(len(lines) - 1)] + ["data/blue/0.bmp"])
        for line in lines:
            shares = [float(part.split(" ")[0]) for part in line.split("(")[1:]]
            self.assertEqual(len(shares), 3)
            self.assertEqual(shares, sorted(shares, reverse=True))
        os.mkdir(self.path("empty"))
        self.expect(65, "predict", "--weights", "run/weights.safetensors", "empty", says=["empty"])


TINY = {"format": "cputrain model 1", "name": "tiny",
        "recipe": {"image_size": 16, "batch": 8, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.01},
        "layers": [{"type": "convolution", "filters": 4, "kernel": 3}, {"type": "relu"}, {"type": "global_average_pool"},
                   {"type": "dense", "units": "classes", "name": "head"}, {"type": "softmax"}]}


class TinyTest(ProgramTest):
    """Networks that train in no time, on folders of made pictures."""

    def setUp(self):
        super().setUp()
        with open(self.path("tiny.json"), "w") as f:
            json.dump(TINY, f)

    def make(self, folder, **classes):
        """A folder with so many pictures of each class; the same name, the same pictures."""
        for name, count in classes.items():
            os.makedirs(self.path(folder, name), exist_ok=True)
            for i in range(count):
                write_bmp(self.path(folder, name, f"{i}.bmp"), made_pixels(sum(name.encode()) + i, 20))

    def tiny(self, code, out, data, *words, says=(), **options):
        return self.expect(code, "--model", "tiny.json", "--data", data, "--threads", "1", "--out", out,
                           "--overwrite", *words, says=says, **options)

    def evaluate(self, data, *words, run="run", says=(), **options):
        done = self.expect(0, "eval", "--weights", f"{run}/weights.safetensors", "--data", data, "--threads",
                           "1", "--json", "-", *words, says=says, **options)
        return json.loads(done.stdout)

    def change_weights(self, run, change):
        """Writes the file anew after `change(metadata, {tensor: [floats]})`."""
        with open(self.path(run, "weights.safetensors"), "rb") as f:
            data = f.read()
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        metadata, tensors = header.pop("__metadata__"), {}
        for name, t in header.items():
            begin, end = t["data_offsets"]
            tensors[name] = list(struct.unpack(f"<{(end - begin) // 4}f", data[start + begin:start + end]))
        change(metadata, tensors)
        body = b""
        for name, values in tensors.items():
            header[name]["data_offsets"] = [len(body), len(body) + 4 * len(values)]
            body += struct.pack(f"<{len(values)}f", *values)
        text = json.dumps({"__metadata__": metadata, **header}).encode()
        text += b" " * (-len(text) % 8)
        with open(self.path(run, "weights.safetensors"), "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + body)


class EvaluatedParts(TinyTest):
    def test_which_images_are_looked_at(self):
        self.make("data", ant=10, bee=20, cow=10)
        self.tiny(0, "run", "data", "--validation-split", "0.25", "--seed", "3", "--limit-train", "12")
        epoch = self.metrics("run", "epoch")[-1]
        with self.subTest("the data of the training: what it kept"):
            kept = self.evaluate("data", says=["validation part", "training kept"])
            self.assertEqual((kept["part"], kept["images"]), ("validation", 10))
            self.assertEqual(kept["accuracy"], epoch["val_accuracy"])
            self.assertAlmostEqual(kept["loss"], epoch["val_loss"], places=5)
        with self.subTest("the same data somewhere else"):
            shutil.copytree(self.path("data"), self.path("moved"))
            self.assertEqual(self.evaluate("moved")["loss"], kept["loss"])
        with self.subTest("other data: all of it, whatever classes it has"):
            self.make("new", bee=3, ant=4)
            new = self.evaluate("new", says=["all of them", "training saw other data"])
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
            self.assertEqual(self.evaluate("data", "--validation-split", "0", says=["warning", "learnt from"])["images"], 40)
            self.evaluate("data", "--seed", "4", says=["warning", "learnt from"])
        with self.subTest("the same split as in training, asked for"):
            again = self.evaluate("data", "--validation-split", "0.25", "--seed", "3", says=["training kept it"])
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
        self.assertEqual(self.evaluate("data", says=["training kept"])["images"], 5)
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
            kept = self.evaluate("data", says=["training kept"])
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
            self.evaluate("second", run=run, says=["training kept"])
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
        self.assertEqual(self.evaluate("data", says=["what training saw is not known"])["images"], 4)
        for words in (("--seed", "5"), ("--validation-split", "0.5")):
            self.evaluate("data", *words, says=["warning", "as asked for, but what training saw is not known"])


class NotNumbers(TinyTest):
    """NaN and infinity in weights and answers."""

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
                           says=["1 of 4 parameter arrays hold NaN or infinity: head/bias", "loss is no number"])
        result = json.loads(done.stdout)
        self.assertIsNone(result["loss"])
        self.assertIsNone(result["accuracy"])
        self.assertEqual((result["correct"], result["not_numbers"]), (0, result["images"]))
        done = self.expect(65, "predict", "--weights", weights, "--json", "-", "data/ant/0.bmp", says=["hold NaN"])
        self.assertIn("not a number", json.loads(done.stdout)["predictions"][0]["error"])
        self.expect(0, "export", "--weights", weights, "--safetensors", "t.safetensors", "--export-layout", "torch",
                    says=["warning", "1 of 4 parameter arrays hold NaN or infinity: head/bias"])
        self.tiny(65, "again", "data", "--weights", weights, says=["head/bias", "no training can go on"])
        self.change_weights("run", self.spoil("head/bias", 0.0))
        # A ReLU turns what comes of it into zeros: answers are numbers, but mean nothing.
        self.change_weights("run", self.spoil("conv2d/kernel", float("nan")))
        done = self.expect(1, "eval", "--weights", weights, "--data", "data",
                           says=["conv2d/kernel", "loss is no number"])
        self.assertNotIn("accuracy:", done.stdout)
        self.assertNotIn("Accuracy @", done.stdout)
        self.expect(0, "predict", "--weights", weights, "data/ant/0.bmp", says=["warning", "conv2d/kernel"])
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


class NamesOfOtherOutputs(TinyTest):
    def test_are_refused(self):
        self.make("data", ant=4, bee=4, cow=4)
        self.tiny(0, "run", "data")
        for names in (["v", "w", "cow", "bee", "ant"], ["cow", "bee"], ["ant"]):
            def rename(metadata, _):
                metadata["classes"] = json.dumps(names)
            self.change_weights("run", rename)
            with self.subTest(names):
                says = [f"names {len(names)} classes for 3 outputs"]
                self.tiny(65, "next", "data", "--weights", "run/weights.safetensors", says=says)
                self.expect(65, "eval", "--weights", "run/weights.safetensors", "--data", "data", says=says)
                self.tiny(0, "next", "data", "--weights", "run/weights.safetensors", "--partial",
                          says=["4 of 4 parameter arrays"])


class OtherWeights(ProgramTest):
    def test_another_last_layer_starts_from_what_fits(self):
        self.train("two", "--steps", "1")
        words = [*SMALL, "--classes", "3", "--steps", "1", "--weights", "two/weights.safetensors"]
        self.expect(65, *words, "--out", "no", says=["dense_2/kernel is 256x1, not 256x3", "--partial"])
        self.expect(0, *words, "--out", "three", "--partial", "--lr", "0",
                    says=["12 of 14 parameter arrays", "dense_2/kernel is 256x1, not 256x3"])
        tensors = [self.tensors(run) for run in ("two", "three")]
        self.assertEqual(tensors[0]["conv2d/kernel"], tensors[1]["conv2d/kernel"])
        self.assertNotEqual(tensors[0]["dense_2/kernel"], tensors[1]["dense_2/kernel"])
        self.expect(2, *SMALL, "--partial", says=["--partial needs --weights"])

    def test_nothing_that_fits_ends_with_65(self):
        self.train("two", "--steps", "1")
        from_scratch = {"format": "cputrain model 1", "layers": [{"type": "flatten"}, {"type": "dense", "units": "classes", "name": "x"},
                                   {"type": "softmax"}]}
        with open(self.path("net.json"), "w") as f:
            json.dump(from_scratch, f)
        self.expect(65, *SMALL, "--model", "net.json", "--weights", "two/weights.safetensors", "--partial",
                    says=["nothing that fits", "x/kernel"])

    def test_frozen_layers_keep_their_weights(self):
        self.train("a", "--steps", "1")
        self.train("b", "--steps", "3", "--weights", "a/weights.safetensors", "--freeze", "conv2d*,dense")
        a, b = self.tensors("a"), self.tensors("b")
        changed = sorted(name for name in a if a[name] != b[name])
        self.assertEqual(changed, ["dense_1/bias", "dense_1/kernel", "dense_2/bias", "dense_2/kernel"])

    def test_a_pattern_that_means_nothing_ends_with_2(self):
        self.expect(2, *SMALL, "--freeze", "conv3d", says=["--freeze conv3d", "did you mean conv2d"])
        self.expect(2, *SMALL, "--freeze", "flatten", says=["--freeze flatten"])
        self.expect(2, *SMALL, "--freeze", "*", says=["--freeze *", "no layer to train"])

    def tensors(self, run):
        """Bytes of every tensor."""
        with open(self.path(run, "weights.safetensors"), "rb") as f:
            data = f.read()
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        header.pop("__metadata__")
        return {name: data[start + t["data_offsets"][0]:start + t["data_offsets"][1]]
                for name, t in header.items()}


if __name__ == "__main__":
    unittest.main()
