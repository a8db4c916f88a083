"""The kept tables of what kernels take and of their instructions are those of the kernels, which are compiled once for
both. That takes more than a minute."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.environ["CUDA_TESTS_ROOT"]
SKIPPED = 77


class Tables(unittest.TestCase):
    def test_they_are_those_of_the_kernels(self):
        with tempfile.TemporaryDirectory(prefix="cputrain-test-") as built:
            for what in ("resources", "instructions"):
                with self.subTest(what):
                    done = subprocess.run([os.path.join(ROOT, "scripts", "kernel_" + what)], text=True,
                                          capture_output=True, env={**os.environ, "KERNELS_BUILT": built})
                    if done.returncode == SKIPPED:
                        self.skipTest(done.stdout.strip())
                    with open(os.path.join(ROOT, "results", "gpu-kernels", what + ".txt")) as kept:
                        self.assertEqual(done.stdout, kept.read())
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
