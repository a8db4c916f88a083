"""TensorBoard's files, training.csv and history.json tell the same as metrics.jsonl."""
import csv
import glob
import json
import os
import struct
import unittest

from formats import read_events
from program import ProgramTest


def as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Logs(ProgramTest):
    def scalars(self, part):
        files = glob.glob(self.path("run", part, "events.out.tfevents.*"))
        self.assertEqual(len(files), 1)
        tags = {}
        for step, tag, value in read_events(files[0]):
            tags.setdefault(tag, []).append((step, value))
        return tags

    def expected(self, kind, key, first=0):
        """(number of the epoch from 0 or of the step from 1, figure as float32)"""
        lines = self.metrics("run", kind)
        return [(line[kind] - first, as_float32(line[key])) for line in lines if key in line]

    def test_every_log_has_the_same_figures(self):
        self.train("run", "--epochs", "3")
        train, validation = self.scalars("train"), self.scalars("validation")
        for tag, key in (("epoch_loss", "loss"), ("epoch_accuracy", "accuracy"),
                         ("epoch_learning_rate", "lr")):
            self.assertEqual(train[tag], self.expected("epoch", key, 1))
        for key in ("loss", "accuracy"):
            self.assertEqual(validation["epoch_" + key], self.expected("epoch", "val_" + key, 1))
            self.assertEqual(train["batch_" + key], self.expected("step", key))
            by_step = [(3 * n + 3, v) for n, v in self.expected("epoch", "val_" + key, 1)]
            self.assertEqual(validation[f"evaluation_{key}_vs_iterations"], by_step)

        history = self.json_of("run/history.json")
        text = self.text_of("run/training.csv")
        self.assertTrue(text.startswith("epoch,accuracy,loss,val_accuracy,val_loss,learning_rate\r\n0,"))
        rows = list(csv.DictReader(text.splitlines()))
        self.assertEqual([row["epoch"] for row in rows], ["0", "1", "2"])
        for key in ("loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"):
            figures = [line["lr" if key == "learning_rate" else key] for line in self.metrics("run", "epoch")]
            self.assertEqual(history[key], figures)
            self.assertEqual([float(row[key]) for row in rows], figures)

    def test_epochs_that_are_not_evaluated_and_averages(self):
        words = ["--epochs", "3", "--eval-every", "2", "--ema", "0.9"]
        self.train("run", *words)
        with open(self.path("run/training.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        history = self.json_of("run/history.json")
        validation, lines = self.scalars("validation"), self.metrics("run", "epoch")
        for key in ("val_loss", "val_accuracy", "ema_val_loss", "ema_val_accuracy"):
            self.assertEqual([key in line for line in lines], [False, True, True])
            figures = [line[key] for line in lines[1:]]
            self.assertEqual([row[key] for row in rows[:1]], ["NA"])
            self.assertEqual([float(row[key]) for row in rows[1:]], figures)
            self.assertEqual(history[key], figures)
            tag = "epoch_" + key.replace("val_", "")
            self.assertEqual(validation[tag], self.expected("epoch", key, 1))
            self.assertEqual(self.metrics("run", "summary")[-1][key], figures[-1])
        # A resume before the first evaluation has the columns of a training that was not stopped.
        self.train("parts", *words, "--steps", "2")
        self.train("parts", *words, "--resume", "auto")
        with open(self.path("run/training.csv")) as a, open(self.path("parts/training.csv")) as b:
            self.assertEqual(*([[cell == "NA" for cell in row.split(",")] for row in f] for f in (a, b)))
        with open(self.path("parts/history.json")) as f:
            self.assertEqual(*({key: len(values) for key, values in each.items()}
                               for each in (history, json.load(f))))

    def test_without_validation_there_is_none_to_see(self):
        self.train("run", "--epochs", "1", "--limit-val", "0", "--log-every", "0")
        self.assertEqual(sorted(self.scalars("train")),
                         ["epoch_accuracy", "epoch_learning_rate", "epoch_loss"])
        self.assertFalse(os.path.exists(self.path("run/validation")))
        self.assertTrue(self.text_of("run/training.csv").startswith("epoch,accuracy,loss,learning_rate\r\n"))

    def test_an_overwritten_run_leaves_no_curves_behind(self):
        self.train("run", "--steps", "1")
        self.train("run", "--steps", "2", "--limit-val", "0", "--overwrite")
        self.assertEqual(len(self.scalars("train")["batch_loss"]), 2)
        self.assertEqual(os.listdir(self.path("run/validation")), [])


if __name__ == "__main__":
    unittest.main()
