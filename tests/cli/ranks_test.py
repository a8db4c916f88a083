"""The same curve whatever the number of processes, through the program itself."""
import os
import subprocess
import unittest

from program import OPEN_MPI, SMALL, ProgramTest, mpirun, needs_mpi

SGD = ["--optimizer", "sgd", "--steps", "5"]


@needs_mpi
class Ranks(ProgramTest):
    def losses(self, run, *words, **options):
        steps = self.train(run, *words, **options)
        last = self.metrics(run, "epoch")[-1]
        return [s["loss"] for s in steps] + [last["val_loss"]]

    def assert_near(self, a, b, tolerance):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLessEqual(abs(x - y), tolerance * abs(x), f"{a} {b}")

    def test_float_curves_agree(self):
        alone = self.losses("1", *SGD)
        for ranks in (2, 3, 7):
            self.assert_near(alone, self.losses(str(ranks), *SGD, ranks=ranks), 1e-3)

    def test_double_curves_agree_with_the_papers_optimizer(self):
        words = ["--backend", "reference", "--precision", "double", "--batch", "5", "--steps", "3",
                 "--limit-train", "15", "--limit-val", "4"]
        alone = self.losses("1", *words)
        self.assert_near(alone, self.losses("3", *words, ranks=3), 1e-9)

    def test_ranks_without_images_change_nothing(self):
        words = [*SGD, "--batch", "2", "--limit-train", "6", "--limit-val", "2"]
        self.assert_near(self.losses("1", *words), self.losses("4", *words, ranks=4), 1e-3)

    def test_ninety_six_ranks(self):
        words = ["--image-size", "48", "--data", "synthetic:200", "--batch", "128", "--steps", "1",
                 "--limit-val", "20", "--optimizer", "sgd"]
        alone = self.losses("1", *words)
        self.assert_near(alone, self.losses("96", *words, ranks=96), 1e-3)

    def test_info_names_the_mpi(self):
        done = self.expect(0, "info", ranks=1)
        self.assertRegex(done.stdout, r"(?m)^Ranks: [A-Z]\w+( MPI)? \d+(\.\d+)+\S*$")

    def test_ranks_that_disagree_end_with_64(self):
        script = self.path("start")
        with open(script, "w") as f:
            f.write('#!/bin/sh\nexec "$CPUTRAIN" "$@" --seed "${OMPI_COMM_WORLD_RANK-$PMI_RANK}"\n')
        os.chmod(script, 0o755)
        done = subprocess.run([*mpirun(3), script, *SMALL, "--out", "run"], cwd=self.folder,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        # MPICH's launcher may tell the signal instead that it then ends ranks with.
        self.assertIn(done.returncode, [64] if OPEN_MPI else [64, 9], done.stderr)
        self.assertIn("ranks 1", done.stderr)


if __name__ == "__main__":
    unittest.main()
