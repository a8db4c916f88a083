"""`train --profile`: where the time of a real training's steps went, as a table and in profile.json."""
import os
import unittest

from program import SMALL, ProgramTest, needs_mpi


class Profile(ProgramTest):
    def check_sums(self, profile, steps):
        self.assertEqual(profile["steps"], len(steps))
        self.assertAlmostEqual(profile["seconds"], sum(s["seconds"] for s in steps), places=6)
        self.assertAlmostEqual(sum(l["seconds"] for l in profile["layers"]) + profile["all_else_seconds"],
                               profile["seconds"], places=9)
        for layer in profile["layers"]:
            ways = [layer[w]["seconds"] for w in ("forward", "backward_data", "backward_weights") if w in layer]
            self.assertAlmostEqual(sum(ways), layer["seconds"], places=9)
            self.assertAlmostEqual(layer["share"], layer["seconds"] / profile["seconds"], places=9)

    def test_layers_and_the_rest_are_the_steps(self):
        done = self.expect(0, *SMALL, "--epochs", "2", "--out", "run", "--log-every", "1", "--profile",
                           says=["Profile: ms per step of rank 0 (mean of 6)", "all else", "100.0%"])
        profile = self.json_of("run", "profile.json")
        self.check_sums(profile, self.metrics("run", "step"))
        layers = {layer["name"]: layer for layer in profile["layers"]}
        self.assertNotIn("backward_data", layers["conv2d"])
        for way in ("forward", "backward_data", "backward_weights"):
            self.assertGreater(layers["conv2d_1"][way]["seconds"], 0)
            self.assertTrue(layers["conv2d_1"][way]["algorithm"])
        for name in ("conv2d", "conv2d_3", "dense"):
            self.assertIn("\n" + name + " ", done.stderr)
        # Evaluations are no steps.
        self.assertGreater(profile["all_else_seconds"], 0)

    def test_without_it_or_silent_there_is_no_table(self):
        done = self.expect(0, *SMALL, "--steps", "1", "--out", "a", "--verbose", "0", "--profile")
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.json_of("a", "profile.json")["steps"], 1)
        done = self.expect(0, *SMALL, "--steps", "1", "--out", "a", "--overwrite")
        self.assertNotIn("Profile", done.stdout + done.stderr)
        self.assertFalse(os.path.exists(self.path("a", "profile.json")), "an earlier run's is removed")

    def test_a_dry_run_has_nothing_to_profile(self):
        done = self.expect(2, *SMALL, "--dry-run", "--profile", says=["--profile", "--dry-run"])
        self.assertEqual(done.stdout, "")

    @needs_mpi
    def test_it_is_of_rank_0(self):
        done = self.expect(0, *SMALL, "--steps", "2", "--out", "run", "--log-every", "1", "--profile", ranks=2)
        self.assertEqual((done.stdout + done.stderr).count("Profile:"), 1)
        self.check_sums(self.json_of("run", "profile.json"), self.metrics("run", "step"))


if __name__ == "__main__":
    unittest.main()
