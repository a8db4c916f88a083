"""`selftest --backend cuda` on the emulated device: all kernels pass, and bugs that are planted in them do not."""
import json
import os
import re
import unittest

from program import ProgramTest

BUGS = os.path.join(os.environ["CUDA_TESTS_BUILD"], "tests", "cuda", "bugs")
TILES = ("tall", "wide", "square", "large")


def names(result, passed):
    return [case["name"] for case in result["cases"] if case["passed"] == passed]


class Selftest(ProgramTest):
    def result(self, code, **environment):
        done = self.expect(code, "selftest", "--backend", "cuda", "--json", "-", timeout=280, **environment)
        self.assertIn("EMULATED device", done.stderr)
        return json.loads(done.stdout)

    def test_all_kernels_pass(self):
        found = self.result(0)
        self.assertEqual((found["backend"], found["emulated"], found["failed"]), ("cuda", True, 0))
        self.assertGreaterEqual(found["passed"], 40)
        here = "\n".join(names(found, True))
        self.assertEqual(len(set(here.splitlines())), found["passed"], "two cases have one name")
        for direction in ("forward", "data", "weights"):
            for tile in TILES:
                for slices in (r"1 slice\b", r"[1-9]\d* slices"):
                    self.assertRegex(here, f"convolution {direction}, {tile} tiles, {slices}")
        for what in ("data", "weights"):
            self.assertRegex(here, f"convolution {what}, .*, added")
        for size in range(1, 8):
            self.assertIn(f" {size}x{size}, stride ", here)
        for stride in (1, 2, 3):
            for padding in ("same", "valid"):
                self.assertRegex(here, rf"convolution forward.* \dx\d, stride {stride}, {padding}")
        for word in ("without a bias", "max pool, added", "average pool, added", "global average pool, added",
                     "bytes to numbers", "relu", "dropout", "cross-entropy", "triad",
                     "products of tensor cores", "Adam", "norms", "copies"):
            self.assertIn(word, here)
        self.assertEqual([w["name"].split(",")[0].split(":")[0].split(" (")[0] for w in found["left_out"]],
                         ["zero padding", "zero padding", "batch norm", "batch norm", "branches that are added"])

    def expect_found(self, bug, failing, right):
        """The bug's plugin: cases whose names match `failing` are among those that fail, none that matches `right`."""
        found = self.result(1, CPUTRAIN_PLUGINS=os.path.join(BUGS, bug))
        bad = names(found, False)
        self.assertEqual(len(bad), found["failed"])
        for pattern in failing:
            self.assertTrue(any(re.search(pattern, name) for name in bad), f"no failed {pattern}: {bad}")
        for pattern in right:
            self.assertFalse([name for name in bad if re.search(pattern, name)])
            self.assertTrue(any(re.search(pattern, name) for name in names(found, True)), pattern)
        return [case for case in found["cases"] if not case["passed"]]

    def test_a_swapped_fragment(self):
        bad = self.expect_found("swapped_fragment", [rf"^convolution forward, {t}" for t in TILES],
                                ["^convolution data", "^convolution weights", "^max pool: ", "update"])
        self.assertTrue(all(re.search(r"\[\d+\] is \S+ instead of ", c["wrong"]) for c in bad), bad)

    def test_a_wrong_padding(self):
        self.expect_found("wrong_padding", ["^max pool: .* same"],
                          ["^convolution forward", "pool.* valid", "^global average pool: "])

    def test_an_add_that_is_missing(self):
        self.expect_found("missing_add", ["^convolution data.*1 slice, added"],
                          ["^convolution data, [^,]* tiles, [^,]*: ", "^convolution weights"])

    def test_a_row_that_is_not_written(self):
        bad = self.expect_found("unwritten_row", ["^convolution weights, .*1 slice: "], ["^convolution data"])
        self.assertTrue(any("nan instead of" in c["wrong"] for c in bad), bad)
        self.assertTrue(any(not c["repeats"] for c in bad), bad)

    def test_the_rest_of_a_sum(self):
        self.expect_found("lost_depth", ["^convolution forward, "], ["^convolution data", "^convolution weights"])


if __name__ == "__main__":
    unittest.main()
