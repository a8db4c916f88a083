"""A packed file that changes under a training: it ends with 65, what was learnt until then is saved, and goes on."""
import os
import shutil
import struct
import unittest

from program import PROGRAM, mpirun, needs_mpi
from tiny import TinyTest

WORDS = ["--model", "tiny.json", "--data", "try.ctpack", "--threads", "1", "--log-every", "1", "--resume", "auto",
         "--no-winograd", "--no-skip-zeros"]  # no choice of kernels by measuring: weights are compared


class ChangedData(TinyTest):
    def setUp(self):
        super().setUp()
        self.make("data", cat=20, dog=20)
        self.expect(0, "data", "pack", "data", "try.ctpack", "--image-size", "16", "--seed", "1")
        shutil.copy(self.path("try.ctpack"), self.path("whole.ctpack"))

    def change(self, part=None, cut=False):
        """Cuts the file, or writes other pixels over those of a part (0: training, 1: validation): in place, as cp
        does."""
        with open(self.path("try.ctpack"), "r+b") as f:
            head = f.read(80)
            images, pixels_at = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<Q", head, 56)[0]
            if cut:
                f.truncate(pixels_at + 10)
                return
            parts = [struct.unpack_from("<I", f.read(12), 4)[0] for _ in range(images)]
            for i, each in enumerate(parts):
                if each == part:
                    f.seek(pixels_at + i * 16 * 16 * 3)
                    f.write(bytes(16 * 16 * 3))

    def start_and_change(self, run, launch=(), **how):
        """The output of a training without end, under which the file changes after some steps."""
        text = self.disturbed([*launch, PROGRAM, *WORDS, "--out", run, "--epochs", "1000000"],
                              lambda: len(self.lines(run)) >= 8, lambda: self.change(**how))
        self.assertIn("try.ctpack", text)
        return text

    def expect_going_on(self, run, text, ranks=0):
        """From the last step that was told, which a training that was never disturbed has, too."""
        steps = [m["step"] for m in self.metrics(run, "step")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertIn(f"ckpt-{len(steps):09}", os.listdir(self.path(run)))
        self.assertIn(f"Stopped after step {len(steps)}", text)
        os.replace(self.path("whole.ctpack"), self.path("try.ctpack"))
        for name in (run, "undisturbed"):
            self.expect(0, *WORDS, "--out", name, "--steps", str(len(steps) + 3), ranks=ranks)
        summaries = [self.metrics(name, "summary")[0] for name in (run, "undisturbed")]
        self.assertEqual(*(s["weights_hash"] for s in summaries))
        self.assertEqual([m["loss"] for m in self.metrics(run, "step")],
                         [m["loss"] for m in self.metrics("undisturbed", "step")])

    def test_cut(self):
        text = self.start_and_change("run", cut=True)
        self.assertIn("has changed since it was opened: it has become shorter", text)
        self.expect_going_on("run", text)

    def test_other_pixels_to_learn_from(self):
        text = self.start_and_change("run", part=0)
        self.assertIn("wrong checksum", text)
        self.expect_going_on("run", text)

    def test_other_pixels_to_validate_with(self):
        text = self.start_and_change("run", part=1)
        self.assertIn("wrong checksum", text)
        self.expect_going_on("run", text)

    @needs_mpi
    def test_cut_under_several_ranks(self):
        text = self.start_and_change("run", mpirun(2), cut=True)
        self.assertEqual(text.count("has become shorter"), 1, text[-2000:])
        self.expect_going_on("run", text, ranks=2)

    def test_a_new_file_of_the_name_does_not_disturb(self):
        """As data pack itself writes one."""
        with open(self.path("try.ctpack"), "rb") as before:
            self.expect(0, "data", "pack", "data", "try.ctpack", "--image-size", "8")
            before.seek(0)
            self.assertEqual(before.read(), self.bytes_of("whole.ctpack"))


if __name__ == "__main__":
    unittest.main()
