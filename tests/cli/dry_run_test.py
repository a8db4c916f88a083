"""The plan of a training: figures against their formulas, and what cannot fit is refused."""
import json
import os
import unittest

from program import ProgramTest, needs_mpi

PARAMETERS = 13217985  # of dogcat
LARGE_KERNEL = 25088 * 512  # of its first dense layer
CACHE = 25000 * (256 * 256 * 3 + 96)


class DryRun(ProgramTest):
    def plan(self, *words, **options):
        done = self.expect(0, "train", "--dry-run", "--json", "-", *words, **options)
        return json.loads(done.stdout)

    def check(self, plan, ranks, sharded=0):
        self.assertEqual(plan["images_per_rank"], [1024 // ranks] * ranks)
        self.assertEqual((plan["steps_per_epoch"], plan["steps"]), (22, 66))
        # padding of blocked layouts is small
        reduced = 4 * (PARAMETERS - sharded)
        self.assertAlmostEqual(plan["bytes_reduced_per_step"] / reduced, 1, places=3)
        (node,) = plan["memory"]["nodes"]
        of_ranks = plan["memory"]["ranks"]
        self.assertEqual(len(of_ranks), ranks)
        weights = node["weights"] + sum(rank["weights"] for rank in of_ranks)
        self.assertGreaterEqual(weights, 4 * PARAMETERS)
        state = sum(rank["optimizer_state"] for rank in of_ranks)
        self.assertGreaterEqual(state, 4 * PARAMETERS * 0.999)
        self.assertAlmostEqual(node["image_cache"] / CACHE, 1, places=3)
        once = node["image_cache"] + node["weights"]
        self.assertEqual(node["total"], once + sum(rank["total"] for rank in of_ranks))
        for rank in of_ranks:
            parts = [value for name, value in rank.items() if name not in ("rank", "host", "total")]
            self.assertEqual(rank["total"], sum(parts))
            self.assertTrue(1e6 < rank["process"] < 1e9, rank)  # kernels' code alone is more
        self.assertEqual(os.listdir(self.folder), [])

    def test_one_process(self):
        self.check(self.plan("--batch", "1024", "--epochs", "3"), 1)

    @needs_mpi
    def test_two_ranks_print_one_object(self):
        plan = self.plan("--batch", "1024", "--epochs", "3", "--shard-dense", ranks=2)
        self.check(plan, 2, LARGE_KERNEL)
        whole = self.plan("--batch", "1024", "--epochs", "3", ranks=2)
        self.check(whole, 2)
        for a, b in zip(plan["memory"]["ranks"], whole["memory"]["ranks"]):
            self.assertEqual(b["gradients"] - a["gradients"], 4 * LARGE_KERNEL // 2)
        self.assertEqual([rank["rank"] for rank in plan["map"]], [0, 1])

    @needs_mpi
    def test_the_plan_is_no_less_than_what_a_training_takes(self):
        # One array has nearly all weights, 75 MB: while rank 0 writes it, it is there once more.
        layers = [{"type": "flatten"}, {"type": "dense", "units": 1536}, {"type": "dense", "units": "classes"},
                  {"type": "softmax"}]
        self.write("dense.json", {"format": "cputrain model 1", "name": "dense", "layers": layers,
                                  "recipe": {"image_size": 64, "batch": 8, "epochs": 1, "optimizer": "rmsprop",
                                             "learning_rate": 0.01}})
        # The best weights take memory of their own only where storage is slow.
        words = ["--model", "dense.json", "--data", "synthetic:100", "--threads", "1", "--no-save-best"]
        (planned,) = self.plan(*words, ranks=2)["memory"]["nodes"]
        (with_best,) = self.plan(*words[:-1], ranks=2)["memory"]["nodes"]
        self.assertAlmostEqual((with_best["total"] - planned["total"]) / (4 * 1536 * (3 * 64 * 64 + 1)), 1, delta=0.1)
        done = self.expect(0, *words, "--steps", "2", "--out", "r", ranks=2, says=["Memory at its peak: "])
        summary = json.loads(self.text_of("r", "metrics.jsonl").splitlines(True)[-1])
        measured = summary["peak_node_bytes"]
        self.assertGreaterEqual(planned["total"], measured, done.stdout)
        self.assertLess(planned["total"], measured + 2 * 24e6)
        # The rank that has the weights' copy for checkpoints, too, and pages of the program.
        self.assertGreater(2 * summary["peak_rank_bytes"], measured)

    def test_text(self):
        self.expect(0, "train", "--dry-run", "--data", "synthetic:100", "--batch", "45",
                    says=["rank 0 on", "image cache", "2 steps per epoch", "45 images per rank"])

    @needs_mpi
    def test_many_ranks_are_a_page(self):
        done = self.expect(0, "train", "--dry-run", "--data", "synthetic:100", "--image-size", "64", "--batch", "40",
                           "--threads", "1", ranks=12, says=["ranks 0 to 11 on", "3 to 4 images per rank, all at once"])
        self.assertLessEqual(len((done.stdout + done.stderr).splitlines()), 60)
        memory = [line for line in done.stdout.splitlines() if "workspace" in line]
        self.assertLess(len(memory), 6, done.stdout)  # of rank 0, and of those that have 4 images and 3
        self.assertRegex(done.stdout, r"ranks \d+ to 11, each at most: ")

    def test_images_at_once(self):
        for words, at_once in [(["--threads", "1", "--batch", "128"], 8),
                               (["--threads", "1", "--batch", "20"], 7),  # 7 + 7 + 6
                               (["--threads", "2", "--batch", "128"], 26),  # 4 x 26 + 24
                               (["--threads", "2", "--batch", "28"], "all"),
                               (["--threads", "2", "--batch", "5"], "all"),  # validation has more at once
                               (["--threads", "2", "--batch", "128", "--batch-growth", "1:2"], 28),
                               (["--threads", "2", "--batch", "128", "--micro-batch", "20"], 20)]:
            with self.subTest(words):
                done = self.expect(0, "train", "--dry-run", "--data", "synthetic:300", "--image-size", "64", *words)
                self.assertIn(f" images per rank, {at_once} at once)", done.stdout)

    def test_batches_in_flight_are_those_of_augmentation(self):
        """And copies of those that are not decoded yet, for training and validation each."""
        words = ["--data", "synthetic:100", "--image-size", "64", "--micro-batch", "8"]
        each = 2 * 8 * 64 * 64 * 3
        (later,) = self.plan(*words, "--augment", "none")["memory"]["ranks"]
        self.assertEqual(later["batches_in_flight"], 2 * each)
        words += ["--decode", "first"]
        (plain,) = self.plan(*words, "--augment", "none")["memory"]["ranks"]
        (changed,) = self.plan(*words, "--augment", "flip")["memory"]["ranks"]
        self.assertEqual(plain["batches_in_flight"], 0)
        self.assertEqual(changed["batches_in_flight"], each)

    def refused(self, *words, **options):
        done = self.expect(2, *words, says=["memory"], **options)
        self.assertEqual(done.stderr.count("of memory"), 1, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])
        return done.stderr

    def test_images_that_cannot_fit(self):
        words = ["--batch", "128", "--image-size", "10000"]
        self.assertIn("--image-size", self.refused("train", "--dry-run", *words))
        self.refused("train", *words)  # and nothing is decoded

    def test_weights_that_cannot_fit(self):
        self.refused("train", "--dry-run", "--image-size", "16000", "--data", "synthetic:10")

    def wide_model(self, *norm):
        """One wide map: a quarter of a gigabyte an image at 1024x1024, and next to no weights."""
        layers = [{"type": "convolution", "filters": 32, "kernel": 3}, *norm, {"type": "relu"},
                  {"type": "global_average_pool"}, {"type": "dense", "units": "classes"},
                  {"type": "softmax"}]
        self.write("wide.json", {"format": "cputrain model 1", "name": "wide", "layers": layers,
                                 "recipe": {"image_size": 1024, "batch": 16, "epochs": 1,
                                            "optimizer": "sgd", "learning_rate": 0.01}})
        # 2,700 samples of few images
        return ["train", "--dry-run", "--model", "wide.json", "--data", "synthetic:500",
                "--limit-val", "0", "--expand", "six"]

    def names_what_fits(self, flag, asked, words, ranks):
        done = self.expect(2, *words, flag, str(asked), says=["memory"], ranks=ranks)
        named = int(done.stderr.split(flag + " ")[1].split()[0].rstrip(","))
        self.assertTrue(0 < named < asked, done.stderr)
        # half of it, since others may take memory meanwhile
        self.expect(0, *words, flag, str(max(ranks, named // 2)), ranks=ranks)

    @needs_mpi
    def test_a_batch_that_cannot_fit_names_one_that_does(self):
        self.names_what_fits("--batch", 2500, self.wide_model({"type": "batch_norm"}), 2)

    def test_a_micro_batch_that_cannot_fit_names_one_that_does(self):
        self.names_what_fits("--micro-batch", 2500, [*self.wide_model(), "--batch", "2500"], 0)


if __name__ == "__main__":
    unittest.main()
