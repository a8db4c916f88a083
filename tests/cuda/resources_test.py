"""The kept table of what kernels take is that of the kernels, and none of them spills."""
import os
import re
import subprocess
import unittest

ROOT = os.environ["CUDA_TESTS_ROOT"]
SCRIPT = os.path.join(ROOT, "scripts", "kernel_resources")
SKIPPED = 77


class Resources(unittest.TestCase):
    def test_the_table_is_that_of_the_kernels(self):
        done = subprocess.run([SCRIPT], text=True, capture_output=True)
        if done.returncode == SKIPPED:
            self.skipTest(done.stdout.strip())
        with open(os.path.join(ROOT, "backends/cuda/kernels/resources.txt")) as file:
            self.assertEqual(done.stdout, file.read())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_spills(self):
        with open(os.path.join(ROOT, "backends/cuda/kernels/resources.txt")) as file:
            head, _, *rows = file.read().splitlines()
        self.assertRegex(head, r"^nvcc \d+\.\d+")
        files = {name for name in os.listdir(os.path.join(ROOT, "backends/cuda/kernels")) if name.endswith(".cu")}
        seen = set()
        for row in rows:
            name, *figures = row.split(maxsplit=7)[:7]
            seen.add(name)
            self.assertEqual((figures[2], figures[5]), ("0", "0"), f"spills: {row}")
            for registers in (figures[0], figures[3]):
                self.assertTrue(1 <= int(registers) <= 255, row)
        with_kernels = {name for name in files if re.search("__global__", self.text(name))}
        self.assertLessEqual(with_kernels, seen)  # others have theirs from templates in headers
        self.assertLessEqual(seen, files)

    @staticmethod
    def text(name):
        with open(os.path.join(ROOT, "backends/cuda/kernels", name)) as file:
            return file.read()


if __name__ == "__main__":
    unittest.main()
