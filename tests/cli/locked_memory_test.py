"""The program whose default backend keeps its arrays where the host cannot touch them (tests/support/locked_backend.h):
it does what it does with the same plain loops in the host's memory, and says what it cannot."""
import json
import os
import re
import signal
import subprocess
import unittest

from program import MPIRUN, PROGRAM, needs_mpi, wait_until
from tiny import TINY, TinyTest

# Batch normalization's statistics are averaged over ranks; a dropped layer and a penalty have their own ways.
LAYERS = [{"type": "convolution", "filters": 4, "kernel": 3}, {"type": "batch_norm"}, {"type": "relu"},
          {"type": "global_average_pool"}, {"type": "dense", "units": 6, "l2": 0.01}, {"type": "relu"},
          {"type": "dropout", "rate": 0.2}, {"type": "dense", "units": "classes", "name": "head"}, {"type": "softmax"}]
LOCKED, HOST = ["--backend", "locked"], ["--backend", "reference"]
PLAIN = ["--data", "data", "--threads", "1", "--image-size", "16"]


class LockedMemory(TinyTest):
    def setUp(self):
        super().setUp()
        self.write("tiny.json", {**TINY, "layers": LAYERS})
        self.make("data", cat=20, dog=20)

    def curve(self, run, *words, **options):
        """Losses and accuracies of steps and epochs, and the hash of the weights in the end."""
        self.tiny(0, run, "data", "--epochs", "2", "--log-every", "1", *words, **options)
        steps = [(m["loss"], m["accuracy"]) for m in self.metrics(run, "step")]
        epochs = [(m["loss"], m["val_loss"]) for m in self.metrics(run, "epoch")]
        return steps, epochs, self.metrics(run, "summary")[0]["weights_hash"]

    def same(self, *words, **options):
        here, there = (self.curve(run, *words, *of, **options) for run, of in (("host", HOST), ("locked", LOCKED)))
        self.assertEqual(len(here[0]), 10)
        self.assertEqual(here, there)

    def test_it_is_the_default(self):
        self.expect(0, "info", says=["locked"])
        self.assertIn("locked memory, plain loops", self.tiny(0, "run", "data", "--steps", "1").stderr)

    def test_a_training_is_the_same(self):
        self.same("--optimizer", "adam", "--clip-norm", "0.5")
        self.same("--optimizer", "lamb", "--weight-decay", "0.1", "--precision", "double")

    @needs_mpi
    def test_ranks_train_the_same(self):
        self.same("--allreduce", "ring", ranks=2)
        self.same("--allreduce", "rabenseifner", "--compress", "topk:0.2", ranks=3)
        self.same("--allreduce", "mpi", "--sync-bn", ranks=2)

    @needs_mpi
    def test_auto_takes_replicas(self):
        text = self.tiny(0, "run", "data", ranks=2).stderr
        self.assertIn("Exchange: a replica on every rank", text)
        self.assertNotIn("over the node's shared memory", text)

    @needs_mpi
    def test_what_needs_the_hosts_memory_says_so(self):
        for words in (["--allreduce", "shm"], ["--allreduce", "hierarchical+tree"], ["--allreduce", "ps"],
                      ["--shard-dense"]):
            text = self.tiny(2, "no", "data", *words, ranks=2).stderr
            self.assertIn(words[0] if len(words) == 1 else " ".join(words), text)
            self.assertIn("host's memory", text)
            self.assertEqual(text.count("cputrain: "), 1, text)
            self.assertFalse(os.path.exists(self.path("no")))
        # Without batch normalization, which excludes it anyway.
        self.write("tiny.json", TINY)
        self.tiny(2, "no", "data", "--reproducible", says=["--reproducible", "host's memory"])
        self.tiny(0, "yes", "data", "--reproducible", *HOST)

    @needs_mpi
    def test_large_layers_are_sharded_in_the_hosts_memory_alone(self):
        layers = [{"type": "flatten"}, {"type": "dense", "units": 1400}, {"type": "relu"},  # 768 x 1400 weights
                  {"type": "dense", "units": "classes", "name": "head"}, {"type": "softmax"}]
        self.write("tiny.json", {**TINY, "layers": layers})
        words = ["--steps", "1", "--limit-val", "0", "--batch", "6"]
        self.assertIn("Sharded: dense", self.tiny(0, "host", "data", *words, *HOST, ranks=3).stderr)
        self.assertNotIn("Sharded", self.tiny(0, "locked", "data", *words, ranks=3).stderr)

    def test_weights_of_one_serve_the_other(self):
        self.curve("host", *HOST)
        results = [self.evaluate("data", *of, run="host") for of in (HOST, LOCKED)]
        self.assertEqual([result.pop("backend") for result in results], ["reference", "locked"])
        self.assertEqual(*results)
        if MPIRUN:
            ranks = self.evaluate("data", *LOCKED, run="host", ranks=2)
            self.assertAlmostEqual(ranks["loss"], results[0]["loss"], delta=1e-6)
            self.assertEqual(ranks["correct"], results[0]["correct"])
        weights = ["--weights", "host/weights.safetensors", "--threads", "1"]
        said = [self.expect(0, "predict", *weights, *of, "data/cat").stdout for of in (HOST, LOCKED)]
        self.assertEqual(*said)
        self.assertEqual(len(said[0].splitlines()), 20)
        self.assertEqual(*[self.curve(run, "--weights", "host/weights.safetensors", *of)
                           for run, of in (("on-host", HOST), ("on-locked", LOCKED))])

    def test_sigterm_saves_a_completed_step(self):
        process = subprocess.Popen([PROGRAM, "--model", "tiny.json", *PLAIN, "--out", "run", "--epochs", "100000",
                                    "--limit-val", "0", "--log-every", "1"], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        wait_until(self.lines, process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(120), 75)
        steps = len(self.metrics("run", "step"))
        losses = []
        for count in (steps, steps + 1):  # the last step that was told, or the next one
            self.tiny(0, f"again{count}", "data", "--epochs", "100000", "--limit-val", "0", "--steps", str(count),
                      "--image-size", "16", *HOST)
            losses.append(self.evaluate("data", *HOST, run=f"again{count}")["loss"])
        self.assertIn(self.evaluate("data", *HOST)["loss"], losses)

    def test_benchmarks_run(self):
        model = ["--model", "tiny.json", *PLAIN, "--batch", "8"]
        self.expect(0, "bench", "step", *model, "--repeat", "2", "--json", "-")
        self.expect(0, "bench", "kernels", "--model", "tiny.json", *PLAIN, "--repeat", "2")
        if MPIRUN:
            self.expect(0, "bench", "allreduce", "--bytes", "100000", "--repeat", "2", ranks=2)

    @unittest.skipUnless(os.environ.get("CPUTRAIN_SIMULATES") == "1", "this build does not simulate")
    def test_costs_of_shared_memory_are_not_measured(self):
        self.expect(2, "simulate", "--model", "tiny.json", "--platform", "here", "--np", "1", "--batch", "8",
                    says=["simulate", "locked", "host's memory"])

    def plan(self, *words, code=0, **options):
        return self.tiny(code, "no", "data", "--dry-run", "--no-save-best", *words, **options)

    def test_its_memory_is_counted(self):
        text = self.plan("--optimizer", "adam").stdout
        self.assertRegex(text, r"of which [0-9.]+ k?B in the backend's memory")
        plans = [json.loads(self.plan("--optimizer", "adam", "--json", "-", *of).stdout)["memory"]
                 for of in (LOCKED, HOST)]
        rank, on_host = (plan["ranks"][0] for plan in plans)
        parts = [rank[name] for name in ("weights", "gradients", "optimizer_state", "workspace", "weights_copy",
                                         "checkpoint_copy")]
        self.assertEqual(rank["weights_copy"], rank["weights"])
        self.assertEqual(rank["checkpoint_copy"], rank["weights"] + rank["optimizer_state"])
        self.assertEqual(rank["backend_memory"], sum(parts))
        self.assertEqual(rank["nccl_estimate"], 0)
        self.assertNotIn("backend_memory", on_host)
        of_host = rank["batches_in_flight"] + rank["checkpoint_parts_of_ranks"] + rank["array_being_written"]
        self.assertEqual(rank["checkpoint_parts_of_ranks"], 2 * 4 * 8)  # batch normalization's statistics
        self.assertEqual(rank["total"] - rank["process"] - rank["threads"], sum(parts) + of_host)
        # What lies there is no part of the node's memory.
        node = plans[0]["nodes"][0]
        self.assertEqual(node["total"], node["image_cache"] + of_host + rank["process"] + rank["threads"])

    def test_too_little_of_it_is_refused(self):
        def refused(room, *words):
            return self.plan("--batch", "36", *words, code=2, LOCKED_MEMORY_ROOM=str(room)).stderr

        self.assertIn("weights and gradients alone need", refused(1000))
        done = self.plan("--batch", "36", "--micro-batch", "36", "--json", "-")
        memory = json.loads(done.stdout)["memory"]["ranks"][0]
        needs, workspace = memory["backend_memory"], memory["workspace"]
        self.plan("--batch", "36", "--micro-batch", "36", LOCKED_MEMORY_ROOM=str(needs))
        text = refused(needs - 1, "--micro-batch", "36")
        self.assertIn("of the backend's memory per rank", text)
        # Without checkpoints there is no copy.
        self.assertIn("--checkpoint-every 0", text)
        self.plan("--batch", "36", "--micro-batch", "36", "--checkpoint-every", "0",
                  LOCKED_MEMORY_ROOM=str(needs - memory["checkpoint_copy"]))
        self.assertNotIn("--checkpoint-every", refused(needs - memory["checkpoint_copy"] - 1, "--micro-batch", "36"))
        # Half of the activations have room, less a sixteenth and what the search leaves.
        text = refused(needs - workspace // 2, "--micro-batch", "36")
        found = int(re.search(r"--micro-batch (\d+)", text).group(1))
        self.assertLess(found, 20)
        self.assertGreater(found, 10)
        self.plan("--batch", "36", "--micro-batch", str(found), LOCKED_MEMORY_ROOM=str(needs - workspace // 2))


    def test_a_damaged_image_asks_for_no_second_program(self):
        """Shares change, so a program is compiled again: in the room of the first."""
        self.make("spoilt", cat=20, dog=20)
        with open(self.path("spoilt", "cat", "0.bmp"), "r+b") as file:
            file.truncate(100)
        text = self.tiny(0, "plan", "spoilt", "--batch", "36", "--dry-run", "--json", "-").stdout
        needs = json.loads(text)["memory"]["ranks"][0]["backend_memory"]
        self.tiny(0, "run", "spoilt", "--batch", "36", says=["skipped 1 damaged file"],
                  LOCKED_MEMORY_ROOM=str(needs * 3 // 2))


if __name__ == "__main__":
    unittest.main()
