"""`selftest` as people and programs use it: what it prints, its JSON, its exit codes, the same bits again."""
import json
import math
import os
import unittest

from program import ProgramTest, needs_mpi


def by_name(result):
    return {case["name"]: case for case in result["cases"]}


class Selftest(ProgramTest):
    def result(self, *words, **environment):
        done = self.expect(0, "selftest", *words, "--json", "-", **environment)
        return json.loads(done.stdout)

    def backends(self):
        return ["reference"] + (["cpu"] if self.run_program("info", "--backend", "cpu").returncode == 0 else [])

    def test_every_case_passes_and_has_its_figures(self):
        for backend in self.backends():
            with self.subTest(backend=backend):
                found = self.result("--backend", backend)
                self.assertEqual((found["backend"], found["failed"], found["seed"]), (backend, 0, 0))
                self.assertEqual(found["passed"], len(found["cases"]))
                self.assertGreaterEqual(found["passed"], 20)
                self.assertTrue(found["device"])
                self.assertEqual(len(by_name(found)), found["passed"], "two cases have one name")
                for case in found["cases"]:
                    self.assertTrue(math.isfinite(case["error"]) and case["error"] <= case["limit"], case)
                    self.assertTrue(case["repeats"] and case["passed"], case)
                    self.assertRegex(case["hash"], "^[0-9a-f]{16}$")

    def test_no_layer_and_no_call_is_missing(self):
        names = "\n".join(by_name(self.result("--backend", "reference", "--precision", "float")))
        for word in ("convolution 3x3", "convolution 7x7", "of pixels", "max pool", "average pool",
                     "global average pool",
                     "dense", "relu", "dropout", "zero padding", "batch norm", "branches", "sigmoid", "softmax",
                     "SGD", "RMSprop", "Adam", "LARS", "LAMB", "clipped", "sum of", "norms", "copies"):
            self.assertIn(word, names)

    def test_a_seed_decides_sizes_and_numbers(self):
        words = ["--backend", "reference", "--precision", "float", "--seed"]
        first, again, other = (by_name(self.result(*words, seed)) for seed in ("3", "3", "4"))
        self.assertEqual({n: c["hash"] for n, c in first.items()}, {n: c["hash"] for n, c in again.items()})
        self.assertNotEqual(first.keys(), other.keys())
        self.assertTrue({c["hash"] for c in first.values() if c["limit"] > 0}.isdisjoint(
            c["hash"] for c in other.values() if c["limit"] > 0))

    def test_double_is_exact(self):
        found = self.result("--backend", "reference", "--precision", "double")
        self.assertEqual(max(c["error"] for c in found["cases"]), 0)

    def test_what_people_read(self):
        done = self.expect(0, "selftest", "--backend", "reference", "--precision", "float", "--json", "s.json",
                           says=["seed 0", "convolution 3x3, stride 2, same", " ... ok ",
                                 "cases passed, 0 failed, 0 left out"])
        found = self.json_of("s.json")
        self.assertEqual(done.stdout.count(" ... ok "), found["passed"])
        for case in found["cases"]:
            self.assertIn(case["hash"], done.stdout)

    def test_a_file_that_cannot_be_written_shows_before_the_cases(self):
        done = self.expect(74, "selftest", "--backend", "reference", "--json", "/nonexistent/x.json",
                           says=["cannot write /nonexistent/x.json"])
        self.assertNotIn(" ... ", done.stdout)

    def test_more_threads_than_the_machine_has_are_warned_of(self):
        threads = str(4 * os.cpu_count())
        self.expect(0, "selftest", "--backend", "reference", "--precision", "double", "--threads", threads,
                    "--json", "-", says=["warning: ", "threads take turns"])

    def test_wrong_use_ends_with_2(self):
        for words, says in ((["--backend", "abacus"], "--backend abacus"),
                            (["--precision", "bf16", "--backend", "reference"], "bf16"),
                            (["--seed", "-1"], "--seed -1"), (["--steps", "3"], "--steps"), (["photos"], "photos"),
                            (["--backend", "cuda"], "--backend cuda")):
            with self.subTest(words=words):
                done = self.expect(2, "selftest", *words, says=[says], CUDA_VISIBLE_DEVICES="")
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)

    @needs_mpi
    def test_ranks_are_refused_once(self):
        done = self.expect(2, "selftest", ranks=2, says=["selftest tests one process, not 2"])
        self.assertEqual(done.stderr.count("one process"), 1)


if __name__ == "__main__":
    unittest.main()
