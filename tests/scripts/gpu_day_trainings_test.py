"""What a day's trainings and benchmarks ask for and make of the answers, with answers in the place of the program."""
import json
import os
import unittest
from unittest import mock

from gpu_day_folder import Folder
import benchmark_steps
import processes
import results
import training_steps


class Program:
    """Writes down its words, and answers as `answer` does: lines of metrics by words."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def __call__(self, *words, ranks=0, **_):
        self.asked.append((words, ranks))
        options = dict(zip(words, words[1:]))
        if "--out" in options:
            os.makedirs(options["--out"])
            with open(os.path.join(options["--out"], "metrics.jsonl"), "w") as file:
                file.writelines(json.dumps(line) + "\n" for line in self.answer(words))
        else:
            with open(options["--json"], "w") as file:
                json.dump(self.answer(words), file)
        return processes.Done(0, "", 1.0, False)


class Graphs(Folder):
    def compared(self, hashes):
        day = self.day()
        day.cputrain = Program(lambda words: [{"type": "summary", "weights_hash": hashes["--no-graph" in words]}])
        with mock.patch.object(training_steps, "curve", lambda day: {"words": ["--data", "x"], "steps": 24}):
            return day, training_steps.compare_graphs(day)

    def test_two_staged_ranks_with_and_without(self):
        day, said = self.compared(["abc", "abc"])
        self.assertIn("hash abc with graphs and without", said)
        (first, ranks), (second, others) = day.cputrain.asked
        self.assertEqual((ranks, others), (2, 2))
        self.assertEqual([word for word in second if word not in first and "graphs-" not in word], ["--no-graph"])
        self.assertEqual(first[first.index("--allreduce") + 1], "staged")

    def test_other_weights_fail(self):
        with self.assertRaisesRegex(results.Failed, r"with graphs \(abc\), without \(abd\)"):
            self.compared(["abc", "abd"])


class Cifar(Folder):
    ABOUT = {"model": "resnet50v2", "image_size": 128, "classes": 10, "train": 4000, "val": 1000,
             "words": ["--batch", "64"], "cpu": [2.25, 1.25]}

    def learned(self, *losses):
        day = self.day(emulated=False)
        day.cputrain = Program(lambda words: [{"type": "epoch", "loss": loss, "val_accuracy": 0.25,
                                               "images_per_second": 9000} for loss in losses])
        with mock.patch.object(day.bundle, "read_json", lambda *_: self.ABOUT):
            return day, training_steps.learn_cifar(day)

    def test_it_learns(self):
        day, said = self.learned(2.4, 2.1, 1.9)
        self.assertIn("fell from 2.400 to 1.900 in 3 epochs of 4,000 images, a CPU's from 2.250 to 1.250; 25.0 % of "
                      "1,000 others are right", said)
        self.assertEqual(day.results.figures[0]["measured"], 9000)
        self.assertEqual(day.cputrain.asked[0][0][1:3], ("--data", "cifar10:" + self.path("pack", "cifar10")))

    def test_it_does_not_learn(self):
        for losses in ((2.2, 2.25), (3.0, 2.31), (2.2, float("nan"))):
            with self.subTest(losses=losses):
                self.setUp()
                with self.assertRaisesRegex(results.Failed, "guessing has 2.303"):
                    self.learned(*losses)

    def test_without_images_it_is_skipped(self):
        with self.assertRaisesRegex(results.Skipped, "no images of CIFAR-10"):
            training_steps.learn_cifar(self.day(emulated=False))


class Benchmarks(Folder):
    PREDICTED = {"predictions": [
        {"gpu": "H100", "model": model, "image": [size, size], "precision": "bf16", "batch": batch, "layers": [],
         "images_per_second": rate} for model, size, batch, rate in (
             ("dogcat", 256, 256, 30000.0), ("resnet50v2", 224, 128, 7000.0), ("resnet50v2", 128, 128, 17000.0))]}

    def measured_by(self, step, quick=False):
        day = self.day(emulated=False, quick=quick)
        day.device, day.predictions = "NVIDIA H100", self.PREDICTED
        day.results.head.update(device=day.device, date="2026-12-01", packed={"program": "cputrain"})
        day.cputrain = Program(lambda words: {"images_per_second": {"median": 10000.0}})
        step(day)
        kept = self.json_of("benchmarks.json")
        return [dict(zip(words, words[1:])) for words, _ in day.cputrain.asked], day.results.figures, kept

    def test_steps_lie_beside_predictions(self):
        asked, figures, kept = self.measured_by(benchmark_steps.bench_step("bf16"))
        self.assertEqual([(words["--batch"], words["--data-on-device"]) for words in asked],
                         [("256", "on"), ("128", "on"), ("512", "on"), ("1024", "on"), ("32", "on"), ("256", "off")])
        predicted = {figure["what"]: figure["predicted"] for figure in figures}
        self.assertEqual(predicted["dogcat bf16, batch 256"], 30000)
        self.assertIn("dogcat bf16, batch 256, images from the host", predicted)
        self.assertEqual(len(kept), len(asked), "each has a name of its own")

    def test_a_resnet_at_both_sizes(self):
        asked, figures, kept = self.measured_by(benchmark_steps.bench_resnet("bf16"))
        self.assertEqual([(words["--model"], words["--image-size"], words["--precision"], words["--classes"])
                          for words in asked],
                         [("resnet50v2", "224", "bf16", "1000"), ("resnet50v2", "128", "bf16", "1000")])
        self.assertEqual([(figure["what"], figure["predicted"]) for figure in figures],
                         [("resnet50v2 224x224 bf16, batch 128", 7000), ("resnet50v2 128x128 bf16, batch 128", 17000)])
        self.assertEqual(len(kept), 2)


if __name__ == "__main__":
    unittest.main()
