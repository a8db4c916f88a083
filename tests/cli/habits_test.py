"""What people type without thinking: files that begin with a hyphen, `| head`, more answers than there are classes, weights
of other programs."""
import json
import os
import shutil
import subprocess
import unittest

from program import PROGRAM, mpirun, needs_mpi
from tiny import TinyTest


class HabitsTest(TinyTest):
    def setUp(self):
        super().setUp()
        self.make("d", a=6, b=6)
        self.words = ["--model", "tiny.json", "--data", "d", "--threads", "1", "--epochs", "2"]

    def piped(self, *words, to="head -n 1", both=False, ranks=0):
        """The exit code of the program whose reader goes away, and what stood on standard error."""
        launch = mpirun(ranks) if ranks else []
        redirect = "2>&1" if both else "2>errors.txt"
        done = subprocess.run(["bash", "-c", f'"$@" {redirect} | {to} >/dev/null; exit ${{PIPESTATUS[0]}}', "bash", *launch,
                               PROGRAM, *words], cwd=self.folder, timeout=120, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = ""
        if not both:
            with open(self.path("errors.txt")) as f:
                text = f.read()
        return done.returncode, text + done.stdout.decode()


class Hyphens(HabitsTest):
    def test_files_of_any_name(self):
        self.expect(0, *self.words, "--out", "run")
        weights = ["--weights", "run/weights.safetensors"]
        shutil.copy(self.path("d/a/0.bmp"), self.path("-1.bmp"))
        shutil.copy(self.path("d/b/0.bmp"), self.path("--top"))
        done = self.expect(0, "predict", *weights, "--json", "-", "d/a/0.bmp", "--", "-1.bmp", "--top")
        answers = {p["file"]: p for p in json.loads(done.stdout)["predictions"]}
        self.assertEqual(list(answers), ["d/a/0.bmp", "-1.bmp", "--top"])
        self.assertEqual(answers["-1.bmp"]["probabilities"], answers["d/a/0.bmp"]["probabilities"])
        self.expect(2, "predict", *weights, "-1.bmp", says=["-1.bmp is not a flag", "a file of this name stands behind --"])
        # So in every command that takes files or folders.
        os.rename(self.path("d"), self.path("-d"))
        self.expect(0, "data", "info", "--", "-d", says=["12 files"])
        self.expect(0, "data", "check", "--json", "c.json", "--", "-d")
        self.expect(0, "data", "pack", "--image-size", "16", "--", "-d", "-d.ctpack")
        self.expect(0, "data", "info", "--", "-d.ctpack", says=["12 packed images"])
        self.expect(0, "data", "synth", "--images", "4", "--image-size", "16", "--", "-made")
        self.assertTrue(os.path.isdir(self.path("-made")))
        os.rename(self.path("run"), self.path("-run"))
        self.expect(0, "report", "--out", "table", "--", "-run")
        self.expect(0, "predict", "--weights", "-run/weights.safetensors", "--", "-1.bmp")
        self.expect(0, "eval", "--weights", "-run/weights.safetensors", "--data", "-d")
        self.expect(2, "--", "-d", says=["-d"])


class Readers(HabitsTest):
    FILES = {"config.json", "environment.json", "metrics.jsonl", "training.csv", "history.json", "weights.safetensors"}

    def finished(self, run):
        self.assertLessEqual(self.FILES, set(os.listdir(self.path(run))))
        self.assertEqual(self.metrics(run, "summary")[0]["outcome"], "finished")
        self.assertEqual(len(self.metrics(run, "epoch")), 2)

    def test_a_training_is_done_whoever_reads_on(self):
        for number, options in enumerate([{}, {"both": True}, {"to": "true"}, {"to": "true", "both": True}]):
            with self.subTest(options):
                run = f"run{number}"
                code, text = self.piped(*self.words, "--out", run, **options)
                self.assertEqual(code, 0, text)
                self.finished(run)
        hashes = {self.metrics(f"run{n}", "summary")[0]["weights_hash"] for n in range(4)}
        self.assertEqual(len(hashes), 1)

    @needs_mpi
    def test_under_mpirun_too(self):
        """For standard output alone: mpirun of Open MPI 4 crashes by itself where the reader of its standard error goes away."""
        code, text = self.piped(*self.words, "--out", "run", ranks=2, to="true")
        self.assertEqual(code, 0, text)
        self.finished("run")

    def test_files_that_were_written_are_done(self):
        for words in (["data", "pack", "d", "d.ctpack", "--image-size", "16"], ["data", "synth", "made", "--images", "4"]):
            with self.subTest(words):
                self.assertEqual(self.piped(*words, to="true")[0], 0)
        self.expect(0, "data", "info", "d.ctpack")

    def test_results_that_nobody_reads_are_lost(self):
        """As other programs are ended by such a pipe: the code is not 0."""
        self.expect(0, *self.words, "--out", "run")
        weights = ["--weights", "run/weights.safetensors"]
        for words in (["predict", *weights, "d"], ["predict", *weights, "d", "--json", "-"],
                      ["eval", *weights, "--data", "d", "--json", "-"], ["data", "info", "d"], ["info"],
                      [*self.words, "--dry-run", "--json", "-"], ["--help"]):
            with self.subTest(words):
                code, text = self.piped(*words, to="true")
                self.assertEqual(code, 74, text)
                self.assertIn("standard output", text)

    def test_a_full_disk_is_still_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *self.words, "--out", "run"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.finished("run")


class Answers(HabitsTest):
    def test_more_answers_than_classes(self):
        self.expect(0, *self.words, "--out", "run")
        weights = ["--weights", "run/weights.safetensors"]
        done = self.expect(0, "predict", *weights, "--top", "5", "d/a/0.bmp")
        self.assertEqual(done.stderr.count("--top 5: the weights know 2 classes"), 1)
        self.assertEqual(done.stdout.count("%"), 2)
        done = self.expect(0, "predict", *weights, "--top", "2", "d/a/0.bmp")
        self.assertNotIn("--top", done.stderr)
        done = self.expect(0, "eval", *weights, "--data", "d", "--json", "r.json", says=["Accuracy @ 1 = "])
        with open(self.path("r.json")) as file:
            self.assertNotIn("top_5", file.read())  # of two classes the right one is always among the best five
        self.assertNotIn("@ 5", done.stdout)

    def test_weights_that_do_not_describe_themselves(self):
        self.expect(0, *self.words, "--out", "run")
        before = self.metrics("run", "summary")[0]["weights_hash"]
        self.change_weights("run", lambda metadata, tensors: metadata.clear())
        foreign = ["--weights", "run/weights.safetensors"]
        for more in ([], ["--partial"]):
            self.expect(0, *self.words, *foreign, *more, "--lr", "0", "--out", "next", "--overwrite",
                        says=["says nothing about itself", "by name", "tiny", "16x16x3"])
            self.assertEqual(self.metrics("next", "summary")[0]["weights_hash"], before)
        # Without a model there is nothing to be right or wrong.
        self.expect(65, "eval", *foreign, "--data", "d", says=["does not say its"])
        done = self.expect(0, *self.words, "--weights", "next/weights.safetensors", "--out", "third")
        self.assertNotIn("says nothing", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
