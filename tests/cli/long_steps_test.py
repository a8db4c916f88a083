"""`bench step` where steps are long: CPUTRAIN_FAULT makes them so, by a second each time."""
import json
import unittest

from program import SMALL, ProgramTest

# Without algorithms to try, the first step is a warm-up.
WORDS = ["bench", "step", *SMALL, "--no-winograd", "--no-skip-zeros", "--no-tiles", "--repeat", "2", "--json", "-"]


def slow(*steps):
    return ",".join(f"slow:0:{step}:{phase}" for step in steps for phase in ("input", "forward", "backward"))


class LongSteps(ProgramTest):
    def bench(self, fault):
        return json.loads(self.expect(0, *WORDS, CPUTRAIN_FAULT=fault).stdout)

    def assert_layers_are_timed(self, found):
        """Each that has weights, in both directions."""
        kernels = ["conv2d", "conv2d_1", "conv2d_2", "conv2d_3", "dense", "dense_1", "dense_2"]
        for seconds in ("forward_seconds", "backward_weights_seconds"):
            timed = [layer["name"] for layer in found["layers"] if layer["name"] in kernels and layer[seconds] > 0]
            self.assertEqual(timed, kernels, seconds)

    def test_one_is_a_warm_up_and_layers_are_timed_in_those_that_count(self):
        found = self.bench(slow(1, 2))
        self.assertEqual(found["layer_steps"], found["repeats"] + found["left_out"])
        # The second counts, in which 20 images take three seconds.
        self.assertLess(found["every_step"]["min"], 20 / 3)
        self.assert_layers_are_timed(found)

    def test_of_others_two_are_and_layers_are_timed_afterwards(self):
        found = self.bench("slow:0:3:forward")
        self.assertEqual(found["layer_steps"], 1)
        self.assertLess(found["every_step"]["min"], 20)
        self.assert_layers_are_timed(found)


if __name__ == "__main__":
    unittest.main()
