"""Which algorithms trainings try, and when; what reproducible weights say of those that computed them."""
import os
import re
import unittest

from formats import read_arrays
from program import ProgramTest, needs_mpi

# Steps of one size, more of them in the first epoch than the trials need, of images enough to be worth a trial.
WORDS = ["--image-size", "64", "--data", "synthetic:256", "--batch", "16", "--micro-batch", "20", "--threads", "1",
         "--steps", "14", "--limit-val", "0", "--optimizer", "sgd", "--log-every", "1"]
TRIES = "Convolutions try their algorithms"


class Algorithms(ProgramTest):
    def setUp(self):
        super().setUp()
        if "oneDNN" not in self.expect(0, "info").stdout:
            self.skipTest("this build has one way to compute only")

    def go(self, run, *words, **options):
        done = self.expect(0, *WORDS, "--out", run, *words, says=[TRIES],
                           XDG_CACHE_HOME=self.path("caches"), **options)
        if os.environ.get("ONEDNN_MAX_CPU_ISA") == "AVX2":
            self.assertIn(", AVX2, ", done.stderr)
        return ["trying" in step for step in self.metrics(run, "step")]

    def assert_ended(self, tries):
        """Two to four algorithms in three steps each, from the first on."""
        self.assertIn(sum(tries), (6, 9, 12))
        self.assertEqual(tries, sorted(tries, reverse=True))

    def test_frozen_layers_do_not_keep_the_others_from_ending_their_trials(self):
        self.assert_ended(self.go("a", "--freeze", "conv2d,conv2d_1"))

    def test_evaluation_of_more_images_at_once_tells_nothing(self):
        self.assert_ended(self.go("b", "--limit-val", "20"))  # 20 at once, training has 16

    def test_every_training_finds_out_for_itself(self):
        # A file of that name is not read: it may be of a busy machine, or of weights that had not learnt.
        os.makedirs(self.path("caches", "cputrain"))
        kept = self.path("caches", "cputrain", "algorithms.json")
        with open(kept, "w") as f:
            f.write('{"found": [{"for": "all", "algorithms": "ddd ddd ddd ddd"}]}')
        for run in ("a", "b"):
            self.assert_ended(self.go(run))
        self.assertEqual(os.listdir(self.path("caches", "cputrain")), ["algorithms.json"])
        with open(kept) as f:
            self.assertIn('"all"', f.read())
        self.expect(2, *WORDS, "--no-kernel-cache", says=["--no-kernel-cache"])

    def test_trials_begin_again_and_go_on_in_later_epochs(self):
        # Four steps an epoch: those of the first epoch end in the second or third, which is then none of its own.
        tries = self.go("a", "--data", "synthetic:71", "--steps", "40")
        self.assertEqual(tries[:6], [True] * 6)
        self.assertIn(False, tries)
        again = tries.index(False) + tries[tries.index(False):].index(True)
        self.assertIn(again // 4 + 1, (3, 5))
        self.assertEqual(again % 4, 0)

    def test_settled_steps_prolong_a_training_until_trials_have_ended(self):
        for asked in (1, 4):
            tries = self.go("a", "--overwrite", "--data", "synthetic:400", "--steps", "2", "--settled-steps",
                            str(asked))
            self.assert_ended(tries)
            self.assertEqual(tries[-asked - 1:], [True] + asked * [False])
        self.expect(2, *[w for w in WORDS if w not in ("--steps", "14")], "--settled-steps", "2",
                    says=["--settled-steps needs --steps"])
        # Where nothing is tried, only the first step is not settled.
        self.expect(0, *WORDS, "--out", "b", "--batch", "4", "--steps", "2", "--settled-steps", "3",
                    "--decode", "first")
        self.assertEqual(len(self.metrics("b", "step")), 4)

    def test_small_work_goes_by_rule_and_gives_the_same_bits(self):
        losses = []
        for run in ("a", "b"):
            done = self.expect(0, *WORDS, "--batch", "4", "--out", run)
            self.assertNotIn("Convolutions", done.stderr)
            losses.append([step["loss"] for step in self.metrics(run, "step")])
        self.assertEqual(*losses)

    @needs_mpi
    def test_ranks_try_together(self):
        tries = self.go("a", "--batch", "32", "--data", "synthetic:512", ranks=2)
        self.assert_ended(tries)

    def test_reproducible_weights_say_what_computed_them(self):
        words = [*WORDS, "--steps", "2", "--out"]
        self.expect(0, *words, "plain")
        self.assertNotIn("kernels", read_arrays(self.path("plain", "weights.safetensors"))[0])
        self.expect(0, *words, "a", "--reproducible")
        kernels = read_arrays(self.path("a", "weights.safetensors"))[0]["kernels"]
        self.assertRegex(kernels, r"^oneDNN \d.*, own kernels \d+")
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

    def test_reproducible_training_says_that_it_goes_on_with_other_kernels(self):
        words = [*WORDS, "--reproducible", "--out", "a", "--steps"]
        if "less than AVX2" in self.expect(0, *words, "1").stderr:
            self.skipTest("this CPU has no kernels that could be forbidden")
        done = self.expect(0, *words, "2", "--resume", "auto")
        self.assertNotIn("other kernels", done.stderr)
        says = ["warning: the checkpoint comes from other kernels", "here: cpu: oneDNN", "less than AVX2"]
        self.expect(0, *words, "3", "--resume", "auto", says=says, ONEDNN_MAX_CPU_ISA="SSE41")


if __name__ == "__main__":
    unittest.main()
