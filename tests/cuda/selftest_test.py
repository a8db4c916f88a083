"""`selftest --backend cuda` on the emulated device: all kernels pass, and bugs that are planted in them do not."""
import json
import os
import re
import subprocess
import unittest

from program import ProgramTest

BUGS = os.path.join(os.environ["CUDA_TESTS_BUILD"], "tests", "cuda", "bugs")
KERNEL_CASES = os.environ["CUDA_TESTS_KERNEL_CASES"]
TILES = ("128x32", "32x128", "64x64", "128x64")  # of exact
OTHERS = "max pool"  # cases without products
RIGHT = ["^max pool: "]


def names(cases, passed):
    return [case["name"] for case in cases if case["passed"] == passed]


def planted(bug):
    return {"CPUTRAIN_PLUGINS": BUGS, "PLANTED_BUG": bug}


class Selftest(ProgramTest):
    def result(self, code, *words, **environment):
        done = self.expect(code, "selftest", "--backend", "cuda", *words, "--json", "-", timeout=280, **environment)
        self.assertIn("EMULATED device", done.stderr)
        return json.loads(done.stdout)

    def test_all_kernels_pass(self):
        found = self.result(0)
        self.assertEqual((found["backend"], found["emulated"], found["failed"]), ("cuda", True, 0))
        self.assertGreaterEqual(found["passed"], 40)
        here = "\n".join(names(found["cases"], True))
        self.assertEqual(len(set(here.splitlines())), found["passed"], "two cases have one name")
        for direction in ("forward", "data", "weights"):
            for tile in TILES:
                for slices in (r"1 slice\b", r"[1-9]\d* slices"):
                    self.assertRegex(here, f"convolution {direction}, {tile} tiles, {slices}")
            for numbers in ("tf32", "bf16"):
                for kind in (r"128x128 tiles, \d+ slices?", "128x32 tiles, .*"):
                    self.assertRegex(here, rf"convolution {direction}, {kind} in {numbers}\b")
                if direction != "weights":
                    self.assertRegex(here, rf"convolution {direction}, 256x64 tiles, 1 slice in {numbers}\b")
        for what in ("data", "weights"):
            self.assertRegex(here, f"convolution {what}, .*, added")
        for numbers in ("", " in tf32", " in bf16"):
            self.assertIn(f"first block{numbers}, with a bias, added", here)
        for size in range(1, 8):
            self.assertIn(f" {size}x{size}, stride ", here)
        for stride in (1, 2, 3):
            for padding in ("same", "valid"):
                self.assertRegex(here, rf"convolution forward.* \dx\d, stride {stride}, {padding}")
        for numbers in ("tf32", "bf16"):
            self.assertIn(f"({numbers})", here)
            for what in ("max pool", "average pool", "relu of .*", "dropout", "cross-entropy, .*", "rounded numbers",
                         "products of tensor cores"):
                self.assertRegex(here, f"{what} in {numbers}\\b")
        for word in ("batch norm: ", "batch norm with addition with ReLU", "sum of 3 maps", "without a bias",
                     "max pool, added", "average pool, added", "global average pool, added", "bytes to numbers",
                     "relu", "dropout", "cross-entropy", "triad", "products of tensor cores", "Adam", "norms",
                     "copies"):
            self.assertIn(word, here)
        self.assertEqual([w["name"] for w in found["left_out"]], [])

    def expect_found(self, cases, failing, right):
        """Cases whose names match `failing` are among those that fail, none that matches `right`. Returns the bad."""
        bad = names(cases, False)
        for pattern in failing:
            self.assertTrue(any(re.search(pattern, name) for name in bad), f"no failed {pattern}: {bad}")
        for pattern in right:
            self.assertFalse([name for name in bad if re.search(pattern, name)])
            self.assertTrue(any(re.search(pattern, name) for name in names(cases, True)), pattern)
        return [case for case in cases if not case["passed"]]

    def kernel_cases(self, bug, *patterns):
        """Those of the kernels alone that have one of the patterns in their names, with the bug."""
        done = subprocess.run([KERNEL_CASES, *patterns], env={**os.environ, **planted(bug)}, text=True, timeout=280,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1 if bug else 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_a_device_that_computes_nothing(self):
        found = self.result(1, "--precision", "exact", CPUTRAIN_EMULATED_KERNELS="skip")
        self.assertEqual(len(names(found["cases"], False)), found["failed"])
        self.assertGreater(found["failed"], found["passed"])

    def test_bugs_sleep_until_they_are_named(self):
        cases = self.kernel_cases("", "32x128 tiles", "pool", "groups", "batch norm")
        self.assertGreater(len(cases), 50)
        self.assertEqual(names(cases, False), [])

    def test_a_swapped_fragment(self):
        bad = self.expect_found(self.kernel_cases("swapped_fragment", "convolution forward.*dense", OTHERS),
                                [rf"^convolution forward, {t}" for t in TILES], RIGHT)
        self.assertTrue(all(re.search(r"\[\d+\] is \S+ instead of ", c["wrong"]) for c in bad), bad)

    def test_a_wrong_padding(self):
        self.expect_found(self.kernel_cases("wrong_padding", "pool"), ["^max pool: .* same"],
                          ["pool.* valid", "^global average pool: "])

    def test_channels_of_another_group(self):
        self.expect_found(self.kernel_cases("wrong_group", "groups"),
                          ["^convolution: .* in 2 groups", "^gradients of weights: .* in 3 groups"],
                          ["^convolution: .* in 32 groups", "^gradient of src: "])

    def test_mistakes_in_the_first_block(self):
        for bug, failing, right in (("lost_zeros", ["^first block.* same"], ["^first block.* valid"]),
                                    ("lost_cut", ["^first block"], ["^max pool"]),
                                    ("wrong_place", ["^first block: ", "^first block in tf32"], ["^first block in bf16"]),
                                    ("lost_half", ["^first block: "], ["^first block in (tf32|bf16)"]),
                                    ("early_gradients", ["for 1 multiprocessor$"], ["for 132 multiprocessors$"])):
            with self.subTest(bug):
                self.expect_found(self.kernel_cases(bug, "first block", "max pool"), failing, right)

    def test_an_add_that_is_missing(self):
        self.expect_found(self.kernel_cases("missing_add", "convolution (forward|data).*(dense|3x3)"),
                          ["^convolution data.*1 slice, added", "^convolution forward.*1 slice.*, with addition"],
                          ["^convolution data, [^,]* tiles, [^,]*: ", "^convolution forward, [^,]* tiles, [^,]*: "])

    def test_moments_of_some_lanes(self):
        bad = self.expect_found(self.kernel_cases("lost_line", "convolution forward.*dense", OTHERS),
                                ["^convolution forward, .* with addition and moments"],
                                ["^convolution forward, [^,]* tiles, [^,]*: ", *RIGHT])
        self.assertTrue(all(re.search("^(means|squares)", case["wrong"]) for case in bad), bad)

    def test_slopes_that_are_not_cut(self):
        bad = self.expect_found(self.kernel_cases("uncut_slopes", "convolution data.*(dense|3x3)", OTHERS),
                                ["^convolution data, .*, added, with slopes"],
                                ["^convolution data, [^,]* tiles, [^,]*: ", *RIGHT])
        self.assertTrue(all(re.search("^(sums|products)", case["wrong"]) for case in bad), bad)

    def test_a_row_that_is_not_written(self):
        bad = self.expect_found(self.kernel_cases("unwritten_row", "convolution weights.*(dense|3x3)", OTHERS),
                                ["^convolution weights, .*1 slice: "], RIGHT)
        self.assertTrue(any("nan instead of" in c["wrong"] for c in bad), bad)
        self.assertTrue(any(not c["repeats"] for c in bad), bad)

    def test_a_tap_in_the_place_of_another(self):
        self.expect_found(self.kernel_cases("wrong_tap", "convolution forward.*3x3", OTHERS),
                          ["^convolution forward, .* 3x3", "^convolution forward, .* bf16"], RIGHT)

    def test_a_mask_that_ends_too_early(self):
        self.expect_found(self.kernel_cases("wrong_mask", "convolution forward.*(3x3|2x2)", OTHERS),
                          ["^convolution forward, .* 3x3, .* same", "^convolution forward, .* 2x2, .* valid"], RIGHT)

    def test_a_stage_that_is_read_too_early(self):
        self.expect_found(self.kernel_cases("stale_stage", "convolution data.*dense", OTHERS),
                          ["^convolution data, "], RIGHT)

    def test_the_rest_of_a_sum(self):
        self.expect_found(self.kernel_cases("lost_depth", "convolution forward.*dense", OTHERS),
                          ["^convolution forward, "], RIGHT)

    def test_mistakes_in_batch_norm(self):
        for bug, failing, right in (("lost_part", ["^batch norm"], ["^sum of "]),
                                    ("wrong_relu_mask", ["^batch norm with addition with ReLU"],
                                     ["^batch norm with ReLU", "^batch norm with addition[:,]"]),
                                    ("lost_addition", ["^batch norm with addition with ReLU"],
                                     ["^batch norm with ReLU", "^batch norm with addition[:,]"]),
                                    ("factors_of_padding", ["^batch norm"], ["^sum of "])):
            with self.subTest(bug):
                bad = self.expect_found(self.kernel_cases(bug, "batch norm", "sum of"), failing, right)
        self.assertTrue(all("is 1 instead of 0" in c["wrong"] for c in bad), bad)


if __name__ == "__main__":
    unittest.main()
