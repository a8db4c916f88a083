"""The same curve whatever the number of processes, through the program itself."""
import json
import os
import re
import shutil
import subprocess
import unittest

from program import MPIRUN, OPEN_MPI, PROGRAM, ProgramTest, ROOT, SMALL, mpirun, needs_mpi

SGD = ["--optimizer", "sgd", "--steps", "5"]
MANY = 66  # more than a word has bits


@needs_mpi
class Ranks(ProgramTest):
    def losses(self, run, *words, **options):
        steps = self.train(run, *words, **options)
        last = self.metrics(run, "epoch")[-1]
        return [s["loss"] for s in steps] + [last["val_loss"]]

    @unittest.skipUnless(OPEN_MPI, "other launchers' ranks wait in ways of their own")
    def test_mpi_gives_way_by_the_program(self):
        bound = self.run_program("--version", LD_DEBUG="bindings", LD_BIND_NOW="1").stderr
        self.assertRegex(bound, r"binding file \S*libopen-pal\S* \[0\] to \S*cputrain\S* .*`sched_yield'")

    def test_float_curves_agree(self):
        alone = self.losses("1", *SGD)
        for ranks in (2, 7):
            self.assert_near(alone, self.losses(str(ranks), *SGD, ranks=ranks), 1e-3)

    def test_double_curves_agree_with_the_papers_optimizer(self):
        words = ["--backend", "reference", "--precision", "double", "--batch", "5", "--steps", "3",
                 "--limit-train", "15", "--limit-val", "4"]
        alone = self.losses("1", *words)
        self.assert_near(alone, self.losses("3", *words, ranks=3), 1e-9)

    def test_ranks_without_images_change_nothing(self):
        words = [*SGD, "--batch", "2", "--limit-train", "6", "--limit-val", "2"]
        self.assert_near(self.losses("1", *words), self.losses("4", *words, ranks=4), 1e-3)

    def test_uneven_and_empty_shares_with_every_way_to_sum(self):
        # Batches of 5, 5 and 1 on 3 ranks: shares of 1 or 2 images, and ranks without any.
        words = ["--data", "synthetic:16", "--limit-train", "11", "--limit-val", "2", "--batch", "5",
                 "--optimizer", "sgd", "--steps", "3"]
        alone = self.losses("alone", *words)
        for way in ("mpi", "shm", "ring", "recursive-doubling", "rabenseifner", "tree", "hierarchical",
                    "ps", "tree:0-1000;ring:1001-max"):
            with self.subTest(way=way):
                run = way.replace(":", "_").replace(";", "_")
                self.assert_near(alone, self.losses(run, *words, "--allreduce", way, ranks=3), 1e-3)

    @unittest.skipUnless(OPEN_MPI, "MPICH's shared memory for so many ranks does not fit everywhere")
    def test_many_ranks(self):
        """They have one image or two each."""
        words = ["--image-size", "48", "--data", "synthetic:200", "--batch", str(MANY * 4 // 3), "--steps", "1",
                 "--limit-val", "20", "--optimizer", "sgd"]
        alone = self.losses("1", *words)
        self.assert_near(alone, self.losses("many", *words, ranks=MANY), 1e-3)

    def test_a_sharded_layer_changes_nothing(self):
        words = ["--optimizer", "sgd", "--steps", "3", "--batch", "19", "--micro-batch", "4"]
        alone = self.losses("alone", *words)
        for ranks in (2, 3):
            for flag in ("--shard-dense", "--no-shard-dense"):
                run = f"{ranks}{flag}"
                self.assert_near(alone, self.losses(run, *words, flag, ranks=ranks), 1e-4)
                if flag == "--no-shard-dense":
                    continue  # one copy of the weights is what all tests of eval have
                weights = self.path(run, "weights.safetensors")
                done = self.expect(0, "eval", "--weights", weights, "--data", "synthetic:60",
                                   "--json", "-")
                loss = self.metrics(run, "epoch")[-1]["val_loss"]
                self.assert_near([loss], [json.loads(done.stdout)["loss"]], 1e-4)

    def test_sharding_is_told_and_refused_where_it_cannot_be(self):
        words = [*SMALL, "--steps", "1", "--limit-val", "0"]
        self.expect(0, *words, "--shard-dense", ranks=2, says=["Sharded: dense ("])
        done = self.expect(0, *words, "--overwrite", ranks=2)
        self.assertNotIn("Sharded", done.stderr)  # too small to pay
        for wrong in (["--allreduce", "ring"], ["--allreduce", "ps"], ["--reproducible"],
                      ["--freeze", "dense*"]):
            self.expect(2, *words, "--shard-dense", *wrong, ranks=2, says=["--shard-dense with"])

    def test_auto_says_what_it_measured(self):
        words = [*SMALL, *SGD, "--limit-val", "0", "--out", "auto"]
        done = self.expect(0, "train", *words, ranks=3)
        self.assertRegex(done.stdout + done.stderr,
                         r"Allreduce of \d+\.\d MB: shm \d+\.\d ms, mpi \d+\.\d ms; takes (shm|messages)")

    @unittest.skipUnless(OPEN_MPI, "MPICH itself needs that room")
    def test_without_room_for_shared_memory(self):
        small = os.path.join(os.path.dirname(__file__), "..", "support", "small_shm.sh")
        # 2.4 MiB of weights, 4.8 of gradients: no room for these, or for what comes after them
        for size in ("6m", "8m"):
            with self.subTest(size=size):
                words = [*SMALL, "--optimizer", "sgd", "--steps", "2", "--limit-val", "0",
                         "--out", size]
                done = self.run_program(*words, launch=["sh", small, size, *mpirun(2)])
                if done.returncode == 77:
                    self.skipTest("no mount namespaces here")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("warning: no shared memory for gradients", done.stderr)

    def hashes(self, runs, *words):
        """Weights' hashes by (ranks, threads)."""
        found = {}
        for ranks, threads in runs:
            self.runs = getattr(self, "runs", 0) + 1
            name = f"run{self.runs}"
            self.train(name, *words, "--threads", str(threads), ranks=ranks)
            found[ranks, threads] = self.metrics(name, "summary")[-1]["weights_hash"]
        return found

    def assert_one(self, hashes):
        self.assertEqual(len(set(hashes.values())), 1, hashes)

    def test_reproducible_at_any_number_of_ranks_and_threads(self):
        words = ["--reproducible", "--batch", "23", "--steps", "5", "--micro-batch", "3",
                 "--limit-val", "4"]
        runs = [(1, 1), (1, 3), (2, 2), (3, 1), (8, 1)]
        self.assert_one(self.hashes(runs, *words))

    def test_reproducible_maps_of_16_bits(self):
        """Under --precision bf16 a network with batch normalization, which must be frozen here, stores 16-bit maps."""
        model = os.path.join(ROOT, "src", "zoo", "samples", "small-resnet.json")
        with open(model) as file:
            normalizations = [l["name"] for l in json.load(file)["layers"] if l["type"] == "batch_norm"]
        words = ["--model", model, "--image-size", "32", "--precision", "bf16", "--reproducible", "--batch", "23",
                 "--freeze", ",".join(normalizations), "--steps", "3", "--micro-batch", "3", "--limit-val", "4"]
        asked = self.run_program(*SMALL, *words, "--dry-run")
        if asked.returncode == 2 and "no instructions" in asked.stderr:
            self.skipTest("this machine has no bf16 instructions")
        self.assert_one(self.hashes([(1, 1), (1, 3), (3, 1), (7, 1)], *words))

    def test_many_reproducible_ranks(self):
        # Twelve micro-batches on sixteen ranks: some have none.
        words = ["--image-size", "48", "--data", "synthetic:30", "--batch", "24", "--steps", "2",
                 "--micro-batch", "2", "--limit-val", "0", "--reproducible"]
        self.assert_one(self.hashes([(1, 1), (16, 1)], *words))

    def test_reproducible_norms_of_the_whole(self):
        for rule in (["--optimizer", "lars"], ["--optimizer", "lamb"],
                     ["--optimizer", "sgd", "--lr", "1", "--clip-norm", "0.01"]):
            words = ["--reproducible", "--batch", "10", "--steps", "3", "--micro-batch", "2",
                     "--limit-val", "4", *rule]
            with self.subTest(rule=rule):
                self.assert_one(self.hashes([(1, 1), (3, 1)], *words))

    def test_reproducible_losses_and_what_goes_by_them(self):
        """Early stopping, best weights and a plateau do the same at any number of ranks, to the last bit."""
        words = ["--data", "synthetic:40", "--validation-split", "0.33", "--reproducible", "--batch", "5", "--micro-batch", "2",
                 "--optimizer", "sgd", "--lr", "0.3", "--epochs", "100", "--early-stopping", "3:0.02",
                 "--schedule", "plateau:1:0.5"]
        curves = []
        for ranks, threads in ((1, 2), (3, 1), (7, 1)):
            self.train(str(ranks), *words, "--threads", str(threads), ranks=ranks)
            summary = self.metrics(str(ranks), "summary")[-1]
            curves.append([[(e["loss"], e["val_loss"], e["val_accuracy"], e["lr"]) for e in self.metrics(str(ranks), "epoch")],
                           *(summary[name] for name in ("epochs", "best_epoch", "best_loss", "weights_hash"))])
        for curve in curves[1:]:
            self.assertEqual(curve, curves[0])
        self.assertLess(curves[0][1], 100)  # it stopped early
        self.assertLess(curves[0][0][-1][3], 0.3)  # and the rate had fallen

    def test_the_size_of_a_leaf_counts(self):
        base = ["--reproducible", "--batch", "20", "--steps", "3", "--limit-val", "4"]
        a = self.hashes([(1, 1)], *base, "--micro-batch", "2")
        b = self.hashes([(1, 1)], *base, "--micro-batch", "5")
        self.assertNotEqual(a, b)

    def test_what_cannot_be_reproducible_is_refused(self):
        for words in (["--allreduce", "ring"], ["--sharding", "strided"],
                      ["--compress", "bf16"],
                      ["--model", "resnet50v2", "--image-size", "64"]):
            self.expect(2, *SMALL, "--reproducible", *words, ranks=2, says=["--reproducible"])

    def test_every_way_to_sum_is_timed(self):
        for ranks in (1, 3):
            done = self.expect(0, "bench", "allreduce", "--bytes", "100004", "--repeat", "2", "--threads", "1",
                               "--json", "-", ranks=ranks)
            result = json.loads(done.stdout)
            names = {a["name"] for a in result["algorithms"]}
            self.assertEqual(names, {"mpi", "shm", "ring", "recursive-doubling", "rabenseifner", "tree",
                                     "hierarchical", "ps"})
            for algorithm in result["algorithms"]:
                seconds = algorithm["seconds"]
                self.assertLessEqual(0, seconds["min"])
                self.assertLessEqual(seconds["min"], seconds["median"])
                self.assertLessEqual(seconds["median"], seconds["max"])
            self.assertEqual((result["ranks"], result["bytes"]), (ranks, 100004))
            self.assertGreater(result["limit"]["triad_gbs"], 0)

    def test_info_names_the_mpi(self):
        done = self.expect(0, "info", ranks=1)
        self.assertRegex(done.stdout, r"(?m)^Ranks: [A-Z]\w+( MPI)? \d+(\.\d+)+\S*$")

    def test_ranks_that_disagree_end_with_64(self):
        script = self.path("start")
        self.tool(script, '#!/bin/sh\nexec "$CPUTRAIN" "$@" --seed "${OMPI_COMM_WORLD_RANK-$PMI_RANK}"\n')
        done = subprocess.run([*mpirun(3), script, *SMALL, "--out", "run"], cwd=self.folder,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        # MPICH's launcher may tell the signal instead that it then ends ranks with.
        self.assertIn(done.returncode, [64] if OPEN_MPI else [64, 9], done.stderr)
        self.assertIn("ranks 1", done.stderr)


class Launchers(ProgramTest):
    """Processes that a launcher started and MPI, or a build without, does not see as ranks of one job."""
    PMI = {"PMI_RANK": "0", "PMI_SIZE": "3"}
    OTHERS = ({"PMI_RANK": "1", "PMI_SIZE": "2"}, {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"},
              {"PMIX_RANK": "1"}, {"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "2"})

    def setUp(self):
        super().setUp()
        if MPIRUN and not OPEN_MPI:
            self.skipTest("an MPI that takes these variables for its own")

    def test_commands_of_ranks_refuse(self):
        self.expect(64, *SMALL, "--out", "run", says=["3 processes (PMI_SIZE)", "env -u PMI_SIZE"], **self.PMI)
        self.assertFalse(os.path.exists(self.path("run")))
        self.expect(64, "train", "--dry-run", *SMALL, says=["PMI_SIZE"], **self.PMI)
        self.expect(64, "bench", "allreduce", says=["PMI_SIZE"], **self.PMI)
        self.expect(64, "bench", "step", "--image-size", "64", says=["PMI_SIZE"], **self.PMI)
        self.train("alone", "--steps", "1")
        weights = ["--weights", self.path("alone", "weights.safetensors")]
        self.expect(64, "eval", *weights, "--data", "synthetic:60", says=["PMI_SIZE"], **self.PMI)
        for variables in self.OTHERS:
            with self.subTest(variables):
                self.expect(64, *SMALL, "--out", "run", says=["processes"], **variables)

    def test_others_do_not(self):
        self.expect(0, "data", "synth", "d", "--images", "4", "--image-size", "16", **self.PMI)
        for words in (["info"], ["data", "check", "d"], ["data", "info", "d"], ["data", "pack", "d", "d.ctpack"]):
            for variables in (self.PMI, self.OTHERS[1]):
                done = self.expect(0, *words, **variables)
                self.assertNotIn("PMI_SIZE", done.stderr)
                if os.path.exists(self.path("d.ctpack")):
                    os.remove(self.path("d.ctpack"))

    def test_one_process_trains(self):
        for number, variables in enumerate(({"PMI_RANK": "0", "PMI_SIZE": "1"}, {"SLURM_NTASKS": "8"},
                                            {"SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"})):
            self.train(f"run{number}", "--steps", "1", **variables)

    def test_torchrun_is_warned_about(self):
        done = self.expect(0, *SMALL, "--steps", "1", "--out", "run", WORLD_SIZE="2", RANK="0")
        self.assertIn("warning: WORLD_SIZE and RANK say that there are 2 processes", done.stderr)
        self.expect(0, *SMALL, "--steps", "1", "--out", "quiet", "--verbose", "0", WORLD_SIZE="2", RANK="0",
                    says=["warning: WORLD_SIZE"])
        if MPIRUN:
            done = self.expect(0, *SMALL, "--steps", "1", "--out", "two", ranks=2, WORLD_SIZE="2", RANK="0")
            self.assertNotIn("WORLD_SIZE", done.stderr)

    def test_a_first_rank_that_cannot_know_is_warned_about(self):
        self.expect(0, *SMALL, "--steps", "1", "--out", "first", PMIX_RANK="0", says=["warning: a launcher that speaks PMIx"])
        done = self.expect(64, *SMALL, "--out", "third", PMIX_RANK="2", says=["at least 3 processes", "env -u PMIX_RANK"])
        self.assertNotIn("rank 0 says", done.stderr)

    def test_ranks_of_another_build_do_not_begin(self):
        commit = re.search(rb"commit (\w{7,})", self.expect(0, "--version").stdout.encode())
        if not commit:
            self.skipTest("this program does not know its commit")
        with open(PROGRAM, "rb") as program, open(self.path("other"), "wb") as other:
            other.write(program.read().replace(commit[1], b"0" * len(commit[1])))
        os.chmod(self.path("other"), 0o755)
        words = [*SMALL, "--steps", "1", "--out", "run"]
        done = subprocess.run([*mpirun(1), PROGRAM, *words, ":", "-np", "1", self.path("other"), *words], text=True,
                              cwd=self.folder, timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if OPEN_MPI:
            self.assertEqual(done.returncode, 64, done.stdout)
        self.assertIn("their program", done.stdout)
        self.assertIn(b"commit " + commit[1], done.stdout.encode())
        self.assertIn("commit 0000000", done.stdout)

    def test_mpiexec_of_mpich(self):
        mpiexec = shutil.which("mpiexec.mpich")
        if not mpiexec:
            self.skipTest("MPICH is not installed")
        done = self.run_program(*SMALL, "--out", "run", launch=[mpiexec, "-n", "3"])
        self.assertNotEqual(done.returncode, 0)  # its launcher may put 9 in the place of 64
        text = done.stdout + done.stderr
        self.assertEqual(text.count("started 3 processes (PMI_SIZE)"), 1, text)
        self.assertFalse(os.path.exists(self.path("run")))


if __name__ == "__main__":
    unittest.main()
