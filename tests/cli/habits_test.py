"""What people type without thinking: files that begin with a hyphen, `| head`, more answers than there are classes,
weights of other programs."""
import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import unittest

from program import MPIRUN, PROGRAM, mpirun, needs_mpi
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
        done = subprocess.run(["bash", "-c", f'"$@" {redirect} | {to} >/dev/null; exit ${{PIPESTATUS[0]}}', "bash",
                               *launch,
                               PROGRAM, *words], cwd=self.folder, timeout=120, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = ""
        if not both:
            text = self.text_of("errors.txt")
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
        self.expect(2, "predict", *weights, "-1.bmp",
                    says=["-1.bmp is not a flag", "a file of this name stands behind --"])
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
        """For standard output alone: mpirun of Open MPI 4 crashes by itself where the reader of its standard error goes
        away."""
        code, text = self.piped(*self.words, "--out", "run", ranks=2, to="true")
        self.assertEqual(code, 0, text)
        self.finished("run")

    def test_files_that_were_written_are_done(self):
        for words in (["data", "pack", "d", "d.ctpack", "--image-size", "16"],
                      ["data", "synth", "made", "--images", "4"]):
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
            done = subprocess.run([PROGRAM, *self.words, "--out", "run"], cwd=self.folder, stdin=subprocess.DEVNULL,
                                  stdout=full,
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
        done = self.expect(0, "eval", *weights, "--data", "d", "--json", "r.json", says=[" - accuracy: "])
        self.assertNotIn("top_5", self.text_of("r.json"))  # of two classes the right one is always among the best five
        self.assertNotIn("top-5", done.stdout)
        self.assertNotIn("Accuracy @", done.stdout)  # the same figure again

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


class RunFolders(HabitsTest):
    """--weights takes the folder of a run."""

    def result(self, *words, says=(), code=0):
        done = self.expect(code, *words, "--threads", "1", "--json", "-", says=says)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def same(self, a, b):
        self.assertEqual([a[k] for k in ("loss", "accuracy", "images", "part", "classes")],
                         [b[k] for k in ("loss", "accuracy", "images", "part", "classes")])

    def file(self, name, *words):
        return self.result("eval", "--weights", name, "--data", "d", *words)

    def test_eval_knows_weights_and_data(self):
        self.expect(0, *self.words, "--lr", "0.5", "--save-best", "--out", "runs/a")
        best, last = self.file("runs/a/best.safetensors"), self.file("runs/a/weights.safetensors")
        self.same(self.result("eval", "--weights", "runs/a", says=[
            "takes runs/a/best.safetensors", "of its end are in runs/a/weights.safetensors", "held out from training",
            f"Evaluating 1 image of {os.path.realpath(self.path('d'))}, the data of the run runs/a"]), best)
        self.same(self.result("eval", "--weights", "runs/a/weights.safetensors"), last)
        newest = next(name for name in os.listdir(self.path("runs/a")) if name.startswith("ckpt-"))
        self.same(self.result("eval", "--weights", f"runs/a/{newest}/", says=["of the checkpoint"]), last)
        os.remove(self.path("runs/a/best.safetensors"))
        self.same(self.result("eval", "--weights", "runs/a/", says=["of the run's end"]), last)
        with self.subTest("data that is named goes before the run's"):
            self.make("other", a=2, b=2)
            self.assertEqual(self.result("eval", "--weights", "runs/a", "--data", "other")["images"], 4)
            variable = self.expect(0, "eval", "--weights", "runs/a", "--json", "-", CPUTRAIN_DATA="other")
            self.assertEqual(json.loads(variable.stdout)["images"], 4)
        with self.subTest("a report of the run has them"):
            self.expect(0, "report", "runs/a", says=["## Evaluations", "eval --weights runs/a --threads 1 --json -"])
            evaluations = self.json_of("runs/a/report.json")["runs"][0]["evaluations"]
            named = os.path.realpath(self.path("d"))
            self.assertEqual([(e["weights"], e["data"], e["part"], e["images"]) for e in evaluations],
                             [("weights.safetensors", os.path.join(os.path.dirname(named), "other"), "all", 4),
                              ("weights.safetensors", named, "validation", 1),
                              (f"{newest}/model.safetensors", named, "validation", 1),
                              ("best.safetensors", named, "validation", 1)])
            self.assertEqual([evaluations[1]["loss"], evaluations[1]["accuracy"]], [last["loss"], last["accuracy"]])
        with self.subTest("data that has moved"):
            os.rename(self.path("d"), self.path("moved"))
            self.result("eval", "--weights", "runs/a", code=65,
                        says=["the data of the run runs/a, ", "is not there", "--data DATA"])
            self.same(self.result("eval", "--weights", "runs/a", "--data", "moved", says=["held out from training"]), last)
            os.rename(self.path("moved"), self.path("d"))
        with self.subTest("a run that is not finished"):
            lines = self.text_of("runs/a/metrics.jsonl").splitlines(True)
            with open(self.path("runs/a/metrics.jsonl"), "w") as f:
                f.writelines(lines[:-1])
            os.remove(self.path("runs/a/weights.safetensors"))
            self.same(self.result("eval", "--weights", "runs/a", says=[newest, "is not finished"]), last)
            older = "ckpt-000000001"
            shutil.copytree(self.path("runs/a", newest), self.path("runs/a", older))
            os.truncate(self.path("runs/a", newest, "model.safetensors"), 0)
            for ranks in (0, 2) if MPIRUN else (0,):  # each looks for itself
                done = self.expect(0, "eval", "--weights", "runs/a", "--threads", "1", ranks=ranks)
                self.assertIn(f"takes runs/a/{older}/model.safetensors", done.stderr)
            shutil.rmtree(self.path("runs/a", older))
            os.remove(self.path("runs/a", newest, "MANIFEST"))
            self.result("eval", "--weights", "runs/a", code=65, says=["holds no weights", "neither ended nor"])
        self.result("eval", "--weights", "runs", code=65, says=["is not that of a run", "its newest run is runs/a"])
        self.result("eval", code=2, says=["the folder of a run"])
        self.expect(2, "eval", "runs/a", says=["--weights runs/a"])

    def test_the_same_part_of_the_data(self):
        self.make("d", a=30, b=30)
        self.expect(0, *self.words, "--validation-split", "0.5", "--seed", "5", "--limit-val", "12", "--balanced",
                    "--exif", "ignore", "--resize", "nearest", "--out", "run")
        epoch, result = self.metrics("run", "epoch")[-1], self.result("eval", "--weights", "run")
        self.assertEqual((result["images"], result["accuracy"]), (12, epoch["val_accuracy"]))
        self.assertAlmostEqual(result["loss"], epoch["val_loss"], places=6)
        self.assertEqual([c["images"] for c in result["classes"]], [6, 6])

    def test_other_commands_take_it_too(self):
        self.expect(0, *self.words, "--resize", "nearest", "--no-save-best", "--out", "run")
        one = self.result("predict", "--weights", "run", "d")
        self.assertEqual(one, self.result("predict", "--weights", "run/weights.safetensors", "d"))
        self.expect(0, "export", "--weights", "run", "--model-file", "again.json",
                    says=["takes run/weights.safetensors"])
        self.assertEqual(self.json_of("again.json")["recipe"]["resize"], "nearest")
        self.expect(0, *self.words, "--weights", "run", "--lr", "0", "--out", "next")
        hashes = {self.metrics(run, "summary")[0]["weights_hash"] for run in ("run", "next")}
        self.assertEqual(len(hashes), 1)
        with open(self.path("next/config.json")) as f:
            self.assertEqual(json.load(f)["weights"], os.path.realpath(self.path("run/weights.safetensors")))

    def test_weights_that_are_not_there_are_refused_at_once(self):
        for words in ([*self.words], [*self.words, "--dry-run"], ["eval", "--data", "d"],
                      ["export", "--onnx", "x.onnx"]):
            with self.subTest(words):
                done = self.expect(65, *words, "--weights", "imagenet",
                                   says=["--weights imagenet: ", "can be fetched", "weights list"])
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        done = self.expect(65, *self.words, "--dry-run", "--weights", "mine.safetensors",
                           says=["no such file or folder"])
        self.assertNotIn("imagenet", done.stderr)
        self.expect(65, *self.words, "--dry-run", "--weights", "pretrained", says=["are --weights imagenet"])


class Tables(HabitsTest):
    def test_predictions_as_csv(self):
        odd = 'd/a/one, "two"\nthree ä.bmp'
        shutil.copy(self.path("d/a/0.bmp"), self.path(odd))
        os.rename(self.path("d/b"), self.path('d/b, "ö"'))
        self.expect(0, *self.words, "--out", "run")
        self.write("none.bmp", "no image")
        weights, files = ["--weights", "run"], [odd, "none.bmp", "d"]
        self.expect(65, "predict", *weights, "--csv", "p.csv", "--json", "p.json", "--top", "1", *files,
                    says=["none.bmp: "])
        text = self.text_of("p.csv")
        rows = list(csv.reader(io.StringIO(text)))
        self.assertEqual(rows[0], ["file", "class", "a", 'b, "ö"'])
        self.assertEqual({len(row) for row in rows}, {4})
        told = self.json_of("p.json")["predictions"]
        self.assertEqual([row[0] for row in rows[1:]], [p["file"].replace("\n", "\\n") for p in told])
        for row, p in zip(rows[1:], told):
            if "error" in p:
                self.assertEqual(row[1:], ["", "", ""])
                continue
            best = rows[0].index(p["class"])
            self.assertEqual(row[1], p["class"])
            self.assertAlmostEqual(float(row[best]), p["probabilities"][p["class"]], places=6)
            self.assertAlmostEqual(float(row[2]) + float(row[3]), 1, places=5)
        self.assertEqual(sum("error" in p for p in told), 1)
        done = self.expect(65, "predict", *weights, "--csv", "-", *files)
        self.assertEqual(done.stdout, text.replace("\r\n", "\n"))
        for more, idle in (([], 1), (["--json", "q.json"], 0)):  # JSON has as many classes as --top says
            done = self.expect(0, "predict", *weights, "--csv", "-", "--top", "1", *more, "d")
            self.assertEqual(done.stderr.count("--top 1 changes nothing"), idle, done.stderr)
        self.expect(2, "predict", *weights, "--csv", "-", "--json", "-", "d", says=["carries one of them"])
        self.expect(74, "predict", *weights, "--csv", "no/such/p.csv", "d", says=["no/such/p.csv"])


class RunsInTheirData(HabitsTest):
    def test_a_run_in_its_data_is_told_of(self):
        for out, inside in (("d/a/run", True), ("d/run", True), ("d-run", False), ("runs/d", False)):
            with self.subTest(out):
                done = self.expect(0, *self.words, "--out", out)
                self.assertEqual(f"--out {out} lies in the data, d: " in done.stderr, inside, done.stderr)
        classes = json.loads(self.expect(0, "data", "info", "d", "--json", "-").stdout)["classes"]
        self.assertEqual([c["name"] for c in classes], ["a", "b"])  # its own files are none of the data


class FlagsWithoutEffect(HabitsTest):
    def warned(self, *words, code=0, ranks=0, **variables):
        done = self.expect(code, *self.words, "--out", "run", "--overwrite", *words, ranks=ranks, **variables)
        return {line.split()[1] for line in done.stderr.splitlines() if "changes nothing" in line}

    def test_they_say_so(self):
        self.make("parts/train", a=6, b=6)
        self.make("parts/val", a=2, b=2)
        self.assertEqual(self.warned("--bucket-mb", "3", "--lr-scale", "linear",
                                     "--warmup-epochs", "1", "--checkpoint-every", "0", "--keep", "3", "--allreduce",
                                     "ring", "--sharding", "strided", "--schedule", "step:30:0.1", "--batch-growth",
                                     "30:2", "--check-replicas", "2", "--data", "parts", "--validation-split", "0.2",
                                     "--no-winograd", "--backend", "reference"),
                         {"--bucket-mb", "--lr-scale", "--warmup-epochs", "--keep", "--allreduce",
                          "--sharding", "--schedule", "--batch-growth", "--check-replicas", "--validation-split",
                          "--no-winograd"})
        self.assertEqual(self.warned("--optimizer", "momentum=0.9", "--momentum-correction"), {"--momentum-correction"})
        self.assertEqual(self.warned("--eval-every", "2", "--limit-val", "0", "--backbone-lr", "0.01", "--augment",
                                     "flip,mixup:0"), {"--eval-every", "--backbone-lr", "--augment"})
        self.assertEqual(self.warned("--eval-every", "2", "--epochs", "1"), {"--eval-every"})
        self.assertEqual(self.warned("--data", "synthetic:20", "--fit", "crop", "--resize", "area"),
                         {"--fit", "--resize"})

    def test_words_of_a_list_are_named(self):
        done = self.expect(0, *self.words, "--dry-run", "--augment", "cutout:0,flip,mixup:0,rand:0:5,crop-area:0.5-1")
        self.assertIn("changes nothing by cutout:0 and mixup:0 and rand:0:5 (0 is none of it)", done.stderr)

    def test_those_that_have_one_are_silent(self):
        self.assertEqual(self.warned("--timeline", "t.json:1:2", "--lr-scale", "linear",
                                     "--base-batch", "4", "--warmup-epochs", "1", "--keep", "3", "--schedule",
                                     "step:1:0.5", "--optimizer", "momentum=0.9", "--momentum-correction", "--batch-growth",
                                     "1:2", "--validation-split", "0.2", "--no-winograd"),
                         set())
        self.assertEqual(self.warned("--eval-every", "2", "--backbone-lr", "0.02", "--augment",
                                     "crop-area:0.08-1,mixup:0.2", "--fit", "crop", "--ema", "0.5"), set())
        self.assertEqual(self.warned("--eval-every", "1", "--epochs", "1"), set())

    def test_averages_that_stay_the_first_weights(self):
        for ema, says in (("0.9999", "99 % of the averages are still the first weights"), ("0.3", None)):
            done = self.expect(0, *self.words, "--out", "run", "--overwrite", "--ema", ema)
            self.assertEqual("--ema" in done.stderr, bool(says), done.stderr)
            if says:
                self.assertIn(says, done.stderr)
        # 1 of 12 images validates: 11 steps of an image in each of 8 epochs.
        done = self.expect(0, *self.words, "--out", "run", "--overwrite", "--ema", "0.99", "--batch", "1", "--epochs",
                           "8", says=["after the 88 steps of this training 41 %", "averages of some 11 steps would"])
        self.assertIn("--ema 0.91\n", done.stderr)

    def test_variables_are_for_many_commands_and_files_for_this(self):
        self.assertEqual(self.warned(CPUTRAIN_BUCKET_MB="3", CPUTRAIN_KEEP="3", CPUTRAIN_CHECKPOINT_EVERY="0"), set())
        self.write("c.json", {"keep": 3, "checkpoint-every": "0"})
        self.assertEqual(self.warned("--config", "c.json"), {"--keep"})

    def test_sweeps_have_several_backends(self):
        options = {"--no-winograd", "--no-graph", "--data-on-device"}
        for backends, idle in (("reference", options), ("cpu", options - {"--no-winograd"}), ("cuda,cpu", set())):
            done = self.expect(0, "sweep", "--plan-only", "--np", "1", "--backend", backends, "--no-winograd",
                               "--no-graph", "--data-on-device", "on", "--out", "s", "--overwrite")
            said = {line.split()[1] for line in done.stderr.splitlines() if "changes nothing" in line}
            self.assertEqual(said, idle, backends)

    @needs_mpi
    def test_ranks_of_one_node(self):
        # Named, as the choice between shm and messages is measured: for so few bytes, either may win.
        self.assertEqual(self.warned("--bucket-mb", "3", "--lr-scale", "linear", "--allreduce", "shm", ranks=2),
                         {"--bucket-mb"})
        self.assertEqual(self.warned("--bucket-mb", "3", "--allreduce", "ring", ranks=2), set())


class Questions(HabitsTest):
    def test_no_data_is_asked_about(self):
        few = ["--model", "tiny.json", "--threads", "1", "--dry-run"]
        says = ["No --data: ", "Was that meant?", "--data FOLDER", "--data synthetic"]
        done = self.expect(0, *few, says=says)
        self.assertTrue(done.stderr.startswith("No --data"), done.stderr)
        self.assertNotIn("No --data", self.expect(0, *few, "--data", "synthetic").stderr)
        self.assertNotIn("No --data", self.expect(0, *few, CPUTRAIN_DATA="synthetic").stderr)
        self.expect(0, *self.words, "--out", "run")
        os.rename(self.path("run/weights.safetensors"), self.path("alone.safetensors"))
        self.expect(65, "eval", "--weights", "alone.safetensors",
                    says=["No --data: evaluating on synthetic", "Was that meant?"])

    def test_other_flags_at_a_resume_are_given_a_way(self):
        self.expect(0, *self.words, "--steps", "1", "--out", "run")
        for more, weights in ((["--steps", "3"], "run/ckpt-"), (["--steps", "1"], "run")):
            done = self.expect(2, *self.words, *more, "--lr", "0.001", "--out", "run", "--resume", "auto",
                               says=["lr: "])
            command = done.stderr.split("these flags: ")[1].strip()
            self.assertIn("--lr 0.001", command)
            self.assertIn(f"--weights {weights}", command)
            self.assertTrue(command.startswith("cputrain "), command)
            typed = subprocess.run(f"{PROGRAM} {command[9:]}", shell=True, cwd=self.folder, timeout=120,
                                   stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True)
            self.assertEqual(typed.returncode, 0, typed.stderr)
        self.assertTrue(os.path.exists(self.path("run-3/weights.safetensors")))
        done = self.expect(2, *self.words, "--steps", "3", "--image-size", "24", "--out", "run", "--resume", "auto",
                           says=["network: "])
        self.assertNotIn("these flags", done.stderr)

    @needs_mpi
    def test_the_way_of_ranks_begins_with_what_started_them(self):
        self.expect(0, *self.words, "--steps", "1", "--out", "run")
        done = self.expect(2, *self.words, "--lr", "0.001", "--steps", "1", "--out", "run", "--resume", "auto", ranks=2)
        typed = shlex.split(done.stderr.split("these flags: ")[1].split("\n")[0])
        self.assertIn(os.path.basename(typed[0]), ("mpirun", os.path.basename(MPIRUN[0])))  # Open MPI 5 hides its name
        self.assertEqual(typed[1:len(mpirun(2)) + 1], [*mpirun(2)[1:], "cputrain"])


if __name__ == "__main__":
    unittest.main()
