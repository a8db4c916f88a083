"""What a person types, right and wrong: one message, the documented exit code."""
import json
import unittest

from program import SMALL, ProgramTest, needs_mpi


class Usage(ProgramTest):
    def test_wrong_words_end_with_2_and_name_the_thing(self):
        for words, says in [(["--batch", "0"], ["--batch 0"]), (["--bacth", "8"], ["--bacth", "batch"]),
                            (["trian"], ["did you mean train"]), (["--model", "dogcart"], ["dogcat"]),
                            (["--image-size", "8"], ["--image-size 8"]),
                            (["--rho", "0.5", "--optimizer", "adam"], ["--rho"])]:
            with self.subTest(words=words):
                done = self.expect(2, *words, says=says)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    @needs_mpi
    def test_ranks_say_it_once_and_leave(self):
        done = self.expect(2, "--batch", "0", ranks=3, says=["--batch 0"])
        self.assertEqual(done.stderr.count("--batch 0"), 1)
        done = self.expect(65, "--data", self.path("nowhere"), ranks=3, says=["nowhere"])
        self.assertEqual(done.stderr.count("nowhere"), 1)

    def test_help_goes_to_standard_output(self):
        self.assertIn("Commands:", self.expect(0, "--help").stdout)
        self.assertIn("--batch", self.expect(0, "train", "--help").stdout)

    def test_info_describes_the_papers_network(self):
        done = self.expect(0, "info", "--model", "dogcat", "--json", "-")
        model = json.loads(done.stdout)["model"]
        self.assertEqual(model["parameters"], 13217985)
        self.assertEqual(model["layers"][1]["output"], [254, 254, 32])
        self.assertIn("13,217,985", self.expect(0, "info").stdout)

    def test_bench_step_measures_its_limit_in_the_same_run(self):
        done = self.expect(0, "bench", "step", *SMALL, "--repeat", "3", "--json", "-")
        bench = json.loads(done.stdout)
        rate, limit = bench["images_per_second"], bench["limit"]["fma_gflops"]
        self.assertLessEqual(rate["min"], rate["median"])
        self.assertLessEqual(rate["median"], rate["max"])
        self.assertAlmostEqual(bench["fraction_of_peak"], bench["gflops"] / limit, places=9)
        self.assertGreater(sum(layer["forward_seconds"] for layer in bench["layers"]), 0)
        self.assertGreaterEqual(bench["repeats"], 3)
        self.assertGreaterEqual(bench["left_out"], 0)
        self.assertTrue(0 <= bench["stolen"] <= 1, bench["stolen"])
        self.assertLessEqual(bench["every_step"]["min"], rate["min"])
        self.assertGreaterEqual(bench["every_step"]["max"], rate["max"])
        if bench["left_out"]:
            self.assertLessEqual(bench["stolen"], 0.02)

    def test_a_batch_larger_than_the_data_is_one_step_and_a_warning(self):
        done = self.expect(0, *SMALL, "--batch", "1000", "--epochs", "2", "--out", "run",
                           says=["--batch 1000 is larger"])
        self.assertIn("1/1", done.stdout)

    def test_a_run_repeats_from_its_own_config(self):
        # Kernels chosen by time round differently from run to run.
        first = self.train("a", "--steps", "3", "--optimizer", "sgd", "--seed", "5", "--reproducible")
        self.expect(0, "--config", "a/config.json", "--out", "b")
        again = self.metrics("b", "step")
        self.assertEqual([s["loss"] for s in first], [s["loss"] for s in again])


if __name__ == "__main__":
    unittest.main()
