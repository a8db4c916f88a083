"""What trainings leave to later ones about algorithms, and what reproducible weights say of them."""
import json
import os
import re
import struct
import unittest

from program import ProgramTest, needs_mpi

# Steps of one size, more of them in the first epoch than the trials need, of images enough to be worth a trial.
WORDS = ["--image-size", "64", "--data", "synthetic:192", "--batch", "16", "--micro-batch", "20", "--threads", "1",
         "--steps", "10", "--limit-val", "0", "--optimizer", "sgd", "--log-every", "1"]
TRIES = "Convolutions try their algorithms"
KNOWS = "that an earlier training found"


class Algorithms(ProgramTest):
    def setUp(self):
        super().setUp()
        if "oneDNN" not in self.expect(0, "info").stdout:
            self.skipTest("this build has one way to compute only")
        self.file = self.path("caches", "cputrain", "algorithms.json")

    def go(self, run, *words, says, **options):
        done = self.expect(0, *WORDS, "--out", run, *words, says=[says],
                           XDG_CACHE_HOME=self.path("caches"), **options)
        if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2":
            self.assertIn(", AVX2, ", done.stderr)
        self.assertNotIn(TRIES if says == KNOWS else KNOWS, done.stderr)
        return done

    def read(self):
        with open(self.file) as f:
            return json.load(f)

    def write(self, text):
        with open(self.file, "w") as f:
            f.write(text)

    def keep(self, algorithms):
        cache = self.read()
        for entry in cache["found"]:
            entry["algorithms"] = algorithms
        self.write(json.dumps(cache))

    def test_frozen_layers_do_not_keep_the_others_from_ending_their_trials(self):
        self.go("a", "--freeze", "conv2d,conv2d_1", says=TRIES)
        self.assertEqual(len(self.read()["found"]), 1)

    def test_the_second_training_begins_with_what_the_first_found(self):
        self.go("a", "--no-kernel-cache", says=TRIES)
        self.assertFalse(os.path.exists(self.file))
        self.go("b", says=TRIES)
        found = self.read()["found"]
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0]["algorithms"], r"^[dws]{3}( [dws]{3})+$")
        self.go("c", says=KNOWS)
        self.go("d", "--no-kernel-cache", says=TRIES)
        self.go("e", "--batch", "17", says=TRIES)  # other numbers of images at once
        self.go("f", "--image-size", "72", says=TRIES)
        self.go("g", "--no-winograd", says=TRIES)
        self.assertEqual(len({entry["for"] for entry in self.read()["found"]}), 4)
        done = self.expect(0, *WORDS, "--out", "h", "--reproducible",
                           XDG_CACHE_HOME=self.path("caches"))
        self.assertNotIn("Convolutions", done.stderr)

    def test_evaluation_of_more_images_at_once_tells_nothing(self):
        self.go("b", "--limit-val", "20", says=TRIES)  # 20 at once, training has 16
        self.assertEqual(len(self.read()["found"]), 1)
        self.go("c", says=KNOWS)

    def test_what_is_known_is_used(self):
        self.go("a", says=TRIES)
        layers = len(self.read()["found"][0]["algorithms"].split())
        losses = {}
        for method in ("d", "s", "d", "s"):
            self.keep(" ".join([3 * method] * layers))
            self.go("b", "--overwrite", says=KNOWS)
            again = [step["loss"] for step in self.metrics("b", "step")]
            self.assertEqual(losses.setdefault(method, again), again)  # the same bits each time
        self.assertNotEqual(losses["d"], losses["s"])  # additions in other orders
        for d, s in zip(losses["d"], losses["s"]):
            self.assertAlmostEqual(d, s, delta=1e-3 * d)

    def test_small_work_goes_by_rule_and_gives_the_same_bits(self):
        losses = []
        for run in ("a", "b"):
            done = self.expect(0, *WORDS, "--batch", "4", "--no-kernel-cache", "--out", run)
            self.assertNotIn("Convolutions", done.stderr)
            losses.append([step["loss"] for step in self.metrics(run, "step")])
        self.assertEqual(*losses)

    @needs_mpi
    def test_all_ranks_use_what_rank_0_reads(self):
        self.go("a", says=TRIES, ranks=2)
        self.assertIn("ranks on the node 2", self.read()["found"][0]["for"])
        self.go("b", says=KNOWS, ranks=2)
        self.go("c", says=TRIES)  # alone a rank has the caches for itself
        for entry in self.read()["found"]:
            self.assertRegex(entry["algorithms"], r"^[dws]{3}( [dws]{3})+$")

    def test_a_damaged_file_is_no_obstacle(self):
        self.go("a", says=TRIES)
        layers = len(self.read()["found"][0]["algorithms"].split())
        for wrong in ("ddd", " ".join(["xyz"] * layers), " ".join(["ddd"] * (layers + 1)), " " * layers,
                      "d" * 100000, " ".join(["dddd"] * layers)):
            with self.subTest(wrong=wrong[:40]):
                self.keep(wrong)
                self.go("b", "--overwrite", says=TRIES)
                self.assertRegex(self.read()["found"][0]["algorithms"], r"^[dws]{3}( [dws]{3})+$")
        self.write("{")
        self.go("b", "--overwrite", says=TRIES)
        self.assertEqual(len(self.read()["found"]), 1)
        os.remove(self.file)
        os.mkdir(self.file)
        done = self.go("b", "--overwrite", says=TRIES)
        self.assertRegex(done.stderr, "warning: the algorithms found are not kept .*--no-kernel-cache")

    def test_reproducible_weights_say_what_computed_them(self):
        words = [*WORDS, "--steps", "2", "--out"]
        self.expect(0, *words, "plain")
        self.assertNotIn("kernels", self.header("plain")["__metadata__"])
        self.expect(0, *words, "a", "--reproducible")
        self.assertRegex(self.header("a")["__metadata__"]["kernels"], r"^oneDNN \d.*, own kernels \d+")
        weights = self.path("a", "weights.safetensors")
        done = self.expect(0, *words, "b", "--reproducible", "--weights", weights)
        self.assertNotIn("other kernels", done.stderr)
        with open(weights, "rb") as f:
            data = f.read()
        other = re.sub(rb"own kernels \d", b"own kernels x", data, count=1)
        self.assertNotEqual(data, other)
        with open(weights, "wb") as f:
            f.write(other)
        says = ["warning: --weights", "other kernels", "own kernels x"]
        self.expect(0, *words, "c", "--reproducible", "--weights", weights, says=says)
        done = self.expect(0, *words, "d", "--weights", weights)
        self.assertNotIn("other kernels", done.stderr)

    def header(self, run):
        with open(self.path(run, "weights.safetensors"), "rb") as f:
            (size,) = struct.unpack("<Q", f.read(8))
            return json.loads(f.read(size))


if __name__ == "__main__":
    unittest.main()
