"""--precision: who may compute in which, and that a training with narrow factors learns what floats learn."""
import os
import unittest

from program import ProgramTest, SMALL

TRAIN = ["train", *SMALL, "--image-size", "96", "--batch", "12", "--epochs", "3", "--limit-val", "0",
         "--optimizer", "sgd", "--lr", "0.05", "--no-winograd", "--no-skip-zeros"]


class Precision(ProgramTest):
    def losses(self, run, *words):
        self.expect(0, *TRAIN, "--out", run, *words)
        return [epoch["loss"] for epoch in self.metrics(run, "epoch")]

    def test_bf16_learns_like_float(self):
        if "oneDNN" not in self.expect(0, "info").stdout:
            self.skipTest("this build has one way to compute only")
        asked = self.run_program(*TRAIN, "--precision", "bf16", "--dry-run")
        if asked.returncode == 2 and "no instructions" in asked.stderr:
            self.skipTest("this machine has no bf16 instructions")
        plain, narrow = self.losses("float"), self.losses("bf16", "--precision", "bf16")
        self.assertLess(plain[-1], 0.99 * plain[0])
        for a, b in zip(plain, narrow, strict=True):
            self.assertAlmostEqual(a, b, delta=2e-3 * a)
        self.assertNotEqual(plain, narrow)
        # The fixed rule, which takes bf16 wherever it may, gives the same bits twice.
        first, again = (self.losses(run, "--precision", "bf16", "--reproducible") for run in "ab")
        self.assertEqual(first, again)
        self.assertNotEqual(first, self.losses("c", "--reproducible"))

    def test_a_cpu_without_the_instructions_is_told(self):
        if "oneDNN" not in self.expect(0, "info").stdout:
            self.skipTest("this build has one way to compute only")
        self.expect(2, *TRAIN, "--out", "x", "--precision", "bf16", ONEDNN_MAX_CPU_ISA="AVX2",
                    says=["--precision bf16", "AVX512-BF16"])
        self.assertFalse(os.path.exists(self.path("x")))


if __name__ == "__main__":
    unittest.main()
