"""Going on from checkpoints: the same training as one that nobody ended, or a refusal that says why."""
import fcntl
import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import unittest

from formats import write_state
from program import PROGRAM, mpirun, needs_mpi, wait_until
from resuming import STEPS, WORDS, ResumeTest


class Resume(ResumeTest):
    def test_more_steps_are_those_of_a_training_that_was_not_ended(self):
        self.go(0, "whole", "--epochs", "4")
        for ends in ((7,), (5, 10), (1, 4, 6, 13)):  # within an epoch, at its end
            shutil.rmtree(self.path("run"), ignore_errors=True)
            for steps in ends:
                self.go(0, "run", "--steps", str(steps), "--resume", "auto")
                self.assertEqual(self.points("run"), [steps])
            self.go(0, "run", "--epochs", "4", "--resume", "auto", says=[f"{ends[-1]} steps and"])
            self.same("run", "whole")

    @needs_mpi
    def test_another_number_of_ranks_goes_on(self):
        self.go(0, "whole", "--epochs", "3", "--reproducible")
        for ranks, steps in ((3, 4), (2, 8), (0, None)):
            end = ["--steps", str(steps)] if steps else ["--epochs", "3"]
            self.go(0, "run", *end, "--reproducible", "--resume", "auto", ranks=ranks)
        self.assertEqual(*(self.metrics(run, "summary")[-1]["weights_hash"] for run in ("run", "whole")))
        self.assertEqual([m["step"] for m in self.metrics("run", "step")], list(range(1, 3 * STEPS + 1)))

    def test_another_training_is_refused_with_a_table(self):
        self.go(0, "run", "--steps", "3")
        before = self.text_of("run/metrics.jsonl")
        self.make("other", cat=25, dog=26)
        for words, says in ((["--batch", "20", "--lr", "0.5"], ["batch: 10 in the checkpoint, 20 here", "lr: "]),
                            (["--data", "other"], ["data: "]), (["--optimizer", "sgd"], ["optimizer: adam"]),
                            (["--seed", "7"], ["seed: 0 in the checkpoint, 7 here"])):
            self.go(2, "run", *words, "--resume", "auto", says=[*says, "is of another training"])
        self.assertEqual(self.text_of("run/metrics.jsonl"), before)

    def test_a_finished_training_stays_as_it_is(self):
        self.go(0, "run", "--epochs", "2")
        files = {f: os.stat(f).st_mtime_ns for f in glob.glob(self.path("run/*")) if os.path.isfile(f)}
        self.go(0, "run", "--epochs", "2", "--resume", "auto", says=["is finished"])
        self.assertEqual({f: os.stat(f).st_mtime_ns for f in files}, files)
        self.go(2, "run", "--epochs", "2", says=["holds a run already", "--resume auto"])

    def test_a_finished_run_is_finished_for_the_same_training_alone(self):
        self.go(0, "run", "--epochs", "2", "--save-best")
        self.make("other", cat=25, dog=26)
        again = ["--epochs", "2", "--save-best", "--resume", "auto"]
        shutil.copytree(self.path("run"), self.path("bare"))  # what it was is known without a checkpoint, too
        for f in glob.glob(self.path("bare/ckpt-*")):
            shutil.rmtree(f)
        for run in ("run", "bare"):
            files = {f: os.stat(f).st_mtime_ns for f in glob.glob(self.path(run, "*")) if os.path.isfile(f)}
            for words, says in ((["--lr", "0.5", "--seed", "7"], ["lr: 0.001 in the run, 0.5 here",
                                                                  "seed: 0 in the run, 7 here"]),
                                (["--data", "other"], ["data: data (", "in the run, other ("]),
                                (["--precision", "double"], ["precision: float in the run, double here"]),
                                (["--weights", "run/weights.safetensors"], ["weights: none in the run, run/weights"]),
                                (["--epochs", "1"], ["epochs: 2 in the run, 1 here"]),
                                (["--early-stopping", "1"], ["early-stopping: none in the run, 1 here"]),
                                (["--target-accuracy", "0.1"], ["target-accuracy: none in the run, 0.1 here"])):
                self.go(2, run, *again, *words, says=[*says, "nothing would be trained", "name another --out"])
            self.go(2, run, *again, "--weights", "nowhere", says=["weights: none in the run, nowhere (not there)"])
            self.go(0, run, *again, "--threads", "2", "--keep", "5", says=["is finished (10 steps in 2 epochs)"])
            self.assertEqual({f: os.stat(f).st_mtime_ns for f in files}, files)
        os.remove(self.path("bare/best.safetensors"))
        self.go(0, "bare", *again, says=["is finished", "there is no best.safetensors"])

    @needs_mpi
    def test_ranks_of_a_finished_run_end_alike(self):
        self.go(0, "run", "--epochs", "1")
        self.go(0, "run", "--epochs", "1", "--resume", "auto", ranks=3, says=["is finished"])
        self.go(2, "run", "--epochs", "1", "--resume", "auto", "--lr", "9", ranks=3, says=["lr: "])

    def test_a_later_end_goes_on_and_an_earlier_one_is_refused(self):
        self.go(0, "whole", "--epochs", "4")
        self.go(0, "run", "--epochs", "4", "--target-accuracy", "0.1", says=["after epoch 1"])
        self.go(0, "run", "--epochs", "4", "--target-accuracy", "0.1", "--resume", "auto",
                says=["which --target-accuracy 0.1 ended"])
        self.go(0, "run", "--epochs", "2", "--resume", "auto", says=["5 steps and 1 whole epoch are done"])
        self.go(0, "run", "--epochs", "4", "--resume", "auto", says=["10 steps and 2 whole epochs"])
        self.same("run", "whole")
        self.go(2, "run", "--steps", "7", "--resume", "run/ckpt-000000020", says=["--steps 7 asks for less"])
        self.go(2, "on", "--epochs", "3", "--resume", "run/ckpt-000000020", says=["--epochs 3 asks for less"])
        self.go(0, "on", "--epochs", "4", "--resume", "run/ckpt-000000020", says=["no step follows"])

    def test_a_schedule_that_is_prolonged_says_both_rates(self):
        words = ["--lr", "0.01", "--schedule", "cosine"]
        self.go(0, "run", "--epochs", "2", *words)
        said = self.go(0, "run", "--epochs", "4", *words, "--resume", "auto", says=["now of 4 epochs and was of 2"])
        # 10 of 20 steps: half a cosine. The last step of the first two epochs was the tenth of ten.
        last = 0.005 * (1 + math.cos(math.pi * 9 / 10))
        self.assertIn(f"the learning rate goes from {last:.3g} to 0.005, where 0 was planned", said.stderr)
        self.assertAlmostEqual(self.metrics("run", "step")[10]["lr"], 0.005)
        again = self.go(0, "run", "--epochs", "4", *words, "--resume", "auto", says=["is finished"])
        self.assertNotIn("--schedule", again.stderr)

    def test_weights_beside_a_resume(self):
        self.go(0, "first", "--epochs", "1")
        begun = ["--weights", "first/weights.safetensors"]
        self.go(0, "run", "--steps", "3", *begun)
        self.go(0, "run", "--steps", "4", *begun, "--resume", "auto",
                says=["--weights first/weights.safetensors: the training began with them", "which are newer"])
        self.go(0, "run", "--steps", "5", "--resume", "auto", says=["The training began with the weights of first/"])
        self.go(0, "run", "--steps", "5", *begun, "--resume", "auto", says=["is finished"])
        self.go(2, "run", "--steps", "5", "--resume", "auto", says=["weights: first/"])
        self.go(2, "run", "--steps", "6", "--weights", "run/weights.safetensors", "--resume", "auto",
                says=["weights: first/weights.safetensors (", "run/weights.safetensors (", "leave --weights out"])
        self.go(65, "run", "--steps", "6", "--weights", "tiny.json", "--resume", "auto",
                says=["tiny.json", "a training that goes on needs no --weights"])
        self.go(0, "run", "--steps", "6", "--weights", "never.safetensors", "--resume", "auto",
                says=["--weights never.safetensors is not there; the training began with the weights of first/weights"])

    def test_weights_that_a_training_began_with_may_be_gone(self):
        self.go(0, "first", "--steps", "2", "--no-save-best")
        shutil.copy(self.path("first/weights.safetensors"), self.path("w.safetensors"))
        begun = ["--weights", "w.safetensors"]
        self.go(0, "run", *begun, "--steps", "3")
        self.go(0, "whole", *begun, "--steps", "6")
        self.go(0, "plain", "--steps", "3")
        os.remove(self.path("w.safetensors"))
        self.go(0, "run", *begun, "--steps", "3", "--resume", "auto", says=["nothing is left to do"])
        self.go(0, "run", *begun, "--steps", "6", "--resume", "auto", says=["which are newer"])
        self.same("run", "whole")
        self.go(0, "run", *begun, "--steps", "6", "--resume", "auto", says=["nothing is left to do"])
        # A folder may stay behind that holds none.
        self.go(0, "of_folder", "--weights", "first", "--steps", "3")
        os.remove(self.path("first/weights.safetensors"))
        for checkpoint in glob.glob(self.path("first/ckpt-*")):
            shutil.rmtree(checkpoint)
        self.go(0, "of_folder", "--weights", "first", "--steps", "6", "--resume", "auto", says=["which are newer"])
        self.assertEqual(*(self.metrics(run, "summary")[-1]["weights_hash"] for run in ("of_folder", "whole")))
        self.go(65, "new", "--weights", "first", "--resume", "auto", says=["the folder holds no weights"])
        # There is nothing else to begin with, and a run that began without weights is another one.
        for words in (["new", "--resume", "auto"], ["run", "--overwrite"], ["run", "--resume", "auto", "--dry-run"]):
            self.go(65, words[0], *begun, "--steps", "6", *words[1:], says=["w.safetensors: there is no such file"])
        for steps in ("3", "6"):
            self.go(2, "plain", *begun, "--steps", steps, "--resume", "auto",
                    says=["weights: none in the ", "w.safetensors (not there) here"])

    @needs_mpi
    def test_ranks_go_on_without_them_and_are_refused_alike(self):
        self.go(0, "first", "--steps", "2")
        os.rename(self.path("first/weights.safetensors"), self.path("w.safetensors"))
        begun = ["--weights", "w.safetensors"]
        self.go(0, "run", *begun, "--steps", "3", ranks=2)
        os.remove(self.path("w.safetensors"))
        self.go(0, "run", *begun, "--steps", "6", "--resume", "auto", ranks=2)
        done = self.go(65, "new", *begun, "--steps", "6", "--resume", "auto", ranks=2)
        self.assertEqual(done.stderr.count("there is no such file"), 1, done.stderr)

    def test_reproducible_is_no_flag_to_add(self):
        for run, then, now in (("plain", [], ["--reproducible"]), ("exact", ["--reproducible"], [])):
            self.go(0, run, "--steps", "3", *then)
            for steps in ("3", "5"):
                done = self.go(2, run, "--steps", steps, *now, "--resume", "auto", says=["reproducible: "])
                self.assertNotIn("--allreduce", done.stdout + done.stderr)

    @needs_mpi
    def test_a_way_to_sum_that_nobody_named_gives_way(self):
        self.go(0, "run", "--steps", "1", "--allreduce", "ring", ranks=2)
        self.go(0, "run", "--steps", "2", "--shard-dense", "--resume", "auto", ranks=2, says=["1 step and"])

    @needs_mpi
    def test_gpus_that_summed_by_nccl_may_be_gone(self):
        self.go(0, "run", "--steps", "1", ranks=2)
        checkpoint = self.path("run/ckpt-000000001")
        with open(os.path.join(checkpoint, "state.json")) as f:
            state = json.load(f)
        state["allreduce"] = "nccl"
        write_state(checkpoint, state)
        self.go(0, "run", "--steps", "2", "--resume", "auto", ranks=2, says=["1 step and"])

    def test_links_and_copies_of_a_checkpoint(self):
        self.go(0, "whole", "--epochs", "2")
        self.go(0, "run", "--steps", "3")
        os.symlink("ckpt-000000003", self.path("run/latest"))
        shutil.copytree(self.path("run/ckpt-000000003"), self.path("copy"))
        self.expect(0, *WORDS, "--steps", "4", "--resume", "run/latest", says=["Run folder: " + self.path("run")])
        self.go(65, "run", "--steps", "5", "--resume", "run/latest", says=["the link leads to ckpt-000000003"])
        shutil.copytree(self.path("run/ckpt-000000004"), self.path("run/mine"))
        self.expect(0, *WORDS, "--epochs", "2", "--resume", "run/mine", says=["run/mine: 4 steps"])
        self.same("run", "whole")
        self.go(2, "run", "--epochs", "3", "--resume", "run/mine", says=["ckpt-000000010 in its folder is newer"])
        # A copy outside of a run has a new run, and a name that says another step is no checkpoint's.
        self.expect(0, *WORDS, "--epochs", "2", "--resume", "copy", says=["Run folder: runs/"])
        os.rename(self.path("run/mine"), self.path("run/ckpt-000000099"))
        self.go(0, "run", "--epochs", "3", "--resume", "auto",
                says=["ckpt-000000099 is passed over: it holds the state of step 4", "10 steps and"])

    def test_without_a_checkpoint_it_begins_anew(self):
        self.go(0, "run", "--epochs", "1", "--resume", "auto")
        shutil.copytree(self.path("run"), self.path("other"))
        for f in glob.glob(self.path("other/ckpt-*")):
            shutil.rmtree(f)
        # What is finished would be lost.
        self.go(2, "other", "--epochs", "2", "--resume", "auto", says=["left no checkpoint"])
        os.remove(self.path("other/weights.safetensors"))
        self.write("other/metrics.jsonl", '{"type":"step","step":1}\n{"type":"st')
        self.go(0, "other", "--epochs", "1", "--resume", "auto", says=["begins anew"])
        self.same("other", "run")

    def test_a_checkpoint_that_is_named(self):
        self.go(0, "whole", "--epochs", "2")
        self.go(0, "run", "--steps", "3", "--checkpoint-every", "2")
        self.go(0, "run", "--steps", "6", "--checkpoint-every", "4", "--resume", "run/ckpt-000000003/")
        self.assertEqual(self.points("run"), [6])
        self.expect(0, *WORDS, "--epochs", "2", "--resume", "run/ckpt-000000006")  # in its own folder
        self.same("run", "whole")
        # In another folder the logs begin with the step that follows.
        self.go(0, "on", "--epochs", "3", "--resume", f"run/ckpt-00000001{2 * STEPS - 10}")
        self.assertEqual(self.metrics("on", "step")[0]["step"], 2 * STEPS + 1)
        self.go(2, "whole", "--resume", "run/ckpt-000000010", "--epochs", "9", "--overwrite", says=["--overwrite"])

    def leave_steps_alone(self):
        """As if the run had been killed."""
        self.write("run/metrics.jsonl", "".join(line + "\n" for line in self.lines() if '"step"' in line))

    def test_a_named_one_never_falls_back(self):
        self.go(0, "run", "--steps", "3")
        shutil.copytree(self.path("run/ckpt-000000003"), self.path("run/ckpt-000000002"))
        self.leave_steps_alone()
        with open(self.path("run/ckpt-000000003/optimizer.safetensors"), "r+b") as f:
            f.truncate(100)
        self.go(65, "run", "--steps", "5", "--resume", "run/ckpt-000000003", says=["optimizer.safetensors"])
        self.go(65, "run", "--steps", "5", "--resume", "run/ckpt-000000002", says=["step 3"])
        self.go(65, "run", "--steps", "5", "--resume", "nowhere", says=["nowhere"])
        self.go(65, "run", "--steps", "5", "--resume", "auto",
                says=["ckpt-000000003 is passed over", "ckpt-000000002 is passed over", "of 2 checkpoints in"])
        self.assertEqual(self.points("run"), [2, 3])
        self.go(0, "run", "--steps", "5", "--overwrite")
        self.assertEqual(self.points("run"), [5])
        self.go(2, "run", "--steps", "9", "--resume", "run", says=["--resume auto --out run"])

    def test_an_older_one_than_the_newest_is_refused_in_its_folder(self):
        self.go(0, "run", "--steps", "3")
        shutil.copytree(self.path("run/ckpt-000000003"), self.path("run/ckpt-000000009"))
        self.go(2, "run", "--steps", "5", "--resume", "run/ckpt-000000003", says=["ckpt-000000009", "is newer"])

    def test_damaged_ones_stay_under_another_name(self):
        self.go(0, "whole", "--epochs", "2")
        self.go(0, "run", "--steps", "3")
        shutil.copytree(self.path("run/ckpt-000000003"), self.path("run/ckpt-000000006"))
        with open(self.path("run/ckpt-000000006/state.json"), "a") as f:
            f.write(" ")
        os.remove(self.path("run/weights.safetensors"))
        self.leave_steps_alone()
        self.go(0, "run", "--epochs", "2", "--resume", "auto",
                says=["state.json is ", "is kept as damaged-ckpt-000000006"])
        self.same("run", "whole")
        self.assertTrue(os.path.exists(self.path("run/damaged-ckpt-000000006/optimizer.safetensors")))

    def test_in_another_folder_there_is_a_checkpoint_at_once(self):
        self.go(0, "run", "--steps", "3")
        with self.training("on", "--resume", "run/ckpt-000000003", "--checkpoint-every", "1000000") as process:
            wait_until(lambda: self.lines("on") and self.metrics("on", "step"), process, pause=0.01)
            process.kill()
            process.wait()
        self.assertEqual(self.points("on"), [3])
        self.go(0, "on", "--steps", "8", "--resume", "auto", says=["3 steps and"])
        self.go(2, "on", "--steps", "9", "--resume", "run/ckpt-000000003", says=["another run"])

    def test_wrong_words(self):
        for words, says in ((["--resume", "auto"], "needs --out"),
                            (["--resume", "auto", "--out", "x", "--overwrite"], "--overwrite"),
                            (["--checkpoint-every", "5x"], "10m,1e"), (["--checkpoint-every", "5,6"], "each once"),
                            (["--checkpoint-every", "-1"], "--checkpoint-every"),
                            (["--checkpoint-every", "1.5"], "10m,1e"), (["--keep", "0"], "--keep 0"),
                            (["--early-stopping", "0"], "PATIENCE"), (["--early-stopping", "2:x"], "PATIENCE"),
                            (["--early-stopping", "2", "--limit-val", "0"], "--limit-val 0"),
                            (["--save-best", "--limit-val", "0"], "--limit-val 0"),
                            (["--on-nan", "rollback", "--checkpoint-every", "0"], "rollback")):
            self.expect(2, *WORDS, *words, says=[says])

    def test_checkpoints_that_stay(self):
        self.go(0, "none", "--epochs", "2", "--checkpoint-every", "0")
        self.assertEqual(self.points("none"), [])
        with self.training("run", "--checkpoint-every", "3", "--keep", "4") as process:
            wait_until(lambda: max(self.points("run"), default=0) >= 30, process, pause=0.01)
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.wait(120), 75)
        points = self.points("run")
        self.assertEqual(len(points), 4)
        self.assertEqual([p % 3 for p in points[:3]], [0, 0, 0])
        self.assertEqual(points[-1], self.metrics("run", "step")[-1]["step"])

    def training(self, run, *words):
        """A training without an end."""
        process = subprocess.Popen([PROGRAM, *WORDS, "--out", run, "--epochs", "100000", *words], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        return process

    def test_stopped_at_any_step_it_goes_on(self):
        for sent in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            with self.training("run", "--checkpoint-every", "1000000") as process:
                wait_until(lambda: len(self.lines()) > 14, process, pause=0.01)
                process.send_signal(sent)
                self.assertEqual(process.wait(120), 130 if sent == signal.SIGINT else 75)
            stopped = self.points("run")[-1]
            epochs = str(stopped // STEPS + 2)
            self.go(0, "run", "--epochs", epochs, "--resume", "auto")
            shutil.rmtree(self.path("whole"), ignore_errors=True)
            self.go(0, "whole", "--epochs", epochs)
            self.same("run", "whole")

    def test_a_killed_one_without_out_has_named_its_folder(self):
        with open(self.path("said"), "w+") as said, subprocess.Popen(
                [PROGRAM, *WORDS, "--checkpoint-every", "5", "--epochs", "100000"], cwd=self.folder,
                stdout=said, stderr=subprocess.STDOUT) as process:
            try:
                wait_until(lambda: glob.glob(self.path("runs", "*", "ckpt-*")), process, pause=0.01)
            finally:
                process.kill()
            process.wait(120)
            said.seek(0)
            text = said.read()
        words = re.search(r"^This run is in (\S+) \(.* with (--resume auto --out \1) goes on\)$", text, re.M)
        self.assertIsNotNone(words, text)
        taken = self.points(words[1])[-1]
        self.expect(0, *WORDS, "--steps", str(taken + 1), *words[2].split(), says=["Going on from"])
        for others in (["--out", "named"], ["--checkpoint-every", "0"]):
            done = self.expect(0, *WORDS, *others, "--steps", "1")
            self.assertNotIn("This run is in", done.stdout + done.stderr)

    def test_a_second_training_waits_for_the_first(self):
        self.go(0, "run", "--steps", "3")
        with open(self.path("run/.lock"), "r+") as lock, open(self.path("said"), "w") as said:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            process = subprocess.Popen([PROGRAM, *WORDS, "--out", "run", "--steps", "5", "--resume", "auto"],
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            self.addCleanup(process.kill)
            wait_until(lambda: "Waiting for the training" in self.text_of("said"), process)
            fcntl.lockf(lock, fcntl.LOCK_UN)
            self.assertEqual(process.wait(120), 0)
            fcntl.lockf(lock, fcntl.LOCK_EX)
            self.go(2, "run", "--steps", "7", "--resume", "auto", says=["another training is at work"])

    def test_a_dry_run_says_that_it_looks_at_no_checkpoint(self):
        self.go(0, "run", "--dry-run", "--resume", "auto", says=["--dry-run does not look at --resume auto"])
        self.assertFalse(os.path.exists(self.path("run")))

    @needs_mpi
    def test_one_rank_that_is_told_stops_all(self):
        process = subprocess.Popen([*mpirun(3), PROGRAM, *WORDS, "--out", "run", "--epochs", "100000", "--verbose",
                                    "0"],
                                   cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        wait_until(lambda: len(self.lines()) > 14, process, pause=0.01)
        os.kill(self.rank_of(1), signal.SIGTERM)
        self.assertNotEqual(process.wait(120), 0)
        self.assertTrue(self.points("run"))


if __name__ == "__main__":
    unittest.main()
