"""Batches, sharding, learning rates and their messages, through the program itself."""
import unittest

from program import SMALL, ProgramTest, needs_mpi

SGD = ["--optimizer", "sgd", "--lr", "0.01"]


class Recipes(ProgramTest):
    def test_wrong_recipes_end_with_2_before_anything_is_read(self):
        for words, says in [
                (["--sharding", "shard-then-batch", "--shuffle"], ["--sharding strided"]),
                (["--base-batch", "32"], ["--base-batch 32", "--lr-scale"]),
                (["--optimizer", "lamb:momentum=0.9"], ["lamb has no figure momentum"]),
                (["--momentum-correction"], ["--momentum-correction"]),
                (["--schedule", "plateau:3", "--limit-val", "0"], ["--schedule plateau:3", "--limit-val 0"])]:
            with self.subTest(words=words):
                done = self.expect(2, "--data", "/nowhere", *words, says=says)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_an_epoch_without_steps_is_refused(self):
        self.expect(2, *SMALL, "--drop-last", "--batch", "100", says=["--drop-last", "54 training"])

    def test_drop_last_leaves_out_what_fills_no_step(self):
        steps = self.train("run", *SGD, "--drop-last", "--epochs", "1")
        self.assertEqual([s["images"] for s in steps], [20, 20])
        self.assertEqual([s["images_seen"] for s in steps], [20, 40])
        steps = self.train("kept", *SGD, "--epochs", "1")
        self.assertEqual([s["images"] for s in steps], [20, 20, 14])

    def test_accumulation_is_a_larger_batch_and_batches_grow(self):
        words = [*SGD, "--dropout", "0", "--epochs", "2"]
        large = self.train("large", *words, "--batch", "20")
        several = self.train("several", *words, "--batch", "5", "--accumulate", "4")
        self.assert_near([s["loss"] for s in several], [s["loss"] for s in large], 1e-3)
        grown = self.train("grown", *words, "--batch", "10", "--batch-growth", "1:3")
        self.assertEqual([s["images"] for s in grown], [10] * 5 + [4] + [30, 24])
        self.assertEqual([s["images_seen"] for s in grown], [10, 20, 30, 40, 50, 54, 84, 108])
        self.expect(0, *SMALL, *words, "--batch", "10", "--batch-growth", "1:3", "--log-every", "7", "--out", "rare")
        self.assertEqual([(s["step"], s["images_seen"]) for s in self.metrics("rare", "step")], [(6, 54), (7, 84), (8, 108)])

    def test_schedules_reach_the_step_lines_and_the_start_up_lines(self):
        done = self.expect(0, *SMALL, *SGD, "--epochs", "2", "--warmup-epochs", "1", "--out", "run",
                           "--lr-scale", "sqrt", "--base-batch", "5", "--schedule", "poly:2",
                           "--log-every", "1",
                           says=["0.01 x 2 = 0.02 (square root in 4 = images per step / 5)",
                                 "warm-up over 1 epoch from 0.005, then poly:2:0"])
        self.assertIn("sgd 0.02", done.stderr)
        rates = [s["lr"] for s in self.metrics("run", "step")]
        warm = [0.02 / 4 * ((i + 1) / 3 * 3 / 1 + 1) for i in range(3)]
        self.assert_near(rates, warm + [0.02 * (1 - i / 3) ** 2 for i in range(3)], 1e-9)
        self.assertAlmostEqual(self.metrics("run", "epoch")[1]["lr"], rates[-1])

    def test_a_recipe_repeats_from_its_own_config(self):
        # Without a choice of kernels: measuring makes it, and may make another one the next time.
        first = self.train("a", "--optimizer", "lars", "--schedule", "cosine:0.1", "--epochs", "2",
                           "--no-winograd", "--no-skip-zeros", "--clip-norm", "1", "--batch-growth", "1:2",
                           "--no-shuffle", "--drop-last", "--weight-decay", "0.01", "--label-smoothing", "0.1")
        self.expect(0, "--config", "a/config.json", "--out", "b")
        again = self.metrics("b", "step")
        self.assertEqual([(s["loss"], s["lr"]) for s in first],
                         [(s["loss"], s["lr"]) for s in again])

    def test_stops_at_the_target_and_tells_the_time(self):
        done = self.expect(0, *SMALL, *SGD, "--epochs", "9", "--target-accuracy", "0.1",
                           "--out", "run", says=["Target accuracy 0.1: ", " of training"])
        self.assertEqual(done.stdout.count("Epoch"), 1)
        summary = self.metrics("run", "summary")[0]
        epoch = self.metrics("run", "epoch")[0]
        self.assertEqual(summary["target_accuracy"], 0.1)
        self.assertEqual(summary["time_to_accuracy"],
                         {"accuracy": epoch["val_accuracy"], "epoch": 1,
                          "seconds": epoch["seconds"]})
        self.expect(0, *SMALL, *SGD, "--lr", "0", "--epochs", "1", "--target-accuracy", "1",
                    "--out", "missed", says=["not reached in 1 epoch"])
        self.assertIsNone(self.metrics("missed", "summary")[0]["time_to_accuracy"])

    @needs_mpi
    def test_warm_up_to_a_rate_scaled_by_ranks_is_horovods(self):
        steps = self.train("run", *SGD, "--epochs", "3", "--lr-scale", "linear",
                           "--warmup-epochs", "2", ranks=2)
        per = len(steps) // 3
        want = [0.02 / 2 * (min((i + 1) / per, 2) * (2 - 1) / 2 + 1) for i in range(3 * per)]
        self.assert_near([s["lr"] for s in steps], want, 1e-9)

    @needs_mpi
    def test_batch_per_rank_grows_with_the_ranks(self):
        done = self.expect(0, *SMALL[:4], "--batch-per-rank", "6", *SGD, "--epochs", "1", "--out",
                           "run", "--log-every", "1", ranks=3, says=["Batch 18 over 3 ranks"])
        self.assertEqual([s["images"] for s in self.metrics("run", "step")], [18, 18, 18])
        flags = self.json_of("run", "config.json")
        self.assertEqual(flags["batch"], 18)
        self.assertNotIn("batch-per-rank", flags)
        self.assertEqual(done.returncode, 0)

    @needs_mpi
    def test_sharding_keeps_the_curve_or_says_that_it_does_not(self):
        words = [*SGD, "--dropout", "0", "--epochs", "1"]
        alone = [s["loss"] for s in self.train("slices", *words)]
        strided = self.train("strided", *words, "--sharding", "strided", ranks=3)
        self.assert_near([s["loss"] for s in strided], alone, 1e-3)
        self.expect(0, *SMALL, *words, "--sharding", "generator", "--out", "generator", ranks=2,
                    says=["warning: --sharding generator", "draw the same images", "30 of 54"])
        own = [s["loss"] for s in self.train("own", *words, "--no-shuffle")]
        parts = self.train("parts", *words, "--sharding", "shard-then-batch", ranks=2)
        self.assert_near([s["loss"] for s in parts], own, 1e-3)


if __name__ == "__main__":
    unittest.main()
