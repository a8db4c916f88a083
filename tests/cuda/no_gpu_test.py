"""The program that people have, on a machine without a GPU: it says why, and computes on the CPU as ever."""
import json
import os
import subprocess
import unittest

from program import SMALL, ProgramTest, needs_mpi

TRAIN = ["train", *SMALL, "--steps", "1", "--limit-val", "0"]
CUDA = ["--backend", "cuda", "--precision", "exact"]
HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}


class NoGpu(ProgramTest):
    def cuda(self, **environment):
        return json.loads(self.expect(0, "info", "--json", "-", **environment).stdout)["cuda"]

    def test_what_is_missing_is_said(self):
        here = self.cuda(**HIDDEN)
        self.assertFalse(here["available"])
        self.assertTrue(any(word in here["reason"] for word in ("driver", "no CUDA device", "no backend cuda")), here)
        done = self.expect(2, *TRAIN, *CUDA, "--out", "x", says=["--backend cuda", here["reason"], here["remedy"]],
                           **HIDDEN)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("x")))
        self.expect(0, "info", says=["GPUs for --backend cuda: none here", here["reason"]], **HIDDEN)

    def test_a_variable_that_hides_gpus_is_named(self):
        if "no backend cuda" in self.cuda(**HIDDEN)["reason"]:
            self.skipTest("this build has no plugin")
        self.assertIn('CUDA_VISIBLE_DEVICES is ""', self.cuda(**HIDDEN)["reason"])

    def test_a_driver_that_is_too_old_is_told_from_none(self):
        here = self.cuda(LD_LIBRARY_PATH=os.environ["CUDA_TESTS_OLD_DRIVER"])
        if here["reason"].startswith("this build"):
            self.skipTest("this build has no plugin")
        self.assertIn("an NVIDIA driver for CUDA 11.8 alone", here["reason"])
        self.assertRegex(here["reason"], r"this build's CUDA 1[23]\.\d+ needs driver (525|580) or newer")
        self.assertIn("backends/README.md", here["remedy"])

    @needs_mpi
    def test_ranks_say_it_once(self):
        done = self.expect(2, *TRAIN, *CUDA, ranks=3, **HIDDEN)
        said = [line for line in done.stderr.splitlines() if line.startswith("cputrain:")]
        self.assertEqual(len(said), 1, done.stderr)

    def test_it_has_no_doubles(self):
        if self.cuda(**HIDDEN)["reason"].startswith("this build"):
            self.skipTest("this build has no plugin")
        self.expect(2, *TRAIN, "--backend", "cuda", "--precision", "double",
                    says=["--precision double needs --backend"])

    def test_what_computes_nothing_needs_none(self):
        self.expect(0, "info", says=["GPUs for --backend cuda: none here", "Backend: "], **HIDDEN)
        self.expect(0, "data", "info", "synthetic:10", **HIDDEN)
        if self.cuda(**HIDDEN)["reason"].startswith("this build"):
            self.skipTest("this build has no plugin")
        self.expect(0, "info", "--backend", "cuda", says=["GPUs for --backend cuda: none here", "Backend: "], **HIDDEN)
        self.expect(0, "data", "info", "synthetic:10", CPUTRAIN_BACKEND="cuda", **HIDDEN)

    def test_its_column_of_a_sweep_is_empty(self):
        if self.cuda(**HIDDEN)["reason"].startswith("this build"):
            self.skipTest("this build has no plugin")
        self.expect(0, "sweep", "--backend", "cpu,cuda", "--np", "1", "--data", "synthetic:40", "--image-size", "64",
                    "--batch", "8", "--steps", "2", "--repeat", "1", "--out", "s", says=["there is no device for it here"],
                    **HIDDEN)
        found = {cell["backend"]: cell["status"] for cell in self.json_of("s/cells.json")["cells"]}
        self.assertEqual(found, {"cpu": "scaled", "cuda": "n/a"})

    def test_exact_is_float_on_a_cpu(self):
        hashes = []
        for precision in ("float", "exact"):
            self.expect(0, *TRAIN, "--reproducible", "--precision", precision, "--out", precision)
            hashes.append(self.metrics(precision, "summary")[-1]["weights_hash"])
        self.assertEqual(*hashes)


class NoCudnn(unittest.TestCase):
    """Convolutions are our own."""

    def test_no_source_names_it(self):
        root = os.environ["CUDA_TESTS_ROOT"]
        for top in ("src", "backends", "datasets", "scripts"):
            for folder, _, names in os.walk(os.path.join(root, top)):
                for name in names:
                    if name.endswith((".h", ".cpp", ".cu", ".inl", ".txt", ".cmake")):
                        with open(os.path.join(folder, name), errors="replace") as file:
                            text = file.read()
                        self.assertNotRegex(text, r"(?i)include.*cudnn|lib?cudnn|-lcudnn|cudnn[A-Z_]", name)

    def test_nothing_that_is_built_needs_it(self):
        build = os.environ["CUDA_TESTS_BUILD"]
        built = [name for name in os.listdir(build) if name.endswith(".so") or name == "cputrain"]
        self.assertIn("cputrain", built)
        for name in built:
            needed = subprocess.run(["readelf", "-d", "--dyn-syms", "-W", os.path.join(build, name)], text=True,
                                    capture_output=True, check=True).stdout
            self.assertIn("NEEDED", needed)
            self.assertNotIn("cudnn", needed.lower())


if __name__ == "__main__":
    unittest.main()
