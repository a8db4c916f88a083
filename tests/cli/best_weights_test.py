"""The best weights: which they are, in best.safetensors and in weights.safetensors, also of trainings that go on."""
import json
import os
import shutil
import unittest

from resuming import STEPS, ResumeTest


class BestWeights(ResumeTest):
    def test_the_best_weights(self):
        words = ["--epochs", "6", "--lr", "0.05", "--seed", "5"]
        self.go(0, "run", *words, says=["Best weights: run/best.safetensors"])
        losses = [m["val_loss"] for m in self.metrics("run", "epoch")]
        best = self.expect(0, "eval", "--weights", "run/best.safetensors", "--data", "data", "--json", "-",
                           "--backend", "reference")
        self.assertAlmostEqual(json.loads(best.stdout)["loss"], min(losses), delta=1e-6)
        summary = self.metrics("run", "summary")[0]
        self.assertEqual((summary["best_epoch"], summary["best_loss"]), (losses.index(min(losses)) + 1, min(losses)))
        # Those of the checkpoint, where a later epoch's were written before the training died.
        self.go(0, "half", "--steps", str(2 * STEPS), *words[2:])
        then = self.bytes_of("half/best.safetensors")
        shutil.copy(self.path("run/weights.safetensors"), self.path("half/best.safetensors"))  # into the same file
        self.go(0, "half", "--steps", str(2 * STEPS + 1), *words[2:], "--resume", "auto")
        self.assertEqual(self.bytes_of("half/best.safetensors"), then)
        self.go(0, "half", *words, "--resume", "auto")
        self.assertEqual(self.bytes_of("half/best.safetensors"), self.bytes_of("run/best.safetensors"))

    def best_is_of(self, run, first=0):
        """best.safetensors is of the epoch with the lowest loss, of those from `first` on."""
        losses = [m["val_loss"] for m in self.metrics(run, "epoch")]
        best = self.expect(0, "eval", "--weights", f"{run}/best.safetensors", "--data", "data", "--json", "-",
                           "--backend", "reference")
        self.assertAlmostEqual(json.loads(best.stdout)["loss"], min(losses[first:]), delta=1e-6)
        summary = self.metrics(run, "summary")[-1]
        self.assertEqual(summary["best_epoch"], losses.index(min(losses[first:]), first) + 1)

    def best_by_accuracy(self, run, first=0):
        """best.safetensors is of the epoch with the highest accuracy; of equal ones the lower loss wins."""
        epochs = self.metrics(run, "epoch")
        best = max(epochs[first:], key=lambda m: (m["val_accuracy"], -m["val_loss"]))
        summary = self.metrics(run, "summary")[-1]
        self.assertEqual({key: summary[key] for key in ("best_epoch", "best_loss", "best_accuracy", "monitor")},
                         {"best_epoch": best["epoch"], "best_loss": best["val_loss"],
                          "best_accuracy": best["val_accuracy"], "monitor": "accuracy"})
        found = json.loads(self.expect(0, "eval", "--weights", f"{run}/best.safetensors", "--data", "data", "--json",
                                       "-", "--backend", "reference").stdout)
        self.assertEqual(found["accuracy"], best["val_accuracy"])
        self.assertAlmostEqual(found["loss"], best["val_loss"], delta=1e-6)
        return best["epoch"]

    def test_the_accuracy_decides_where_that_is_asked_for(self):
        words = ["--optimizer", "sgd:momentum=0", "--lr", "0.1", "--save-best", "--seed", "5"]
        words += ["--monitor", "accuracy"]
        done = self.go(0, "run", "--epochs", "6", *words)
        best = self.best_by_accuracy("run")
        losses = [m["val_loss"] for m in self.metrics("run", "epoch")]
        self.assertNotEqual(best, losses.index(min(losses)) + 1)  # or the loss might have decided
        self.assertIn(f"Best epoch: {best} of 6 by accuracy (", done.stderr)
        # Ended in the middle, it knows what was best.
        self.go(0, "half", "--steps", str(STEPS * best + 1), *words)
        self.go(0, "half", "--epochs", "6", *words, "--resume", "auto")
        self.same("half", "run")
        self.assertEqual(self.bytes_of("half/best.safetensors"), self.bytes_of("run/best.safetensors"))

    def test_patience_waits_for_the_accuracy(self):
        words = ["--optimizer", "sgd:momentum=0", "--lr", "0.001", "--epochs", "9"]
        # Losses fall, and no accuracy rises by more than 1.
        self.go(0, "run", *words, "--early-stopping", "2:1", "--monitor", "accuracy",
                says=["by accuracy", "early stopping ended the training"])
        self.assertEqual(len(self.metrics("run", "epoch")), 3)
        self.go(0, "run", *words, "--early-stopping", "2:1", "--monitor", "accuracy", "--resume", "auto",
                says=["is finished"])

    def test_another_figure_begins_anew(self):
        words = ["--optimizer", "sgd:momentum=0", "--lr", "0.3", "--save-best", "--resume", "auto"]
        self.go(0, "run", "--epochs", "2", *words)
        self.go(2, "run", "--epochs", "2", *words, "--monitor", "accuracy",
                says=["monitor: loss in the run, accuracy here"])
        self.go(0, "run", "--epochs", "4", *words, "--monitor", "accuracy",
                says=["were chosen by loss: --monitor accuracy begins anew with the epochs from here on"])
        self.best_by_accuracy("run", first=2)
        done = self.go(0, "run", "--epochs", "5", *words, "--monitor", "accuracy")
        self.assertNotIn("anew", done.stdout + done.stderr)
        self.best_by_accuracy("run", first=2)

    def test_a_plateau_of_another_figure_is_another_training(self):
        words = ["--optimizer", "sgd", "--lr", "0.01", "--schedule", "plateau:1:0.5", "--resume", "auto"]
        self.go(0, "run", "--epochs", "2", *words)
        self.go(2, "run", "--epochs", "3", *words, "--monitor", "accuracy",
                says=["monitor: loss in the checkpoint, accuracy here"])
        self.go(0, "run", "--epochs", "3", *words, "--monitor", "loss")

    def test_what_nothing_follows_is_said(self):
        idle = "--monitor accuracy changes nothing but the best epoch that is named"
        self.go(0, "run", "--epochs", "1", "--monitor", "accuracy", "--no-save-best", says=[idle])
        self.go(0, "rest", "--epochs", "1", "--monitor", "accuracy", "--limit-val", "0",
                says=["--monitor accuracy changes nothing without images of validation"])
        for number, follower in enumerate(([], ["--save-best"], ["--early-stopping", "3"],
                                           ["--no-save-best", "--schedule", "plateau:1"])):
            done = self.go(0, f"run-{number}", "--epochs", "3", "--monitor", "accuracy", *follower)
            self.assertNotIn("--monitor accuracy changes nothing", done.stderr)
        self.go(2, "none", "--save-best", "--monitor", "accuracy", "--limit-val", "0",
                says=["--save-best watches the accuracy of validation"])

    def test_a_plateau_says_from_where_on_the_rate_is_another(self):
        done = self.go(0, "run", "--epochs", "4", "--lr", "0", "--schedule", "plateau:1:0.5")
        self.assertNotIn("(plateau)", done.stderr)  # half of 0 is 0
        done = self.go(0, "other", "--epochs", "4", "--optimizer", "sgd:momentum=0", "--lr", "0.001",
                       "--schedule", "plateau:1:0.5", "--monitor", "accuracy")
        rates = [m["lr"] for m in self.metrics("other", "epoch")]
        lines = [f"Learning rate {rates[i]:g} from epoch {i + 1} on (plateau)"
                 for i in range(1, 4) if rates[i] != rates[i - 1]]
        self.assertTrue(lines)
        self.assertEqual([line for line in done.stderr.splitlines() if line.endswith("(plateau)")], lines)
        self.assertNotIn("plateau", done.stdout)

    def test_best_weights_that_begin_with_a_resume(self):
        for added in ([], ["--save-best"], ["--early-stopping", "9"]):
            with self.subTest(added=added):
                run = added[0].strip("-") if added else "usual"
                # A rate that is too large: losses rise, and no later one is as low as the first.
                words = ["--optimizer", "sgd:momentum=0", "--lr", "0.3", "--resume", "auto"]
                self.go(0, run, "--epochs", "2", *words, "--no-save-best")
                if added:
                    self.go(2, run, "--epochs", "2", *words, *added, says=[f"{run}: ", "nothing would be trained"])
                else:  # nothing was asked for that the run lacks
                    done = self.go(0, run, "--epochs", "2", *words, says=["is finished"])
                    self.assertNotIn("best.safetensors", done.stderr)
                self.assertFalse(os.path.exists(self.path(run, "best.safetensors")))
                done = self.go(0, run, "--epochs", "4", *words, *added, says=["best.safetensors begins anew"])
                self.assertIn("weights.safetensors (of the last step", done.stderr)
                self.best_is_of(run, first=2)
                done = self.go(0, run, "--epochs", "4", *words, *added, says=["is finished"])
                self.assertNotIn("best.safetensors", done.stdout + done.stderr)
                # Known from here on: nothing begins anew.
                done = self.go(0, run, "--epochs", "5", *words, *added)
                self.assertNotIn("anew", done.stdout + done.stderr)
                self.best_is_of(run, first=2)

    def test_patience_that_begins_with_a_resume_waits_anew(self):
        words = ["--lr", "0", "--resume", "auto"]
        self.go(0, "run", "--epochs", "4", *words, "--no-save-best")  # whose loss is the same in each epoch
        self.go(0, "run", "--epochs", "9", *words, "--early-stopping", "2", says=["begins anew"])
        summary = self.metrics("run", "summary")[-1]
        self.assertEqual((summary["epochs"], summary["best_epoch"], summary["early_stopped"]), (7, 5, True))

    def test_best_weights_that_nobody_asks_for_any_more_stay(self):
        words = ["--optimizer", "sgd", "--lr", "0.01", "--resume", "auto"]
        self.go(0, "run", "--epochs", "2", *words)
        kept = self.bytes_of("run/best.safetensors")
        for epochs in ("4", "5"):
            self.go(0, "run", "--epochs", epochs, "--no-save-best", *words)
            self.assertEqual(self.bytes_of("run/best.safetensors"), kept)
        # Nor does the run's folder stand for it any more.
        self.expect(0, "eval", "--weights", "run", "--data", "data", "--backend", "reference",
                    says=["takes run/weights.safetensors, of the run's end"])
        # Later epochs were not compared with it: nobody knows whether it is the best of all.
        self.go(2, "run", "--epochs", "5", *words, "--save-best", says=["save-best: off in the run, on here"])
        self.assertEqual(self.bytes_of("run/best.safetensors"), kept)

    def test_best_weights_of_a_training_without_an_evaluated_epoch(self):
        self.go(0, "run", "--epochs", "1", "--resume", "auto", "--no-save-best")
        os.remove(self.path("run/weights.safetensors"))  # as a kill at the end leaves it
        self.go(0, "run", "--epochs", "1", "--resume", "auto", "--save-best", says=["Best weights: none"])
        self.go(0, "run", "--epochs", "1", "--resume", "auto", "--save-best", says=["there is no best.safetensors"])

    def test_the_folder_of_a_run_stands_for_its_best_weights(self):
        self.go(0, "run", "--epochs", "2")
        self.expect(0, "eval", "--weights", "run", "--data", "data", "--backend", "reference",
                    says=["takes run/best.safetensors, the weights of the run's best epoch; those of its end are in "
                          "run/weights.safetensors"])

    def test_none_are_kept_where_nothing_is_evaluated_or_that_is_asked_for(self):
        for run, words in (("off", ["--no-save-best"]), ("blind", ["--limit-val", "0"])):
            done = self.go(0, run, "--epochs", "1", *words)
            self.assertNotIn("Best weights", done.stderr)
            self.assertFalse(os.path.exists(self.path(run, "best.safetensors")))
            self.assertNotIn("best.safetensors", os.listdir(self.path(run, f"ckpt-{STEPS:09}")))
        self.go(2, "none", "--no-save-best", "--early-stopping", "3",
                says=["--early-stopping ends with the best weights, which --no-save-best does not keep"])
        self.assertFalse(os.path.exists(self.path("none")))

    def test_the_lowest_loss_is_best_whatever_patience_waits_for(self):
        words = ["--optimizer", "sgd", "--lr", "0.01", "--epochs", "9", "--early-stopping", "2:100"]
        self.go(0, "run", *words, says=[", the best)"])
        self.assertEqual(len(self.metrics("run", "epoch")), 3)
        self.best_is_of("run")
        self.assertEqual(self.bytes_of("run/weights.safetensors"), self.bytes_of("run/best.safetensors"))

    def test_early_stopping_ends_with_the_best_weights(self):
        words = ["--epochs", "50", "--lr", "0.2", "--early-stopping", "3"]
        self.go(0, "run", *words)
        losses = [m["val_loss"] for m in self.metrics("run", "epoch")]
        best = losses.index(min(losses))
        self.assertLess(len(losses), 50)
        self.assertEqual(len(losses) - 1 - best, 3)
        loss = json.loads(self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "data", "--json",
                                      "-", "--backend", "reference").stdout)["loss"]
        self.assertAlmostEqual(loss, losses[best], delta=1e-6)
        self.go(0, "run", *words, "--resume", "auto", says=["is finished"])
        # Ended in the middle, it waits for no epoch more or less.
        self.go(0, "half", "--steps", str(STEPS * (best + 2) + 1), *words[2:])
        self.go(0, "half", *words, "--resume", "auto")
        self.same("half", "run")


if __name__ == "__main__":
    unittest.main()
