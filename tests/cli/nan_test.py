"""Gradients that are no numbers, weights that drift apart, and early stopping: through the program itself, which
breaks where CPUTRAIN_FAULT says."""
import math
import unittest

from program import ProgramTest, SMALL, needs_mpi

# Six steps, three an epoch.
TRAINING = [*SMALL, "--epochs", "2", "--log-every", "1", "--optimizer", "sgd"]


class Nan(ProgramTest):
    def broken(self, code, run, fault, *words, ranks=0, says=()):
        return self.expect(code, *TRAINING, "--out", run, *words, ranks=ranks, says=says, CPUTRAIN_FAULT=fault)

    def steps(self, run):
        return self.metrics(run, "step")

    def weights_hash(self, run):
        return self.metrics(run, "summary")[0]["weights_hash"]

    def assert_whole(self, run, skipped):
        """Every step once, those that were skipped without figures, and a summary."""
        steps = self.steps(run)
        self.assertEqual([s["step"] for s in steps], [1, 2, 3, 4, 5, 6])
        self.assertEqual([s["step"] for s in steps if s.get("skipped")], skipped)
        for s in steps:
            self.assertEqual(s["loss"] is None, s["step"] in skipped)
        self.assertEqual(sum(e.get("skipped", 0) for e in self.metrics(run, "epoch")), len(skipped))
        self.assertTrue(all(math.isfinite(e["loss"]) for e in self.metrics(run, "epoch")))
        self.assertEqual([s["outcome"] for s in self.metrics(run, "summary")], ["finished"])

    def test_by_default_the_training_ends(self):
        self.broken(1, "run", "nan:0:4:backward", says=["Invalid loss, terminating training"])
        self.assertEqual(self.metrics("run", "summary"), [])

    def test_a_step_is_skipped(self):
        self.broken(0, "run", "nan:0:4:backward", "--on-nan", "skip", says=["step 4 was skipped"])
        self.assert_whole("run", [4])

    @needs_mpi
    def test_all_ranks_skip_the_step_that_one_of_them_broke(self):
        for how in ("shm", "ring"):
            self.broken(0, how, "nan:1:2:forward,nan:0:5:backward", "--on-nan", "skip", "--allreduce", how, ranks=2)
            self.assert_whole(how, [2, 5])

    def test_a_rollback_goes_on_without_the_step(self):
        done = self.broken(0, "back", "nan:0:5:backward", "--on-nan", "rollback", "--checkpoint-every", "1",
                           "--reproducible")
        self.assert_whole("back", [5])
        self.assertIn("step 5", done.stdout + done.stderr)
        # Nothing happened to the weights in that step, as where it is skipped.
        self.broken(0, "skipped", "nan:0:5:backward", "--on-nan", "skip", "--reproducible")
        self.assertEqual(self.weights_hash("back"), self.weights_hash("skipped"))

    @needs_mpi
    def test_a_rollback_without_a_checkpoint_goes_back_to_the_beginning(self):
        self.broken(0, "run", "nan:1:2:backward", "--on-nan", "rollback", "--checkpoint-every", "1h", ranks=2)
        self.assert_whole("run", [2])

    def test_rollbacks_have_a_limit(self):
        faults = ",".join(f"nan:0:{step}:backward" for step in (2, 3, 4, 5))
        self.broken(1, "run", faults, "--on-nan", "rollback", "--checkpoint-every", "1h",
                    says=["step 5", "3 rollbacks to step 0", "--lr"])
        # Those that got further than the one before have none.
        self.broken(0, "on", faults, "--on-nan", "rollback", "--checkpoint-every", "1")
        self.assert_whole("on", [2, 3, 4, 5])

    def test_skipping_has_a_limit(self):
        faults = ",".join(f"nan:0:{step}:backward" for step in range(2, 12))
        self.broken(1, "run", faults, "--on-nan", "skip", "--epochs", "9", says=["Step 11", "10 steps in a row"])
        self.assertEqual(len(self.steps("run")), 11)


class Replicas(ProgramTest):
    @needs_mpi
    def test_a_bit_that_flipped_is_found_and_its_rank_named(self):
        words = [*TRAINING, "--allreduce", "ring", "--check-replicas", "2", "--out", "run"]
        self.expect(64, *words, ranks=3, CPUTRAIN_FAULT="bitflip:1:3:update",
                    says=["after step 4", "rank 1", "differs from the other 2"])
        self.expect(0, *words, "--overwrite", ranks=3)


class Faults(ProgramTest):
    def test_a_word_that_is_none_is_refused(self):
        for fault in ("nan", "boil:0:1:forward", "nan:0:1:lunch", "nan:x:1:forward", "nan:0:1:update",
                      "bitflip:0:1:checkpoint", "kill:0:1:forward:2", "kill:-1:1:forward", "kill:0:1:forward,"):
            self.expect(2, *TRAINING, "--out", "run", "--overwrite", CPUTRAIN_FAULT=fault,
                        says=["CPUTRAIN_FAULT", "kill|hang|nan|bitflip|slow|busy:RANK:STEP:PHASE"])

    def test_a_kill_is_one(self):
        # Without algorithms to try, after which a step is told at once.
        done = self.run_program(*TRAINING, "--no-winograd", "--no-skip-zeros", "--no-tiles", "--out", "run",
                                CPUTRAIN_FAULT="slow:0:3:forward,kill:0:3:update")
        self.assertEqual(done.returncode, -9)
        self.assertEqual([s["step"] for s in self.metrics("run", "step")], [1])  # 2 comes when 3 is made

    def test_a_slow_step_takes_a_second_longer(self):
        self.expect(0, *TRAINING, "--out", "run", CPUTRAIN_FAULT="slow:0:2:input,slow:0:3:validate")
        steps, epochs = self.metrics("run", "step"), self.metrics("run", "epoch")
        self.assertGreaterEqual(steps[1]["seconds"], 1)
        self.assertGreaterEqual(epochs[0]["val_seconds"], 1)


if __name__ == "__main__":
    unittest.main()
