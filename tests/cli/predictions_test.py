"""Predictions and how they are counted: `eval` at any number of processes, and `predict`."""
import base64
import csv
import json
import os
import re
import unittest

from images import made_pixels, write_bmp
from page import Page
from program import ProgramTest, needs_mpi

COLOURS = ["black", "grey", "red", "green", "blue", "white, nearly", "pink"]


class Predictions(ProgramTest):
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

    def made_by_predict(self):
        """(class, prediction, rank of the class among the probabilities) of every image, by `predict`."""
        done = self.expect(0, "predict", "--weights", "run/weights.safetensors", "--json", "-",
                           "--no-winograd", "--threads", "1", "data")
        predictions = []
        for p in json.loads(done.stdout)["predictions"]:
            truth = os.path.basename(os.path.dirname(p["file"]))
            probability = p["probabilities"][truth]
            predictions.append((truth, p["class"], sum(v > probability for v in p["probabilities"].values())))
        return predictions

    def test_eval_counts_what_predict_makes(self):
        self.train_classes()
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "data",
                           "--validation-split", "0", "--confusion", "c.csv", "--threads", "1",
                           "--no-winograd", "--json", "r.json", says=["    recall  precision", " - top-5 accuracy: "])
        result = self.json_of("r.json")
        predictions, names = self.made_by_predict(), sorted(COLOURS)
        self.assertEqual(len(predictions), result["images"], done.stdout)
        self.assertEqual(result["accuracy"], sum(t == a for t, a, _ in predictions) / len(predictions))
        self.assertEqual(result["top_5_accuracy"], sum(r < 5 for *_, r in predictions) / len(predictions))
        matrix = [[sum((t, a) == (row, column) for t, a, _ in predictions) for column in names]
                  for row in names]
        self.assertEqual(result["confusion"], matrix)
        for i, (name, c) in enumerate(zip(names, result["classes"])):
            predicted = sum(row[i] for row in matrix)
            self.assertEqual(c, {"name": name, "images": sum(matrix[i]), "answers": predicted,
                                 "accuracy": matrix[i][i] / sum(matrix[i]),
                                 "precision": matrix[i][i] / predicted if predicted else None,
                                 "f1": 2 * matrix[i][i] / (sum(matrix[i]) + predicted)})
        self.assertAlmostEqual(result["macro_f1"], sum(c["f1"] for c in result["classes"]) / len(names))
        with open(self.path("c.csv"), newline="") as f:
            header, *rows = csv.reader(f)
        self.assertEqual(header[1:], names)
        self.assertEqual([[row[0], *map(int, row[1:])] for row in rows],
                         [[name, *counts] for name, counts in zip(names, matrix)])

    def test_the_page_shows_the_surest_errors(self):
        self.train_classes()
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "data", "--validation-split",
                           "0", "--page", "p.html", "--threads", "1", "--no-winograd", "--json", "r.json")
        text = self.text_of("p.html")
        page = Page(text)  # elements close, no attribute runs a script
        result = self.json_of("r.json")
        names = sorted(COLOURS)
        self.assertIn(f'<p class="figure">{result["accuracy"]:.4f}</p>', text)
        rows = {row[0]: row for row in page.rows if len(row) == len(names) + 1}
        shown = [[int(field.split()[0]) for field in rows[name][1:]] for name in names]
        self.assertEqual(shown, result["confusion"], done.stdout)
        # The wrong ones of predict's predictions, the surest first.
        done = self.expect(0, "predict", "--weights", "run/weights.safetensors", "--json", "-", "--no-winograd",
                           "--threads", "1", "data")
        wrong = []
        for p in json.loads(done.stdout)["predictions"]:
            truth = os.path.basename(os.path.dirname(p["file"]))
            if p["class"] != truth:
                wrong.append((-p["probabilities"][p["class"]], truth, p["class"], p["file"]))
        captions = re.findall(r"<figcaption>predicted (.*?) \((.*?)\), is (.*?) \(.*?\)<small>(.*?)</small>", text)
        self.assertEqual(len(captions), min(24, len(wrong)))
        for (answer, probability, truth, name), (minus, *expected) in zip(captions, sorted(wrong)):
            self.assertAlmostEqual(float(probability), -minus, places=3)
            self.assertIn((truth, answer), [(t, a) for m, t, a, _ in wrong if abs(m - minus) < 1e-3])
            self.assertTrue(os.path.exists(self.path("data", name)), name)  # its place in the data
        images = re.findall(r'<img src="data:image/png;base64,([A-Za-z0-9+/=]+)" width="64" height="64"', text)
        self.assertEqual(len(images), len(captions))
        for image in images:
            self.assertEqual(base64.b64decode(image, validate=True)[:8], b"\x89PNG\r\n\x1a\n")
        self.expect(2, "eval", "--weights", "run/weights.safetensors", "--page", "-", "--json", "-",
                    says=["--page - and --json -: standard output carries one of them"])
        self.expect(2, "eval", "--weights", "run", "--page", "a", "--json", "a", says=["one file carries one of them"])
        for words in (["predict", "--weights", "run", "b.jpg", "--csv"], ["eval", "--weights", "run", "--page"],
                      ["data", "check", "data", "--json"]):
            self.expect(2, *words, "a.JPG", says=["a.JPG: .jpg is the ending of an image"])

    def test_no_result_takes_the_place_of_a_file_of_a_run(self):
        self.train_classes()
        before = {name: self.bytes_of("run", name) for name in os.listdir(self.path("run"))
                  if os.path.isfile(self.path("run", name))}
        os.symlink("run/metrics.jsonl", self.path("link.json"))
        os.link(self.path("run/weights.safetensors"), self.path("same.safetensors"))
        checkpoint = next(name for name in os.listdir(self.path("run")) if name.startswith("ckpt-"))
        evaluates, exports = ["eval", "--weights", "run"], ["export", "--weights", "run"]
        for *words, flag, name in (
                (*evaluates, "--confusion", "run/metrics.jsonl"), (*evaluates, "--page", "run/environment.json"),
                (*evaluates, "--json", "run/../run/weights.safetensors"), (*evaluates, "--json", "link.json"),
                (*evaluates, "--json", "run/profile.json"), (*evaluates, "--json", "run/.lock"),
                (*evaluates, "--json", f"run/{checkpoint}/state.json"),
                ("predict", "--weights", "run", "data", "--csv", "run/training.csv"),
                ("data", "info", "data", "--json", "run/config.json"),
                (*exports, "--safetensors", "run/best.safetensors"), (*exports, "--model-file", "run/history.json")):
            self.expect(2, *words, flag, name, says=[f"{flag} {name}: a run keeps a file of its own under this name"])
        for words in (evaluates + ["--json"], exports + ["--safetensors"]):
            self.expect(2, *words[:1], "--weights", "same.safetensors", words[-1], "run/../same.safetensors",
                        says=["this file holds the weights"])
        self.assertEqual(before, {name: self.bytes_of("run", name) for name in before})
        os.makedirs(self.path("elsewhere"))  # no run
        self.expect(0, *evaluates, "--json", "elsewhere/history.json")
        self.expect(0, *evaluates, "--json", "run/eval.json")

    def test_training_and_eval_tell_the_same(self):
        self.train_classes()
        epoch = self.metrics("run", "epoch")[-1]
        result = self.evaluate("--threads", "1")
        self.assertAlmostEqual(result["loss"], epoch["val_loss"], places=5)
        self.assertEqual(result["accuracy"], epoch["val_accuracy"])
        self.assertEqual(result["top_5_accuracy"], epoch["val_top_5_accuracy"])
        history = self.json_of("run/history.json")
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
        self.write("data/red/notes.txt", "no image by its name")
        self.write("data/red/broken.jpg", "no image")
        os.symlink("nowhere.jpg", self.path("data/red/link.jpg"))
        self.write("data/red/drawing.svg", "<svg/>")
        passed = "folder data/red: 3 files are passed over (SVG 1, broken link 1, text 1)"
        done = self.expect(65, "predict", "--weights", "run/weights.safetensors", "--top", "3",
                           "data/red", "data/blue/0.bmp", says=["broken.jpg", passed])
        lines = done.stdout.splitlines()
        self.assertEqual([line.split(":")[0] for line in lines],
                         [f"data/red/{i}.bmp" for i in range(len(lines) - 1)] + ["data/blue/0.bmp"])
        for line in lines:
            shares = [float(part.split(" ")[0]) for part in line.split("(")[1:]]
            self.assertEqual(len(shares), 3)
            self.assertEqual(shares, sorted(shares, reverse=True))
        os.remove(self.path("data/red/broken.jpg"))
        self.write("data/red/.hidden.jpg", "x")
        self.expect(0, "predict", "--weights", "run/weights.safetensors", "--csv", "p.csv", "--json", "p.json", "data/red",
                    says=[f"{len(lines) - 1} images, 3 files passed over:", passed])
        with open(self.path("p.csv"), newline="") as f:
            rows = {row["file"]: row for row in csv.DictReader(f)}
        named = sorted(os.path.join("data/red", name) for name in os.listdir(self.path("data/red")) if name[0] != ".")
        self.assertEqual(list(rows), named)
        for name in ("drawing.svg", "link.jpg", "notes.txt"):
            self.assertEqual(set(rows["data/red/" + name].values()), {"data/red/" + name, ""})
        errors = {p["file"]: p["error"] for p in self.json_of("p.json")["predictions"] if "error" in p}
        self.assertEqual(errors, {"data/red/drawing.svg": "passed over (SVG)", "data/red/link.jpg":
                                  "passed over (broken link)", "data/red/notes.txt": "passed over (text)"})
        os.mkdir(self.path("empty"))
        self.expect(65, "predict", "--weights", "run/weights.safetensors", "empty", says=["empty"])

    def test_a_file_of_predictions_is_told_of_in_few_lines(self):
        self.train_classes()
        self.write("data/red/broken.jpg", "no image")
        weights = ["predict", "--weights", "run/weights.safetensors"]
        printed = self.expect(65, *weights, "data").stdout.splitlines()
        answers = [line.split(": ")[1].split(" (")[0] for line in printed]
        for words, files in ((["--csv", "p.csv"], ["p.csv"]), (["--json", "p.json"], ["p.json"]),
                             (["--csv", "p.csv", "--json", "p.json"], ["p.csv", "p.json"])):
            with self.subTest(words):
                done = self.expect(65, *weights, *words, "data", says=["broken.jpg"])
                head, *lines = done.stdout.splitlines()
                self.assertEqual(head, f"{len(printed) + 1} images, 1 without a prediction (named on standard error):")
                wrote = lines[-len(files):]
                self.assertEqual(wrote, [f"Wrote {file}" for file in files])
                rows = [line.strip().rsplit(None, 1) for line in lines[:-len(files)]]
                counts = {name: int(count) for name, count in rows}
                self.assertEqual(counts, {name: answers.count(name) for name in counts})
                self.assertEqual(sum(counts.values()), len(printed))
        done = self.expect(65, *weights, "--csv", "-", "--json", "p.json", "data")
        self.assertNotIn("Wrote", done.stdout)
        done = self.expect(0, *weights, "--csv", "p.csv", "--top", "2", "data/blue", says=["--top 2 changes nothing"])

    def test_classes_called_as_columns_of_a_table_have_columns_of_their_own(self):
        self.make_classes(["class", "file"], 4)
        self.train("run", "--data", "data", "--batch", "4", "--steps", "2")
        self.expect(0, "predict", "--weights", "run", "--csv", "p.csv", "--json", "p.json", "data")
        told = self.json_of("p.json")["predictions"]
        with open(self.path("p.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(len(rows), len(told))
        for row, p in zip(rows, told):
            self.assertEqual((row["file"], row["class"]), (p["file"], p["class"]))
            for name in ("file", "class"):
                self.assertAlmostEqual(float(row[name + " (2)"]), p["probabilities"][name], places=6)

    def test_of_many_classes_those_that_were_predicted_are_told(self):
        self.make_classes(COLOURS, 4)
        self.train("run", "--data", "data", "--classes", "60", "--batch", "8", "--steps", "2")
        done = self.expect(0, "predict", "--weights", "run", "--csv", "p.csv", "data")
        with open(self.path("p.csv"), newline="") as f:
            answers = [row["class"] for row in csv.DictReader(f)]
        head, *rows, wrote = done.stdout.splitlines()
        self.assertEqual((head, wrote), (f"{len(answers)} images:", "Wrote p.csv"))
        told = [row.strip().rsplit(None, 1) for row in rows]
        self.assertEqual({name: int(count) for name, count in told}, {name: answers.count(name) for name in answers})
        counts = [int(count) for _, count in told]
        self.assertEqual(counts, sorted(counts, reverse=True))


if __name__ == "__main__":
    unittest.main()
